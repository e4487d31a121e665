# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""P-01: Python -> C -> Python re-entries. usage: reentry.py [seconds]
Each of the four parts spins in burn() below a different C function that calls back."""
import functools
import re
import sys
import time


def burn(n=60000):
    total = 0
    for i in range(n):
        total += i & 7
    return total


def key_of(item):
    burn()
    return item


def by_sorted():
    sorted([3, 1, 2], key=key_of)


def add_two(a, b):
    burn()
    return a + b


def by_reduce():
    functools.reduce(add_two, [1, 2, 3, 4])


def on_match(m):
    burn()
    return m.group(0)


def by_re_sub():
    re.sub("a", on_match, "banana")


def nested_map(depth):
    if depth == 0:
        return burn(400000)
    return next(map(lambda _: nested_map(depth - 1), [0]))


def main():
    end = time.time() + (float(sys.argv[1]) if len(sys.argv) > 1 else 8)
    while time.time() < end:
        by_sorted()
        by_reduce()
        by_re_sub()
        nested_map(60)


main()
