# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""states.py THREADS DEPTH: an interpreter runs in another, DEPTH of them in all, beside so many threads; the
innermost computes for a second."""
import sys
import threading
import time


def others():
    """(create, run) of this version's interpreters in a process, that share the GIL."""
    if sys.version_info >= (3, 13):
        import _interpreters
        return (lambda: _interpreters.create("legacy", reqrefs=False)), _interpreters.exec
    import _xxsubinterpreters
    if sys.version_info >= (3, 9):
        return (lambda: _xxsubinterpreters.create(isolated=False)), _xxsubinterpreters.run_string
    return _xxsubinterpreters.create, _xxsubinterpreters.run_string


def within(depth):
    if depth > 1:
        create, run = others()
        run(create(), f"PROGRAM = {PROGRAM!r}; DEPTH = {depth - 1}\n"
                      "exec(compile(open(PROGRAM).read(), PROGRAM, 'exec'))")
        return
    end = time.process_time() + 1
    while time.process_time() < end:
        pass


def main():
    done = threading.Event()
    threading.stack_size(65536)
    threads = [threading.Thread(target=done.wait) for _ in range(int(sys.argv[1]))]
    for t in threads:
        t.start()
    within(int(sys.argv[2]))
    done.set()
    for t in threads:
        t.join()


if "DEPTH" in globals():
    within(DEPTH)
else:
    PROGRAM = __file__
    main()
