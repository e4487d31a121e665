# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Makes code objects with odd names, says what and where they are, and keeps them until stdin ends.

Prints in the form of Python the version, whether it is free-threaded, and its type of code objects; then [address, name, file, first line, line of every two bytes of code] of each
code object. With "torn" it prints the address of a number and those of code objects, puts code after code
there: fN, from line N of file fN, and makes the number N while that is there.
"""
import argparse
import array
import collections
import dis
import functools
import json.decoder
import random
import sys
import sysconfig
import typing
import types

QUALIFIED = sys.version_info >= (3, 11)
LONG = "d\u0153" * 40000        # longer than what is read

SOURCE = '''
def plain(): return lambda: [i for i in ()]
def caf\u00e9(): pass
def \u0438\u043c\u044f(): pass
def \U00010400_wide(): pass
class Outer:
    class \u5185:
        def method(self):
            def inner():
                yield (x for x in ())
            return inner
    async def co(self):
        pass
def spread(
    a,
    b=lambda: 0,
):
    x = [
        a,

        b,
    ]
    for _ in x:
        try:
            pass
        except (ValueError,
                TypeError) as e:
            del a
        finally:
            b()

''' + "def many():\n" + "    plain(\n)\n\n" * 3000


def lines(code):
    if sys.version_info >= (3, 10):
        found = list(code.co_lines())
    else:
        starts = list(dis.findlinestarts(code)) + [(len(code.co_code), None)]
        found = [(s, e, line) for (s, line), (e, _) in zip(starts, starts[1:])]
    units = array.array("I")
    for start, end, line in found:
        units.extend([line or 0] * ((end - start) // 2))
    return units.tolist()


def tree(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from tree(const)


def named(code, name, file, **change):
    if QUALIFIED:
        change["co_qualname"] = name
    return code.replace(co_name=name, co_filename=file, **change)


def odd():
    code = (lambda: 0).__code__
    texts = ["", ";", "a b", "tab\there", "two\nlines", "r\r", "nul\0nul", "\0", "\x7f\x80\x9f",
             "\ud800", "x\udc80y", "pair\ud83d\ude00", "\U0001f600", "\U0010ffff\ufffe", "\u2028\u202e",
             "\u00ff" * 300, "\u20ac" * 300, "\U0001f40d" * 300, "q" * 5000, "\u00e9" * 5000,
             "n" * 65535, "n" * 65536, "n" * 65537, LONG, "\U0001f40d" * 70000]
    texts += ["l" * n for n in range(190, 260)]
    for text in texts:
        yield named(code, text, "/file.py")
        yield named(code, "f", text)


def all_codes():
    yield from tree(compile(SOURCE, "/tmp/\u00fcber dir/odd.py", "exec"))
    for module in argparse, json.decoder, functools, random, typing:
        with open(module.__file__, encoding="utf-8") as f:
            yield from tree(compile(f.read(), module.__file__, "exec"))
    yield from odd()


def torn():
    code = (lambda: 0).__code__
    n = 0
    seen = set()
    ready = array.array("I", [0])       # the one that is there now, whole
    # A code object that is being made looks like the dead one in whose place it is for some nanoseconds,
    # which can't be told from outside; so nothing is in the place of that one's strings before it is made.
    names = collections.deque(maxlen=2)

    def one():
        nonlocal n
        n = n % 10000000 + 1
        names.append((f"f{n}", f"f{n}"))
        return named(code, *names[-1], co_firstlineno=n)

    for _ in range(1000):
        seen.add(id(one()))
    print(ascii([ready.buffer_info()[0]] + sorted(seen)[:8]), flush=True)
    spans = [random.choice((0, 10, 100, 1000, 10000)) for _ in range(97)]
    while True:
        for span in spans:
            kept = one()
            ready[0] = n
            for _ in range(span):
                pass
            ready[0] = 0
            del kept


def main():
    threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    print(ascii([sys.version_info[1], int(threaded), id(types.CodeType)]), flush=True)
    if sys.argv[1:] == ["torn"]:
        torn()
    kept = list(all_codes())
    for c in kept:
        name = c.co_qualname if QUALIFIED else c.co_name
        print(ascii([id(c), name, c.co_filename, c.co_firstlineno, lines(c)]))
    sys.stdout.flush()
    print(None, flush=True)
    sys.stdin.read()


main()
