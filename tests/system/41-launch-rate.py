#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 400
# alone: 50,000 launches a second
"""Many launches a second: none lost and none given to another path, or counted as lost.

LAUNCH_SECS=30 makes the paced runs longer (8).
"""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402

SECS = float(os.environ.get("LAUNCH_SECS", "8"))
check = L.Checks()
shown = 0


def show(r):
    """What a run said, if it failed."""
    global shown
    if check.failures > shown:
        r.show()
    shown = check.failures


def paced(mode, rate, seconds):
    what = f"{mode}, {rate} a second for {seconds:g} s"
    r = L.run([f"{L.PROGRAMS}/gpu_paced", "4", str(rate), f"{seconds:g}"], mode=mode,
              metric="launches", timeout=seconds * 4 + 60)
    L.compare(check, what, r, "launches", named=not L.by_probes(mode))
    made = sum(c.launches for c in L.account(r.out))
    check(made == rate * seconds, f"{what}: the program made {made}")
    check(r.launches() == made and r.lost() == 0, f"{what}: {r.launches()} of {made}, {r.lost()} lost")
    if not L.by_probes(mode):
        check(r.timed() + r.untimed() == made, f"{what}: {r.timed()} timed, {r.untimed()} not")
        check(r.untimed() == 0, f"{what}: {r.untimed()} without a time")
    show(r)


def settle(what, r, named):
    """Nothing under a wrong path; what is missing is counted."""
    chains = L.account(r.out)
    if not named:
        chains = L.merge(c._replace(kernel=L.UNKNOWN) for c in chains)
    got = L.Attribution([s for s in r.stacks if s.frames != ["[no stack]"]], chains)
    made = sum(c.launches for c in chains)
    for c in chains:
        check(got.weight[c] <= c.launches, f"{what}: {got.weight[c]} of {c.launches} in {c.path}")
    check(not got.strange, f"{what}: stacks of no chain: {got.strange[:3]}")
    check(r.total() + r.lost() == made, f"{what}: {r.total()} written + {r.lost()} lost, made {made}")
    show(r)
    return made


def unpaced(mode, count):
    r = L.run([f"{L.PROGRAMS}/gpu_paced", "4", "0", str(count)], mode=mode, metric="launches",
              timeout=150)
    settle(f"{mode}, unpaced", r, not L.by_probes(mode))
    check(not r.complaints(), f"{mode}, unpaced: {r.complaints()}")


def state(pid):
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(child) for child in f.read().split()]


def stopped(mode, count, until):
    """gpucollect stands still meanwhile, so that rings run over."""
    path = os.path.join(L.TMP, "o.folded")
    argv = [L.GPUCOLLECT, *L.options(mode, "launches"), "-y", "-o", path, "--",
            f"{L.PROGRAMS}/gpu_paced", "4", "0", str(count)]
    g = subprocess.Popen(argv, env=L.environment(), stdin=subprocess.DEVNULL, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    # The command runs once its threads do.
    while not children(g.pid) or len(os.listdir(f"/proc/{children(g.pid)[0]}/task")) < 4:
        time.sleep(0.01)
    child = children(g.pid)[0]
    os.kill(g.pid, signal.SIGSTOP)
    until(child)
    os.kill(g.pid, signal.SIGCONT)
    out, err = g.communicate(timeout=120)
    r = L.Run(g.returncode, out, err, path)
    check(r.status == 0, f"{mode}, stopped: status {r.status}")
    if any("gave up" in s for s in r.complaints()):
        print(f"note: {mode}: it was stopped for longer than the library waits")
        return r
    settle(f"{mode}, stopped", r, mode == "library")
    return r


def to_its_end(child):
    end = time.monotonic() + 120
    while state(child) != "Z" and time.monotonic() < end:
        time.sleep(0.05)


paced("library", 50000, SECS)
paced("probes", 50000, SECS / 2)
paced("attached", 50000, SECS / 2)
unpaced("library", 100000)
unpaced("attached", 100000)
unpaced("probes", 100000)
# The ring holds some 280,000 records: these have to run over.
r = stopped("probes", 120000, to_its_end)
check(r.lost() > 0, f"probes, stopped: nothing was lost, so this shows nothing: {r.said}")
stopped("library", 60000, lambda child: time.sleep(1))
sys.exit(check.status())
