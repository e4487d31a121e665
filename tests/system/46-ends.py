#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 600
"""Launches of programs that end, fork, exec, capture, chain, queue up and replace their contexts.

Status and output are the program's own; every launch that its account has is counted under its path
and process, with the cause where it has no time; those that failed or were captured are not.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402

check = L.Checks()
STATS = os.path.join(L.TMP, "stats")


def run(program, *args, mode="library", metric="launches", status=0, kind="simcuda", **extra):
    r = L.run([f"{L.PROGRAMS}/{program}", *args], mode=mode, metric=metric, kind=kind,
              STANDIN_STATS=STATS, STANDIN_CRASH="1", **extra)
    r.what = f"{program} {' '.join(args)} {mode} {metric} {kind}"
    r.stats = L.stats(STATS)
    check(r.status == status, f"{r.what}: status {r.status}")
    check(not r.stats["stale"] and not r.stats["after_fork"], f"{r.what}: {dict(r.stats)}")
    check(not r.lost(), f"{r.what}: {r.lost()} lost")
    return r


def compare(r, metric="launches", mode="library", without=()):
    """All chains; for GPU time without those whose kernels had not ended."""
    chains = L.account(r.out)
    if metric == "gpu":
        chains = [c for c in chains if c not in without]
    L.compare(check, r.what, r, metric, chains, named=not L.by_probes(mode))
    return sum(c.launches for c in L.account(r.out))


DEPTH = "969"
FIRST = 100         # launches of the image that was attached to; the next one launches while it is entered


def ends():
    """Each way to end (the statuses stand at the head of gpu_ends.c)."""
    for how, status in (("return", 0), ("exit", 5), ("_exit", 6), ("abort", 134), ("term", 143),
                        ("kill", 137), ("running", 0), ("thread", 0), ("atexit", 0), ("late", 0),
                        ("exec", 0), ("fork", 0), ("before", 0)):
        under_way = how in ("exit", "_exit", "abort", "term", "kill", "running", "atexit")
        for mode in ("library", "attached"):
            r = run("gpu_ends", how, status=status, mode=mode)
            made = compare(r, mode=mode)
            check(r.launches() == made == r.timed() + (r.untimed() or 0) and
                  FIRST <= r.timed() if mode == "attached" and how in ("exec", "fork") else
                  r.launches() == made and r.timed() == made - under_way,
                  f"{r.what}: {r.launches()} launches, {r.timed()} timed, made {made}")
            if under_way:
                check(r.number(r"no end seen \(([\d,]+)\)") == 1, f"{r.what}: it says {r.said}")
        # The same in time; and by probes in the driver, in which all calls are seen.
        if how in ("running", "kill", "exec", "fork", "before", "thread", "atexit"):
            r = run("gpu_ends", how, metric="gpu", status=status)
            compare(r, "gpu", without=[c for c in L.account(r.out)
                                       if c.kernel == "spin_last" or "at_exit" in c.path])
            r = run("gpu_ends", how, mode="probes", status=status)
            if how != "fork":	# a child's launch that is refused can't be told there
                compare(r, mode="probes")
    for kind in ("simcuda-relro", "simcuda-old"):
        for how, status in (("return", 0), ("kill", 137), ("fork", 0)):
            for mode in ("library", "attached"):
                r = run("gpu_ends", how, status=status, kind=kind, mode=mode)
                chains = L.account(r.out)
                check(r.total() == sum(c.launches for c in chains),
                      f"{r.what}: {r.total()} launches: {r.said}")


def failed():
    """Launches that the driver refuses are not counted, and said."""
    for mode in ("library", "attached"):
        r = run("gpu_chains", "20", "1000", status=1, mode=mode,
                STANDIN_FAULT="cuLaunchKernel:20:719,cuLaunchKernelEx:3:701")
        compare(r)
        total = re.search(r"^total (\d+) (\d+)$", r.out, re.M)
        check((r.launches(), total[2]) == (int(total[1]), "2"), f"{r.what}: {r.launches()}, {total[0]}")
        check(r.number(r"launch failed: (\d+)") == 2, f"{r.what}: it says {r.said}")


def refused_events():
    """Calls made for timing that the driver refuses cost times, not launches."""
    for fault, least in (("cuEventRecord:100:2", 230), ("cuEventRecord:1+:2", 0),
                         ("cuEventCreate:1+:2", 0), ("cuEventElapsedTime_v2:5:2", 0)):
        r = run("gpu_chains", "20", "1000", STANDIN_FAULT=fault)
        made = compare(r)
        check(made == 240 == r.launches() == r.timed() + r.untimed() and r.timed() >= least,
              f"{r.what} {fault}: {r.launches()} launches, {r.timed()} timed, {r.untimed()} not")


def captured():
    for mode in ("library", "attached"):
        r = run("gpu_capture", "9", "3", metric="gpu", mode=mode, gate="cuModuleGetFunction")
        compare(r, "gpu")
        check(r.number(r"captured into a graph: ([\d,]+)") == r.stats["captured"] == 9 * 3 * 6,
              f"{r.what}: {r.stats['captured']} captured, it says {r.said}")
        r = run("gpu_capture", "9", "3", mode=mode, gate="cuModuleGetFunction")
        compare(r)
    # In the middle of a capture, and after it: what the program sees of them is as ever.
    for gate in ("cuStreamBeginCapture_v2", "cuStreamEndCapture"):
        r = run("gpu_capture", "9", "3", mode="attached", gate=gate)
        made = sum(c.launches for c in L.account(r.out))
        check(0 < r.launches() <= made and r.own == 0,
              f"{r.what} {gate}: {r.launches()} of {made}, gpucollect's status {r.own}")


def chained():
    """Nothing is put between launches that may overlap: all of them still do."""
    # Long kernels: a launch that the machine delays by more than six of them comes too late to overlap.
    # Then it is looked at again.
    for mode in ("library", "attached"):
        for _ in range(5):
            r = run("gpu_pdl", "20", "8", "20000000", mode=mode)
            if "kept 20 of 20" in r.out:
                break
        check("kept 20 of 20" in r.out, f"{r.what}: {r.out}")
        made = compare(r)
        check(r.timed() == made, f"{r.what}: {r.timed()} timed, {r.untimed()} not")
        check(any("timed in runs" in s for s in r.said), f"{r.what}: {r.said}")


def queued_up():
    """Hundreds of launches behind a wait that the same thread ends: the queue must not fill up."""
    for mode in ("library", "attached"):
        # 95 % of what the queue holds; also where many were under way, whose ends are seen only then.
        for args in ((DEPTH, "3"), (DEPTH, "3", "20000", "400"), (DEPTH, "3", "20000", "0", "20000", "2")):
            r = run("gpu_hold", *args, STANDIN_QUEUE="1022", mode=mode)
            made = compare(r)
            check(made == r.launches() == r.timed() + r.untimed() and r.timed() > 0,
                  f"{r.what}: {r.launches()} launches, {r.timed()} timed, {r.untimed()} not")
    # Few are timed, the first of each round above all, which are shorter: the sum is right for all that.
    # By simulation its standard deviation is 1.5 %.
    r = run("gpu_hold", DEPTH, "12", "20000", "0", "80000", STANDIN_QUEUE="1022", metric="gpu")
    chains = L.account(r.out)
    got = L.Attribution(r.stacks, chains)
    want = sum(c.ns for c in chains)
    check(not got.strange and abs(sum(got.weight[c] for c in chains) / want - 1) < 0.075,
          f"{r.what}: {sum(got.weight[c] for c in chains)} ns of {want}")


def replaced():
    """Handles come again: no launch under another's name, none with another's time."""
    for mode in ("library", "attached"):
        r = run("gpu_contexts", "40", mode=mode)
        made = compare(r)
        check(r.launches() == made, f"{r.what}: {r.launches()} of {made}")
        r = run("gpu_contexts", "40", metric="gpu", mode=mode)
        chains = L.account(r.out)
        got = L.Attribution(r.stacks, chains)
        check(not got.strange, f"{r.what}: {got.strange[:3]}")
        for c in chains:
            # Every second context goes while its kernels are under way.
            exact = c.kernel != "spin_even"
            check(got.weight[c] == c.ns if exact else got.weight[c] <= c.ns,
                  f"{r.what}: {c.kernel}: {got.weight[c]} of {c.ns}")


def threads():
    """Threads that launch and end, more than there are places for."""
    for mode in ("library", "attached"):
        compare(run("gpu_paced", "16", "0", "300", mode=mode))


wanted = sys.argv[1:]
for part in (ends, failed, refused_events, captured, chained, queued_up, replaced, threads):
    if not wanted or part.__name__ in wanted:
        before = check.failures
        part()
        print("ok   " if check.failures == before else "WRONG", part.__name__, flush=True)
sys.exit(check.status())
