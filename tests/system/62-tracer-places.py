#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
"""
Where a thread may be borrowed and where not, as its stack tells; and what it finds unchanged
afterwards. All threads wait in the same harmless call: only what is above it on the stack differs.
"""
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tracing as T  # noqa: E402

PLACES = T.program("trace_places")
WAITING = os.path.join(T.B, "programs/libtrace_wait.so")
TIMES = 30
BORROWED = {"plain", "qsort", "thread"}
# A word of the reason.
REFUSED = {
    "malloc": "malloc", "iterate": "dl_iterate_phdr", "once": "nameless", "atfork": "ork",
    "exit": "exit", "stdio": "_IO", "dlopen": "dynamic loader", "handler": "signal handler",
    "alternate": "stack", "fiber": "stack", "deep": "followed", "generated": "followed",
    "small_thread": "256 KiB", "key": "nameless",
}

THREADS = {"thread", "small_thread", "key"}

check = T.Checks()


def one(name):
    p = T.start(PLACES, name, env={**os.environ, "TRACE_WAITING_LIBRARY": WAITING})
    main = f"/proc/{p.pid}/task"
    T.wait_until(lambda: T.sleeps_in(p.pid) and (name not in THREADS or len(os.listdir(main)) > 1))
    said = T.attach(p.pid)[0]
    alive = p.poll() is None
    p.stdin.write("x")
    p.stdin.close()
    rest = p.stdout.read().splitlines()
    status = p.wait()
    check(alive and status == 0, f"{name}: alive {alive}, status {status}, {rest}")
    if name in BORROWED:
        check(said.err == 0 and rest == ["calls 1"], f"{name}: {said}, {rest}")
    else:
        check(said.err == -11 and said.stage == 0 and REFUSED[name] in said.why, f"{name}: {said}")
        check("calls 1" not in rest, f"{name}: the library came in")


def spin():
    """Registers, vector and floating point state, red zone, errno, mask: many times over."""
    p = T.start(T.program("trace_spin"))
    said = T.attach(p.pid, TIMES)
    os.kill(p.pid, signal.SIGUSR1)
    rest = p.stdout.read().splitlines()
    status = p.wait()
    check(status == 0 and rest == ["same", f"calls {TIMES}"], f"spin: status {status}, {rest}")
    check(len(said) == TIMES and all(a.err == 0 for a in said), "spin:", said)


T.need_root()
names = subprocess.run([PLACES, "-l"], capture_output=True, text=True, check=True).stdout.split()
check(set(names) == BORROWED | set(REFUSED), "names:", names)
spin()
with ThreadPoolExecutor(4) as pool:
    for done in [pool.submit(one, name) for name in names]:
        done.result()
sys.exit(check.end())
