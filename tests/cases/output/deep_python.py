# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""O-02: Python recursion of a given depth. usage: deep_python.py [depth] [seconds]"""
import sys
import threading
import time

depth = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 8


def bottom():
    end = time.time() + 0.2
    x = 0
    while time.time() < end:
        x += 1


def go_down(n):
    if n:
        go_down(n - 1)
    else:
        bottom()


def main():
    end = time.time() + seconds
    while time.time() < end:
        go_down(depth)


sys.setrecursionlimit(depth + 1000)
threading.stack_size(512 * 1024 * 1024)
t = threading.Thread(target=main)
t.start()
t.join()
