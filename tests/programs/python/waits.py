# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Waits for the virtual device from several lines of Python, each timed by its own clock. usage: waits.py [ROUNDS]

Prints for each a line: wait FUNCTION;FUNCTION… LINE TID BEGIN END, the outermost function of this file first,
LINE that of the call, CLOCK_MONOTONIC ns.
"""
import ctypes
import sys
import threading
import time

import launching
from launching import frame, must

SYNCHRONIZE = launching._driver.cuStreamSynchronize
SYNCHRONIZE.argtypes = [ctypes.c_void_p]
ALL = launching._driver.cuCtxSynchronize
LENGTHS = {"item": 300000, "epoch_end": 900000, "worker": 500000}

said = []


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def add(begin, line, f):
    end, path = now(), []
    while f is not None and f.f_code.co_filename == __file__:
        path.append(f.f_code.co_name)
        f = f.f_back
    said.append("wait %s %d %d %d %d" % (";".join(path[::-1]), line, threading.get_native_id(), begin, end))


class Work:
    def __init__(self):
        module, self.kernel, self.stream = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        must(launching._driver.cuCtxSetCurrent(launching._context))
        must(launching._driver.cuStreamCreate(ctypes.byref(self.stream), 1))
        must(launching._driver.cuModuleLoadData(ctypes.byref(module), b"STANDIN\nspin_wait\n"))
        must(launching._driver.cuModuleGetFunction(ctypes.byref(self.kernel), module, b"spin_wait"))

    def launch(self, length):
        ns = ctypes.c_uint64(length)
        params = (ctypes.c_void_p * 1)(ctypes.addressof(ns))
        must(launching.LAUNCH(self.kernel, 1, 1, 1, 32, 1, 1, 0, self.stream, params, None))


def item(work):
    work.launch(LENGTHS["item"])
    begin = now()
    must(SYNCHRONIZE(work.stream)); line = frame().f_lineno
    add(begin, line, frame())


def epoch_end(work):
    work.launch(LENGTHS["epoch_end"])
    begin = now()
    must(ALL()); line = frame().f_lineno
    add(begin, line, frame())


def train(rounds):
    work = Work()
    for _ in range(rounds):
        item(work)
        item(work)
        epoch_end(work)


def worker(rounds):
    work = Work()
    for _ in range(rounds):
        work.launch(LENGTHS["worker"])
        begin = now()
        must(SYNCHRONIZE(work.stream)); line = frame().f_lineno
        add(begin, line, frame())


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    launching.start()
    time.sleep(0.5)	# an interpreter is known some milliseconds after it has started
    threads = [threading.Thread(target=worker, args=(rounds,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    train(rounds)
    for thread in threads:
        thread.join()
    print("\n".join(said))


main()
