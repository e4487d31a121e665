# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""P-03: functions are generated, run for about 60 ms and destroyed, so that code objects
of different functions live at the same addresses one after another. usage: regenerate.py [rounds]
At the end it prints how many distinct addresses the code objects had."""
import gc
import sys
import time

TEXT = """
def made_{n}(until, clock):
    x = {n}
    while clock() < until:
        for i in range(2000):
            x = (x + i) & 0xffff
    return x
"""


def one_round(n):
    scope = {}
    exec(compile(TEXT.format(n=n), "<made %d>" % n, "exec"), scope)
    func = scope["made_%d" % n]
    where = id(func.__code__)
    func(time.perf_counter() + 0.06, time.perf_counter)
    return where


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 120
    places = set()
    for n in range(rounds):
        places.add(one_round(n))
        gc.collect()
    print("%d functions, %d addresses" % (rounds, len(places)))


main()
