#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 600
"""
Whoever borrows a thread dies, at every step and at any instant: the thread goes home, as it was, and
can be borrowed again. And the process dies, stops, forks or becomes another one at every step: both
sides end as they must.
"""
import glob
import os
import random
import re
import select
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tracing as T  # noqa: E402

SPIN = T.program("trace_spin")
LIFE = T.program("trace_life")
CALLS = T.program("trace_calls")
RANDOM_KILLS = 60

check = T.Checks()


def points():
    """The names of the steps, as the sources have them."""
    found = set()
    for name in glob.glob(os.path.join(T.TOP, "loader/tracer/*.c")):
        with open(name, encoding="utf-8") as f:
            found |= set(re.findall(r'FAULT_POINT\("(trace-[a-z-]+)"\)', f.read()))
    return sorted(found)


def is_free(pid):
    """Nobody traces it, none of its threads is stopped; False also if one ends just now."""
    try:
        for tid in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{tid}/status", encoding="ascii") as f:
                text = f.read()
            if not re.search(r"^TracerPid:\t0$", text, re.M) or re.search(r"^State:\t[tT]", text, re.M):
                return False
        return True
    except (FileNotFoundError, ProcessLookupError):
        return False


def faulty(pid, fault):
    """Starts the tool that ends, or stops, at that step."""
    return subprocess.Popen([T.FAULT_TOOL, T.LIBRARY, str(pid)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, text=True,
                            env={**os.environ, "GPUCOLLECT_FAULT": fault})


def killed_at(fault):
    """Dies there; what was spinning must find everything as it was, three times over."""
    p = T.start(SPIN)
    tool = faulty(p.pid, fault)
    said = tool.stdout.read()
    died = tool.wait() == -signal.SIGKILL
    check(T.wait_until(lambda: is_free(p.pid), 20), f"{fault}: not let go")
    after = T.attach(p.pid, 2)
    os.kill(p.pid, signal.SIGUSR1)
    rest = p.stdout.read().splitlines()
    status = p.wait()
    check(status == 0 and rest[:1] == ["same"], f"{fault}: status {status}, {rest}")
    check([a.err for a in after] == [0, 0], f"{fault}: not borrowed again: {after}")
    if not died:
        check(said.startswith("err="), f"{fault}: neither dead nor done: {said!r}")
    return died


def killed_in_call(fault, name):
    """The same with a thread that sleeps in a system call."""
    p = T.start(CALLS, name)
    T.wait_until(lambda: T.sleeps_in(p.pid))
    tool = faulty(p.pid, fault)
    tool.stdout.read()
    tool.wait()
    check(T.wait_until(lambda: is_free(p.pid), 20), f"{fault}, {name}: not let go")
    number = {"futex": 202, "sigsuspend": 130}[name]
    check(T.wait_until(lambda: T.sleeps_in(p.pid, number), 20),
          f"{fault}, {name}: it doesn't sleep again")
    p.stdin.write("x")
    p.stdin.close()
    rest = p.stdout.read()
    p.wait()
    wanted = {"futex": "result 0 errno 0", "sigsuspend": "result -1 errno 4"}[name]
    mask = {"futex": "mask 0", "sigsuspend": "mask 8000200"}[name]
    check(rest.startswith(wanted) and rest.endswith(mask + "\n"), f"{fault}, {name}: {rest!r}")


def killed_anywhen():
    p, q = T.start(SPIN), T.start(LIFE)
    deaths = 0
    for i in range(RANDOM_KILLS):
        pid = (p, q)[i % 2].pid
        tool = subprocess.Popen([T.TOOL, T.LIBRARY, str(pid), "100"], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL)
        time.sleep(random.uniform(0, 0.05))
        tool.kill()
        deaths += tool.wait() == -signal.SIGKILL
        if not check(T.wait_until(lambda: is_free(pid), 20), "killed anywhen: not let go"):
            break
    check(deaths > RANDOM_KILLS / 2, f"{deaths} deaths of {RANDOM_KILLS}")
    for target in (p, q):
        said = T.attach(target.pid)
        check([a.err for a in said] == [0], "killed anywhen: then not borrowed:", said)
    os.kill(p.pid, signal.SIGUSR1)
    os.kill(q.pid, signal.SIGTERM)
    check(p.stdout.read().startswith("same") and p.wait() == 0, "killed anywhen: spin is not the same")
    rest = q.stdout.read()
    check(rest.startswith("computed right") and q.wait() == 0, "killed anywhen:", rest)


# --- the process does something meanwhile -----------------------------------------------------

def is_stopped(tool):
    return T.status(tool.pid, "State").startswith("T")


def life(fault, act):
    """The tool stops at that step, the process acts, the tool goes on. (process, result, reached)"""
    p = T.start(LIFE)
    tool = faulty(p.pid, fault + ":stop")
    reached = T.wait_until(lambda: tool.poll() is not None or is_stopped(tool)) and tool.poll() is None
    act(p)
    if reached:
        tool.send_signal(signal.SIGCONT)
    line = tool.stdout.read().strip()
    tool.wait()
    try:
        return p, T.Attach(line), reached
    except ValueError as e:
        check(False, fault, e)
        return p, None, reached


def finish(name, p, first=""):
    if not check(T.wait_until(lambda: is_free(p.pid), 20), f"{name}: not let go"):
        p.kill()
    p.send_signal(signal.SIGTERM)
    rest = p.stdout.read()
    status = p.wait()
    check(status == 0 and rest.startswith(first) and "computed right" in rest and "failed" not in rest,
          f"{name}: status {status}, {rest!r}")


def target_killed(point):
    p, said, reached = life(point, lambda q: q.kill())
    check(p.wait() == -signal.SIGKILL, f"{point}, killed: status {p.returncode}")
    # What it was for may have been done by then.
    late = point in ("trace-started", "trace-loaded", "trace-attached", "trace-call-returned",
                     "trace-half-home", "trace-home")
    if reached:
        check(said and (said.err == -3 or (late and said.err == 0)), f"{point}, killed: {said}")


def target_stopped(point):
    def stop(q):
        q.send_signal(signal.SIGSTOP)
        # A thread that is held stops when it is let go.
        T.wait_until(lambda: T.status(q.pid, "State")[0] in "Tt")
    p, said, reached = life(point, stop)
    check(said and said.err in (0, -11, -110), f"{point}, stopped: {said}")
    check(T.wait_until(lambda: T.status(p.pid, "State").startswith("T"), 20),
          f"{point}, stopped: then it runs: {T.status(p.pid, 'State')}")
    p.send_signal(signal.SIGCONT)
    finish(f"{point}, stopped", p)


def target_executes(point):
    def execute(q):
        q.send_signal(signal.SIGUSR1)
        # It ends the others first; one that is held is there until its tracer has seen its end.
        select.select([q.stdout], [], [], 0.3)
    p, said, reached = life(point, execute)
    line = p.stdout.readline()
    check(line.startswith("again"), f"{point}, exec: {line!r}")
    # Found as another one, or gone, or found anew; never half of each.
    check(said and said.err in (0, -3, -11, -95), f"{point}, exec: {said}")
    finish(f"{point}, exec", p)


def target_forks(point):
    lines = []

    def fork(q):
        q.send_signal(signal.SIGUSR2)
        lines.extend([q.stdout.readline(), q.stdout.readline()])
    p, said, reached = life(point, fork)
    check(lines == ["child done\n", "forked\n"], f"{point}, fork: {lines}")
    check(said and said.err == 0, f"{point}, fork: {said}")
    finish(f"{point}, fork", p)


def sleeper_ends(point):
    """It is woken; if it is held, that waits until it is home."""
    p, said, reached = life(point, lambda q: q.send_signal(signal.SIGHUP))
    check(said and said.err == 0, f"{point}, thread's end: {said}")
    finish(f"{point}, thread's end", p, "sleeper woken")


T.need_root()
if not os.path.exists(T.FAULT_TOOL):
    print("no build with faults: make faults")
    sys.exit(77)
names = sys.argv[1:] or points()
check(len(names) > 15 or sys.argv[1:], "steps:", names)
work = []
with ThreadPoolExecutor(3) as pool:
    deaths = {n: [pool.submit(killed_at, f"{n}@{k}") for k in (1, 2, 3)] for n in names}
    for n in names:
        work += [pool.submit(killed_in_call, n, call) for call in ("futex", "sigsuspend")]
        work += [pool.submit(what, n) for what in (target_killed, target_stopped, target_executes,
                                                   target_forks, sleeper_ends)]
    for job in work:
        job.result()
    # All steps of a way that leads to its end are on it.
    UNUSUAL = {"trace-left", "trace-closed", "trace-unmapped"}
    for n in names:
        died = [job.result() for job in deaths[n]]
        check(any(died) or n in UNUSUAL, f"{n}: nobody passed there")
killed_anywhen()
sys.exit(check.end())
