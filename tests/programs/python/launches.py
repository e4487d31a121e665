# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Some hundred launches from everywhere in Python. usage: launches.py [PART...]

$TRUTH: the file for the accounts of launching.py. $CALLS: libpython_calls.so. $TEST_TMP: a folder.
The parts are calls, code, async, threads; all of them unless some are named. It ends with status 1,
by an exception on purpose, after it has printed "done".
"""
import sys
import threading
import time

import launching


def waiting(event, n):
    """A thread whose frames are older than whoever attaches."""
    if n:
        return waiting(event, n - 1)
    event.wait()
    launching.launch()


def suspended():
    yield
    launching.launch()
    yield


def main(parts):
    launching.start()
    time.sleep(0.5)	# an interpreter is known some milliseconds after it has started
    event, generator = threading.Event(), suspended()
    next(generator)
    thread = threading.Thread(target=waiting, args=(event, 5))
    thread.start()
    launching.gate()
    event.set()
    next(generator)
    thread.join()
    for part in parts:
        __import__("launch_" + part).main()
    launching.launch()
    print("done", flush=True)


main(sys.argv[1:] or ["calls", "code", "async", "threads"])
raise RuntimeError("on purpose")
