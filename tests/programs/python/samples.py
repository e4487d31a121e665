# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Uses the processor in ways whose stacks are all known. usage: samples.py PART

A line in which functions of this file may run says so behind an arrow: "# -> f, g". The word "library"
there means that functions of other files may run, and these call the named ones. So whoever reads the
comments knows every stack there can be. $CALLS: libpython_calls.so.
First it prints, as JSON, the lines of each function as the interpreter knows them; then it runs until
its standard input ends.
"""
import asyncio
import ctypes
import dis
import json
import os
import sys
import threading
import types

over = False


# --- very short functions, so that one is entered or left all the time

def s8(n):
    return n


def s7(n):
    return s8(n) + 1	# -> s8


def s6(n):
    return s7(n) + s7(n)	# -> s7


def s5(n):
    return s6(n)	# -> s6


def s4(n):
    return s5(n)	# -> s5


def s3(n):
    return s4(	# -> s4
        n) + s8(	# -> s8
            n)


def s2(n, *, m=1):
    return s3(n)	# -> s3


def s1(*n):
    return s2(*n, m=3)	# -> s2


class Short:
    def method(self, n):
        return s1(n)	# -> s1

    def __call__(self, n):
        return self.method(n)	# -> Short.method

    @property
    def value(self):
        return self.method(1)	# -> Short.method

    def __add__(self, n):
        return self(n)	# -> Short.__call__


def short():
    s = Short()
    while not over:
        for i in range(500):
            s(i)	# -> Short.__call__
            s.value	# -> Short.value
            s + i	# -> Short.__add__


# --- generators

def counting(n):
    for i in range(n):
        yield i


def doubled(source):
    for i in source:	# -> counting
        yield i * 2


def delegated(n):
    yield from doubled(counting(n))	# -> doubled, counting


def nested(n):
    if n:
        yield from nested(n - 1)	# -> nested
    else:
        for i in range(50):
            yield i


def summed(n):
    return sum(delegated(n))	# -> delegated


def generators():
    while not over:
        summed(100)	# -> summed
        for x in nested(15):	# -> nested
            s8(x)	# -> s8
        moved(delegated(9), 0)	# -> moved, delegated


def moved(g, depth):
    if next(g, None) is not None:	# -> delegated
        moved(g, depth + 1)	# -> moved


# --- depth

def down(n):
    if n:
        return down(n - 1)	# -> down
    return bottom()	# -> bottom


def bottom():
    x = 0
    for i in range(3000):
        x += i
    return x


def deep():
    while not over:
        down(400)	# -> down


def ladder():
    while not over:
        for n in range(0, 300, 7):
            climb(n)	# -> climb


def climb(n):
    if n:
        climb(n - 1)	# -> climb


# --- through C, and with the GIL given away

CALLS = ctypes.CDLL(os.environ["CALLS"])
HOLDING = ctypes.PyDLL(os.environ["CALLS"])
BACK = ctypes.CFUNCTYPE(None, ctypes.c_int)
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def from_c(n):
    s7(n)	# -> s7
    if n:
        CALLS.calls_back(c_back, n - 1)	# -> from_c


def compared(a, b):
    return s6(1) & 1	# -> s6


def by_key(n):
    return s7(n)	# -> s7


c_back = BACK(from_c)
c_compare = COMPARE(compared)


def through_c():
    while not over:
        CALLS.calls_back(c_back, 12)	# -> from_c
        HOLDING.calls_sort(c_compare)	# -> compared
        CALLS.calls_sort(c_compare)	# -> compared
        sorted(range(20), key=by_key)	# -> by_key
        list(map(by_key, range(20)))	# -> by_key
        CALLS.calls_spin(300)
        HOLDING.calls_spin(300)


# --- the GIL from hand to hand

def work_0():
    while not over:
        for i in range(100):
            s6(i)	# -> s6
        CALLS.calls_spin(20)


def work_1():
    while not over:
        summed(10)	# -> summed
        CALLS.calls_spin(20)


def work_2():
    while not over:
        down(30)	# -> down


def work_3():
    while not over:
        CALLS.calls_back(c_back, 2)	# -> from_c


def handed():
    sys.setswitchinterval(1e-5)
    others = [threading.Thread(target=f) for f in (work_0, work_1, work_2, work_3) * 2]	# -> library
    for t in others:
        t.start()	# -> library
    work_0()	# -> work_0
    for t in others:
        t.join()	# -> library


def come_and_go():
    """Threads that live for a moment, Python's own and such that C makes."""
    while not over:
        CALLS.calls_thread(c_back, 2)
        t = threading.Thread(target=down, args=(10,))	# -> library
        t.start()	# -> library
        t.join()	# -> library


