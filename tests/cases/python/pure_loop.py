# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""P-02: nothing but interpreted code in three nested functions. usage: pure_loop.py [seconds]"""
import sys
import time


def inner():
    x = 0
    for i in range(300000):
        x = (x * 31 + i) % 65521
    return x


def middle():
    return inner() + 1


def outer(end):
    while time.time() < end:
        middle()


outer(time.time() + (float(sys.argv[1]) if len(sys.argv) > 1 else 8))
