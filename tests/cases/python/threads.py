# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""P-05: eight Python threads and one thread made by C code that enters the interpreter
again and again. usage: threads.py [seconds]"""
import ctypes
import sys
import threading
import time

END = time.time() + (float(sys.argv[1]) if len(sys.argv) > 1 else 8)


def spin_in_thread(index):
    x = 0
    while time.time() < END:
        for i in range(5000):
            x += i & index
    return x


def named(index):
    def worker():
        spin_in_thread(index)
    worker.__name__ = "worker_%d" % index
    return worker


CALLBACK = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
libc = ctypes.CDLL(None)


def burst():
    stop = time.time() + 0.01
    x = 0
    while time.time() < stop:
        x += 1


@CALLBACK
def one_entry(_):
    burst()
    return None


# A C thread that runs the callback over and over: each pthread runs one entry, in sequence.
def foreign_entries():
    ident = ctypes.c_ulong()
    while time.time() < END:
        libc.pthread_create(ctypes.byref(ident), None, one_entry, None)
        libc.pthread_join(ident, None)


threads = [threading.Thread(target=named(i), name="worker; with spaces %d" % i) for i in range(8)]
threads.append(threading.Thread(target=foreign_entries, name="starter"))
for t in threads:
    t.start()
for t in threads:
    t.join()