# --- asynchronous

async def leaf(n):
    s7(n)	# -> s7
    await asyncio.sleep(0)	# -> library
    return n


async def twig(n):
    return await leaf(n) + await leaf(n)	# -> leaf


async def produced(n):
    for i in range(n):
        yield await twig(i)	# -> twig


async def task():
    while not over:
        async for i in produced(5):	# -> produced, library
            s8(i)	# -> s8, library


async def tasks():
    await asyncio.gather(task(), task(), task())	# -> library, task


def asynchronous():
    asyncio.run(tasks())	# -> library, tasks, task


# --- lines that are easily taken wrongly

class Guard:
    def __enter__(self):
        return self

    def __exit__(self, *why):
        s8(1)	# -> s8
        return True


def protected(n):
    with Guard():	# -> Guard.__enter__, Guard.__exit__
        if n % 3:
            raise ValueError(
                n)
        s8(n)	# -> s8, Guard.__exit__


def cleaned(n):
    try:
        s8(n)	# -> s8
        if n & 1:
            raise KeyError
    except KeyError as e:
        s8(e)	# -> s8
    finally:
        s7(n)	# -> s7
    return (n and
            s7(n) and	# -> s7
            s8(	# -> s8
                n))


def conditional(n):
    x = [
        s8(n),	# -> s8
        s7(n)	# -> s7
        if n
        else
        s6(n),	# -> s6
    ]
    while (x
           and s8(n)	# -> s8
           and n):
        n -= 1
    return x


def edges():
    while not over:
        for i in range(20):
            protected(i)	# -> protected
            cleaned(i)	# -> cleaned
            conditional(i)	# -> conditional


# --- code that comes and goes

class Dropped:
    def __del__(self):
        s8(1)	# -> s8


def dropped():
    while not over:
        for i in range(100):
            Dropped()	# -> Dropped.__del__


# --- beside a thread that is none of Python's, and calls it now and then

def called_beside(n):
    for _ in range(3000):
        s7(n)	# -> s7


c_beside = BACK(called_beside)


def beside():
    CALLS.calls_beside(0, c_beside)
    short()	# -> short
    CALLS.calls_beside(1, c_beside)


# ---

def lines_of(code, found):
    lines = {line for _, line in dis.findlinestarts(code)}
    if hasattr(code, "co_lines"):
        lines |= {line for _, _, line in code.co_lines()}
    found[getattr(code, "co_qualname", code.co_name)] = sorted(
        {x for x in lines if x} | {code.co_firstlineno})
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            lines_of(c, found)


def until_told():
    global over
    sys.stdin.read()
    over = True


def main():
    found = {}
    with open(__file__, encoding="utf-8") as f:
        lines_of(compile(f.read(), __file__, "exec"), found)
    t = threading.Thread(target=until_told)
    t.start()
    print(json.dumps(found), flush=True)
    if sys.argv[1] == "short":
        short()	# -> short
    elif sys.argv[1] == "generators":
        generators()	# -> generators
    elif sys.argv[1] == "deep":
        deep()	# -> deep
    elif sys.argv[1] == "ladder":
        ladder()	# -> ladder
    elif sys.argv[1] == "through_c":
        through_c()	# -> through_c
    elif sys.argv[1] == "handed":
        handed()	# -> handed
    elif sys.argv[1] == "come_and_go":
        come_and_go()	# -> come_and_go
    elif sys.argv[1] == "asynchronous":
        asynchronous()	# -> asynchronous
    elif sys.argv[1] == "edges":
        edges()	# -> edges
    elif sys.argv[1] == "dropped":
        dropped()	# -> dropped
    elif sys.argv[1] == "beside":
        beside()	# -> beside
    t.join()


main()	# -> main
