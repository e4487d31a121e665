#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
"""Launches and GPU time by call path are exactly those of the programs' own accounts.

Every chain, every kernel, every form of driver, with the library and by probes: counts exact,
durations to the nanosecond of the device's clock, and nothing else in the output.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402

check = L.Checks()


def whole(what, r, timed=True):
    """Nothing was lost on the way."""
    total = sum(c.launches for c in L.account(r.out))
    check(r.status == 0, f"{what}: status {r.status}")
    check(r.launches() == total, f"{what}: {r.launches()} launches instead of {total}")
    check(r.lost() == 0, f"{what}: {r.lost()} lost")
    if timed:
        check(r.timed() == total, f"{what}: {r.timed()} timed instead of {total}")


def side_by_side(n):
    """Several at a time share the timing library's file, and with it its probes."""
    def start(i):
        path = os.path.join(L.TMP, f"side-{i}.folded")
        return path, subprocess.Popen(
            [L.GPUCOLLECT, "--no-inlines", "--launches", "all", "-o", path, "--", f"{L.PROGRAMS}/gpu_paced", "2", "2000",
             "1"],
            env=L.environment(), stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)

    for i, (path, process) in enumerate([start(i) for i in range(n)]):
        out, err = process.communicate(timeout=60)
        r = L.Run(process.returncode, out, err, path)
        L.compare(check, f"side by side, {i}", r, "gpu")
        whole(f"side by side, {i}", r)


def one(program, *args, mode="library", metric="gpu", kind="simcuda", **extra):
    what = f"{program} {' '.join(args)} {mode} {metric} {kind}"
    r = L.run([f"{L.PROGRAMS}/{program}", *args], mode=mode, metric=metric, kind=kind, **extra)
    # Entries of old drivers jump to their work: with the hook in between they leave no frame.
    L.compare(check, what, r, metric, named=not L.by_probes(mode),
              entry=kind != "simcuda-old" or L.by_probes(mode))
    whole(what, r, timed=not L.by_probes(mode))
    if check.failures:
        r.show()
    return r


def groups(lines):
    """The device's launches, those together that overlap: dependent ones with the one before."""
    heads, before, found = set(), None, []
    for kernel, dependent, start, end in lines:
        # The first time that a kernel has one behind it comes unexpected. And the program waits now and then.
        if found and dependent and (before is None or before in heads) and start < found[-1][-1][2]:
            found[-1].append((kernel, start, end))
        else:
            found.append([(kernel, start, end)])
        if dependent and before:
            heads.add(before)
        before = None if dependent else kernel
    return found


def in_runs(words, mode):
    """What is timed as a run is shared out among its launches, and nothing is lost of it."""
    truth = os.path.join(L.TMP, "truth")
    if os.path.exists(truth):
        os.remove(truth)
    what = f"runs {mode}: {words}"
    r = L.run([f"{L.PROGRAMS}/gpu_runs", *words.split()], metric="gpu", mode=mode, gate="cuMemAlloc_v2",
              STANDIN_TRUTH=truth, STANDIN_ALWAYS_BUSY="1")
    with open(truth, encoding="utf-8") as f:
        lines = [line.split() for line in f]
    together = groups([(w[3], w[2] == "cuLaunchKernelEx", int(w[9]), int(w[10])) for w in lines])
    ns = [max(end for _, _, end in g) - min(start for _, start, _ in g) for g in together]
    shared = [g for g in together if len(g) > 1]
    check(r.status == 0 and r.launches() == r.timed() == len(lines), f"{what}: status {r.status}, "
          f"{r.launches()} launches, {r.timed()} timed of {len(lines)}")
    # (the driver's times are floats)
    check(abs(r.total() - sum(ns)) <= sum(1 + n / 2**23 for n in ns), f"{what}: {r.total()} ns not {sum(ns)}")
    estimated = r.number(r"([\d,]+) of them by an estimate")
    check(estimated == sum(map(len, shared)), f"{what}: {estimated} by an estimate, not {shared}")
    times = r.by_kernel()
    check(set(times) == {kernel for g in together for kernel, _, _ in g} and all(times.values()), f"{what}: {times}")
    if check.failures:
        r.show()


# alone and with others, and kernels that are never alone
for each in ("library", "attached"):
    in_runs("a A sync ( c a A B ctx d A d sync )*6", each)
    in_runs("A B A ctx ( A A B C )*20 sync D C B A sync", each)
for kind in ("simcuda", "simcuda-relro", "simcuda-old", "simcuda-high"):
    one("gpu_chains", "100", "7000", kind=kind)
    one("gpu_chains", "100", "7000", mode="attached", kind=kind)
one("gpu_chains", "50", "33", metric="launches")
for kind in ("simcuda", "simcuda-relro", "simcuda-old", "simcuda-odd", "simcuda-high"):
    one("gpu_chains", "50", "7000", mode="probes", metric="launches", kind=kind)
    one("gpu_chains", "50", "7000", mode="attached-probes", metric="launches", kind=kind)
# Attached to before the first context, and before anything of a module is known.
for gate in ("cuInit", "cuModuleLoadData", "cuModuleGetFunction"):
    one("gpu_chains", "20", "7000", mode="attached", gate=gate)
one("gpu_paced", "4", "10000", "1", mode="attached")
one("gpu_paced", "4", "10000", "1")
one("gpu_paced", "4", "10000", "1", metric="launches")
one("gpu_paced", "4", "10000", "1", mode="probes", metric="launches")
# Kernels as short as there can be.
one("gpu_chains", "3", "2")
side_by_side(4)

sys.exit(check.status())
