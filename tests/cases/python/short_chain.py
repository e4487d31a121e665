# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""P-06: a chain of 40 very short functions; something is entered or left all the time.
usage: short_chain.py [seconds]"""
import sys
import time

lines = ["def f0(n):\n    return n\n"]
for i in range(1, 41):
    lines.append("def f%d(n):\n    return f%d(n) + 1\n" % (i, i - 1))
exec(compile("".join(lines), "chain_of_40.py", "exec"))


def run(end):
    while time.time() < end:
        for i in range(2000):
            f40(i)          # noqa: F821


run(time.time() + (float(sys.argv[1]) if len(sys.argv) > 1 else 8))
