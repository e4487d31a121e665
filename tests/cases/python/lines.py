# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""P-07: code whose line table has gaps or several lines a statement. usage: lines.py [seconds]
Prints for each function the first and the last line of its code, for comparison."""
import sys
import time


def sums(n):
    return (
        sum(i * i for i in range(n))
        +
        sum(i for i in range(n)
            if i % 3))


def cleanup(n):
    out = 0
    for i in range(n):
        try:
            out += i
        finally:
            out -= 1
    return out


class Guard:
    def __enter__(self):
        return self

    def __exit__(self, *why):
        x = 0
        for i in range(200):
            x += i
        return False


def guarded(n):
    for _ in range(n):
        with Guard():
            pass


def inlined(n):
    return [j for j in
            [k * 2 for k in range(n)]
            if j & 1]


def body(n):
    class Made:
        total = 0
        for i in range(n):
            total += i
    return Made


short = lambda n: sum(x for x in range(n))          # noqa: E731


def main():
    for f in (sums, cleanup, Guard.__exit__, guarded, inlined, body, short):
        code = f.__code__
        table = [b for b in getattr(code, "co_lines", lambda: [])() if b[2] is not None]
        last = max([b[2] for b in table] or [code.co_firstlineno])
        print("%s %d..%d" % (code.co_name, code.co_firstlineno, last))
    sys.stdout.flush()
    end = time.time() + (float(sys.argv[1]) if len(sys.argv) > 1 else 8)
    while time.time() < end:
        sums(40000)
        cleanup(40000)
        guarded(400)
        inlined(40000)
        body(40000)
        short(40000)


main()
