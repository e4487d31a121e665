# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# P-09: runs on Python 2.7 as well as on 3. usage: oldstyle.py [seconds]
import sys
import time


def old_inner(n):
    total = 0
    for i in range(n):
        total += i % 7
    return total


def old_outer(end):
    while time.time() < end:
        old_inner(200000)


old_outer(time.time() + (float(sys.argv[1]) if len(sys.argv) > 1 else 8))
