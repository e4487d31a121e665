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
            "flock", "select_timed", "ppoll_timed"}
# These only the kernel can go on with, for what is left of their time: then they are restart_syscall.
TIMED = {"nanosleep_timed", "poll", "poll_timed", "futex_timed"}
# They block signals for the time of the call: that shows only once they are stopped, and they go on.
LOOKED_AT = {"sigsuspend_blocking", "ppoll_blocking"}
RESTART_SYSCALL = 219

check = T.Checks()


def run(name, attached):
    p = T.start(CALLS, name)
    T.wait_until(lambda: T.sleeps_in(p.pid))
    said = T.attach(p.pid)[0] if attached else None
    # Not asked of one that has woken up meanwhile.
    goes_on = not (attached and name in TIMED and T.sleeps_in(p.pid) and
                   not T.sleeps_in(p.pid, RESTART_SYSCALL) and T.sleeps_in(p.pid))
    try:
        p.stdin.write("x")
        p.stdin.close()
    except BrokenPipeError:
        pass    # it was one with a time limit
    rest = p.stdout.read()
    return rest, p.wait(), said, goes_on


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
    check(seen[3], f"{name}: begun again from the start")
    if name in BORROWED | TIMED:
        check(said.err == 0 and said.stage == 5, f"{name}: not attached: {said}")
    elif name in LOOKED_AT:
        check(said.err == -11 and 1 <= said.holds <= 4 and "only the kernel" in said.why, f"{name}: {said}")
    elif not name.endswith("_timed"):
        # Those with a time limit end before the search does, and may be borrowed then.
        check(said.err == -11 and said.holds == 0, f"{name}: stopped, or {said}")


def killed(name, point):
    """Whoever traces dies there: the wait is whole, or longer, and no error."""
    try:
        alone = run(name, False)
        for _ in range(5):  # on a busy machine the wait may be over before the tracer is there
            p = T.start(CALLS, name)
            T.wait_until(lambda: T.sleeps_in(p.pid))
            said = T.attach(p.pid, tool=T.FAULT_TOOL, env={"GPUCOLLECT_FAULT": point})
            rest, status = p.stdout.read(), p.wait()
            if not said:
                break
        check(not said, f"{name}: {point} was not passed: {said}")
    except (RuntimeError, ValueError, subprocess.TimeoutExpired) as e:
        check(False, name, point, e)
        return
    check((rest, status) == alone[:2], f"{name}, killed at {point}: {alone[:2]}, now {(rest, status)}")


POINTS = ("seized", "stopped", "prepared", "sent", "entered", "returned", "called", "call-returned",
          "half-home", "home")

T.need_root()
names = subprocess.run([CALLS, "-l"], capture_output=True, text=True, check=True).stdout.split()
check(len(names) > 30 and BORROWED | TIMED | LOOKED_AT <= set(names), "names:", names)
with ThreadPoolExecutor(4) as pool:
    list(pool.map(one, names))
    list(pool.map(killed, *zip(*((name, "trace-" + point) for point in POINTS
                                 for name in ("nanosleep_timed", "poll_timed", "futex_timed")))))
sys.exit(check.end())
