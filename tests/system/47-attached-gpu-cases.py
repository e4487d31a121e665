#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 200
"""The launch programs of tests/cases to which somebody attaches while they sleep, or are confined."""
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches
from launches import TMP, Attached, environment, is_entered, wait_for

if os.geteuid():
    print("skipped: needs root")
    sys.exit(launches.SKIP)
check = launches.Checks()


def start(*argv, kind="simcuda"):
    return subprocess.Popen(argv, env=environment(kind), stdin=subprocess.PIPE, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=1)


def attach(process, name, *more, mode="attached"):
    path = os.path.join(TMP, name)
    a = Attached([process.pid], *launches.options(mode, "launches"), "-y", "-o", path, *more)
    a.wait_recording()
    launches.skip_without_bpf(a.process.poll(), a.said())
    return a, path


def end(a, path, out):
    status = a.process.wait(timeout=60)
    return launches.Run(status, out, a.said(), path)


def replay():
    """G-05: made before, attached to in its sleep of some seconds, then replayed."""
    for mode in ("attached", "attached-probes"):
        p = start(os.path.join(launches.CASES, "replay"), "20000", "6000")
        first = p.stdout.readline()
        check(first.startswith("ready"), f"G-05: {first}")
        a, path = attach(p, "replay.folded", mode=mode)
        check(is_entered(p.pid, "simcuda", mode), f"G-05 {mode}: recording before it was entered")
        out = p.stdout.read()
        m = re.fullmatch(r"20000 replays, 0 failures, resident \d+ kB after a tenth, \d+ kB at the end\n", out)
        check(m and p.wait() == 0, f"G-05 {mode}: {p.wait()}, {out}")
        r = end(a, path, out)
        check(r.status == 0 and r.launches() == r.total() == 20000,
              f"G-05 {mode}: status {r.status}, {r.launches()} launches, {r.total()} written")
        if mode == "attached":
            check(r.by_kernel() == {"[graph]": 20000}, f"G-05: {r.by_kernel()}")


def filtered():
    """E-05: a filter that kills, or answers EPERM, was there before."""
    for way in ("kill", "errno"):
        p = start(os.path.join(launches.CASES, "filtered"), way, "6")
        wait_for(lambda pid=p.pid: launches_under_filter(pid), "the filter")
        a, path = attach(p, "filtered.folded")
        out = p.stdout.read()
        m = re.fullmatch(r"survived (\d+) launches, 0 failed\n", out)
        check(m and p.wait() == 0, f"E-05 {way}: {p.wait()}, {out}")
        r = end(a, path, out)
        check(r.status == 0 and m and 0 < r.launches() == r.total() <= int(m[1]),
              f"E-05 {way}: status {r.status}, {r.total()} launches of {out}")
        told = [s for s in r.complaints() if "filter" in s]
        check(len(told) == 1, f"E-05 {way}: told why there are no times: {r.complaints()}")
        check(not r.timed(), f"E-05 {way}: {r.timed()} timed")


def launches_under_filter(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return "Seccomp:\t2\n" in f.read()


def made(p, and_do="?"):
    p.stdin.write(and_do)
    p.stdin.flush()
    return int(p.stdout.readline().split()[1])


def confined_later():
    """The filter comes while the program is recorded: whoever leaves then must not trip it."""
    for kind in ("simcuda", "simcuda-relro"):
        for how in ("told", "killed"):
            p = start(os.path.join(launches.PROGRAMS, "gpu_until"), kind=kind)
            p.stdout.readline()
            a, path = attach(p, "confined.folded")
            wait_for(lambda pid=p.pid, k=kind: is_entered(pid, k, "attached"), "entered")
            first = made(p)
            wait_for(lambda p=p, n=first + 200: made(p) > n, "launches")
            made(p, "f")
            # Silence is noticed after two seconds; the filter must be known by then.
            if how == "killed":
                wait_for_looks(a)
            a.process.send_signal(signal.SIGINT if how == "told" else signal.SIGKILL)
            a.process.wait(timeout=60)
            wait_for(lambda pid=p.pid: len(os.listdir(f"/proc/{pid}/task")) == 3, "the library's end")
            p.stdin.close()
            out = p.stdout.read()
            check(p.wait() == 0 and "total" in out, f"{kind}, {how}: {p.wait()}, {out}")
            if how == "told":
                r = end(a, path, out)
                check(r.status == 0 and r.timed(), f"{kind}: status {r.status}, {r.timed()} timed")


def wait_for_looks(a):
    """Until the collector has lived for another two seconds of its own ticks, which look once a second."""
    for answers in (1, 2, 3):
        a.process.send_signal(signal.SIGUSR1)
        wait_for(lambda n=answers: a.said().count("; recording goes on") >= n, "an answer")
        launches.time.sleep(1.2)


for case in (replay, filtered, confined_later):
    before = check.failures
    case()
    print("ok   " if check.failures == before else "WRONG", case.__name__, flush=True)
sys.exit(check.status())
