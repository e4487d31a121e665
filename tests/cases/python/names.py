# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# -*- coding: utf-8 -*-
"""P-04, O-03: function names that need 1, 2 and 4 bytes a character, and odd file names.
usage: names.py [seconds]"""
import sys
import time


def заметная(n):                        # two bytes a character
    total = 0
    for i in range(n):
        total += i * i
    return total


def größe(n):                           # Latin-1, one byte a character but not ASCII
    return заметная(n)


def 計算する(n):                        # two bytes a character
    return größe(n)


def plain_ascii(n):
    return 計算する(n)


def mix_𐎠𐎡(n):                          # four bytes a character
    return plain_ascii(n)


SOURCE = "def generated(n):\n    return deeper(n)\n"
FILES = [
    "<string>",
    '{"kind": "cpu"}',
    "a;b c 12\nsecond line",
    "</script><b>bold",
    "tab\there",
    "\x1b[31mred",
    "low\x01control",
    "back\\slash\"quote'",
    "x" * 5000,
    "Übung/目录/𐎠.py",
]


def main():
    end = time.time() + (float(sys.argv[1]) if len(sys.argv) > 1 else 8)
    funcs = []
    for name in FILES:
        scope = {"deeper": mix_𐎠𐎡}
        exec(compile(SOURCE, name, "exec"), scope)
        funcs.append(scope["generated"])
    while time.time() < end:
        for func in funcs:
            func(200000)


main()
