# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""L-01: the same in Python: the first thread leaves by pthread_exit, a worker goes on.
usage: leader_exit.py [seconds]"""
import ctypes
import os
import sys
import threading
import time

END = time.time() + (float(sys.argv[1]) if len(sys.argv) > 1 else 8)


def python_worker_hot():
    x = 0
    while time.time() < END:
        for i in range(10000):
            x += i
    os._exit(0)


threading.Thread(target=python_worker_hot).start()
time.sleep(1)
libc = ctypes.CDLL("libc.so.6")
libc.pthread_exit(None)
