# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Calls itself deeper than stacks are shown. usage: recursion.py plain|handed|threaded DEPTH launch|spin

At the bottom it launches once ($TRUTH has the account), or prints its account as a line of JSON and calls
very short functions until its standard input ends. $CALLS: libpython_calls.so.
"""
import ctypes
import json
import os
import sys
import threading

from launching import account, frame, launch, start, via

CALLS = ctypes.CDLL(os.environ["CALLS"])
BACK = ctypes.CFUNCTYPE(None, ctypes.c_int)
over = False


def called(n):
    """By C."""
    return n


def tick(n):
    return n


def spin():
    print(json.dumps({"kernel": "", "below": [], "chain": account(frame())}), flush=True)
    while not over:
        for n in map(called, range(1000)):
            tick(n)


def until_told():
    global over
    sys.stdin.read()
    over = True


def bottom():
    if sys.argv[3] == "launch":
        launch()
    else:
        spin()


def plain(n):
    if n:
        plain(n - 1)
    else:
        bottom()


def handed(n):
    """Every eighth call goes through C."""
    if n and n % 8 == 0:
        CALLS.calls_back(HANDED, n - 1)
    elif n:
        handed(n - 1)
    else:
        bottom()


@via("calls_back")
def handed_back(n):
    handed(n)


HANDED = BACK(handed_back)


def threaded(n):
    """In a thread."""
    threading.stack_size(256 << 20)
    thread = threading.Thread(target=plain, args=(n,))
    thread.start()
    thread.join()


def main(kind, depth):
    sys.setrecursionlimit(2 * depth + 1000)
    if sys.argv[3] == "launch":
        start()
    else:
        threading.Thread(target=until_told).start()
    {"plain": plain, "handed": handed, "threaded": threaded}[kind](depth)


main(sys.argv[1], int(sys.argv[2]))
