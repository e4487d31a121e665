# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Threads of all makers, other interpreters in the process, and what runs when all is over."""
import atexit
import concurrent.futures
import ctypes
import os
import sys
import threading

import launching
from launching import HELD, LAUNCH, REST, account, frame, launch, launch_held, note, via

CALLS = ctypes.CDLL(os.environ["CALLS"])
BACK = ctypes.CFUNCTYPE(None, ctypes.c_int)
THREADS = 4


def worker(n, barrier):
    barrier.wait()
    for i in range(6):
        if n % 2:
            launch()
            LAUNCH(note(frame()), *REST)
        else:
            launch_held()
            HELD(note(frame()), *REST)
        deeper(i)


def deeper(n):
    return deeper(n - 1) if n else launch()


class Own(threading.Thread):
    def run(self):
        launch()


def threads():
    barrier = threading.Barrier(THREADS)
    started = [threading.Thread(target=worker, args=(n, barrier), name="worker %d" % n)
               for n in range(THREADS)]
    started += [Own(), threading.Timer(0, launch)]
    for t in started:
        t.start()
    for t in started:
        t.join()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(launch, range(4)))
    local = threading.local()
    local.x = launch()


@via("start_thread|libc.*", "calls_begin")
def from_thread(n):
    launch()
    deeper(n)


def foreign_threads():
    """Made by C, so that each has a state that is made and dropped for this one call."""
    entry = BACK(from_thread)
    for n in range(3):
        CALLS.calls_thread(entry, n)


IN_OTHER = """
import sys
sys.path.insert(0, {folder!r})
import launching
launching.PREFIX = {prefix!r}
launching.below = {below!r}
from launching import *
start()
def inner():
    launch()
launch()
inner()
"""


def others():
    """(create, run, destroy) of this version's interpreters in a process, that share the GIL."""
    if sys.version_info >= (3, 13):
        import _interpreters
        return (lambda: _interpreters.create("legacy", reqrefs=False)), _interpreters.exec, \
            _interpreters.destroy
    import _xxsubinterpreters
    if sys.version_info >= (3, 9):
        return (lambda: _xxsubinterpreters.create(isolated=False)), _xxsubinterpreters.run_string, \
            _xxsubinterpreters.destroy
    return _xxsubinterpreters.create, _xxsubinterpreters.run_string, _xxsubinterpreters.destroy


def in_others():
    try:
        create, run, destroy = others()
    except ImportError:
        return
    folder = os.path.dirname(os.path.abspath(launching.__file__))
    for n in range(2):
        i = create()
        source = IN_OTHER.format(folder=folder, prefix="other%d_" % n, below="HERE")
        run(i, source.replace("'HERE'", repr(account(frame())))); launch()	# noqa: E702
        destroy(i)
        launch()


def between_others():
    """Main's launches while another interpreter exists."""
    try:
        create, run, destroy = others()
    except ImportError:
        return
    i = create()
    run(i, "x = 1")
    launch()
    t = threading.Thread(target=launch)
    t.start()
    t.join()
    destroy(i)


def at_exit():
    launch()
    deeper(3)


def on_uncaught(kind, value, trace):
    launch()


def main():
    threads()
    foreign_threads()
    between_others()
    in_others()
    atexit.register(at_exit)
    sys.excepthook = on_uncaught
