#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
"""
A thread blocked in a system call is borrowed, or left alone, and in either case the call ends as it
would have. What happens to each call is by the kernel's rules (signal(7), and the sources: which of them
end with -ERESTARTSYS, -ERESTARTNOHAND or -ERESTARTNOINTR when a thread is stopped, which with
-ERESTART_RESTARTBLOCK or -EINTR).
"""
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tracing as T  # noqa: E402

CALLS = T.program("trace_calls")
# These go on by themselves, without anything but their arguments.
BORROWED = {"futex", "pause", "sigsuspend", "wait4", "waitid", "clock_abs_timed", "ppoll", "select",
            "read_pipe", "read_eventfd", "read_inotify", "read_timerfd_timed", "read_signalfd",
            "flock"}

check = T.Checks()


def run(name, attached):
    p = T.start(CALLS, name)
    T.wait_until(lambda: T.sleeps_in(p.pid))
    said = T.attach(p.pid)[0] if attached else None
    try:
        p.stdin.write("x")
        p.stdin.close()
    except BrokenPipeError:
        pass    # it was one with a time limit
    rest = p.stdout.read()
    return rest, p.wait(), said


def one(name):
    try:
        alone = run(name, False)
        seen = run(name, True)
    except (RuntimeError, ValueError, subprocess.TimeoutExpired) as e:
        check(False, name, e)
        return
    said = seen[2]
    if not check(alone[:2] == seen[:2] and alone[1] == 0 and alone[0].startswith("result"),
                 f"{name}: alone {alone[:2]}, attached {seen[:2]}"):
        return
    if name in BORROWED:
        check(said.err == 0 and said.stage == 5, f"{name}: not attached: {said}")
    elif not name.endswith("_timed"):
        # Those with a time limit end before the search does, and may be borrowed then.
        check(said.err == -11 and said.holds == 0, f"{name}: stopped, or {said}")


T.need_root()
names = subprocess.run([CALLS, "-l"], capture_output=True, text=True, check=True).stdout.split()
check(len(names) > 30 and BORROWED <= set(names), "names:", names)
with ThreadPoolExecutor(4) as pool:
    list(pool.map(one, names))
sys.exit(check.end())
