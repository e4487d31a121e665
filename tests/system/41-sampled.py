#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 400
"""Where not every launch is looked at: numbers are exact by kernel, and by path where each has a shape or a
place of the stack of its own; what two paths share is divided by chance, as far off as chance may be.

The virtual device's kernels take as long as they are told, so that times are exact where numbers are.
"""
import json
import math
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402

check = L.Checks()
shown = 0
FIRST = 8   # launches of a shape from one place that are all looked at


def show(r):
    global shown
    if check.failures > shown:
        r.show()
    shown = check.failures


def looked_at(r):
    """Of how many: (looked at, made)."""
    for line in r.said:
        m = re.match(r"looked at ([\d,]+) of ([\d,]+) launches and copies", line)
        if m:
            return tuple(int(n.replace(",", "")) for n in m.groups())
    return 0, 0


def paths(mode, how, metric):
    """Twelve paths, each in a place of its own."""
    what = f"{mode} {metric} {' '.join(how)}"
    r = L.run([f"{L.PROGRAMS}/gpu_paced", "4", "0", "100000", "3000"], *how, mode=mode, metric=metric, timeout=120)
    made = sum(c.launches for c in L.account(r.out))
    L.compare(check, what, r, metric)
    check(r.launches() == made == r.timed(), f"{what}: {r.launches()} launches, {r.timed()} timed of {made}")
    seen, of = looked_at(r)
    check(of == made, f"{what}: looked at {seen} of {of}, made {made}")
    show(r)
    return seen, made


def one_of(n):
    seen, made = paths("library", ["--launches", str(n)], "gpu")
    # Of a stratum of m launches the first ones, then ever fewer, till it is one of n.
    least, most = made / n, made / n + 12 * (FIRST + 8 * n * math.log(n))
    check(least <= seen <= most, f"one of {n}: {seen} of {made}, not {least:.0f} to {most:.0f}")


def shared(mode):
    """Two paths in one place of the stack, two launches of the one for each of the other."""
    n, rounds = 10, 6000
    r = L.run([f"{L.PROGRAMS}/gpu_chains", str(rounds), "7000"], "--launches", str(n), mode=mode,
              metric="launches", timeout=120)
    chains = L.account(r.out)
    check(r.launches() == sum(c.launches for c in chains), f"{mode}, shared: {r.launches()} launches")
    kernels = r.by_kernel()
    for kernel in {c.kernel for c in chains}:
        want = sum(c.launches for c in chains if c.kernel == kernel)
        check(kernels[kernel] == want, f"{mode}, shared: {kernel}: {kernels[kernel]} instead of {want}")
    got = L.Attribution(r.stacks, chains)
    ours = [c for c in chains if c.kernel == "spin_shared"]
    check(len(ours) == 2, f"{mode}, shared: {ours}")
    made = sum(c.launches for c in ours)
    for c in ours:
        part = c.launches / made
        # Two of 2 n, for each block: no better than by chance, no worse than two thirds of it being choice.
        error = math.sqrt(made * n * part * (1 - part))
        check(abs(got.weight[c] - c.launches) < 5 * error,
              f"{mode}, shared: {c.path}: {got.weight[c]}, not {c.launches} +- {error:.0f}")
    check(any(got.weight[c] != c.launches for c in ours), f"{mode}, shared: all was looked at")
    show(r)


def budget():
    """Ten times the budget looks at more, and a short program is seen whole."""
    seen = [paths("library", ["--launches", "auto", "--overhead", share], "gpu")[0] for share in ("0.1", "10")]
    check(0 < seen[0] < seen[1], f"budget: {seen}")
    r = L.run([f"{L.PROGRAMS}/gpu_chains", "5", "7000"], "--launches", "auto", "--overhead", "100")
    L.compare(check, "a short program", r, "gpu")
    check(not looked_at(r)[0], f"a short program: {looked_at(r)}")


def chained(mode, how):
    """Kernels that may overlap have widths, too, by those few launches that had a bracket of their own."""
    n, unit = 6000, 5000
    what = f"{mode}, chained: {how}"
    words = f"( c A B sync )*{n}".split()
    r = L.run([f"{L.PROGRAMS}/gpu_runs", *words], "--launches", how, mode=mode, metric="gpu", timeout=120,
              gate="cuMemAlloc_v2", RUNS_NS=str(unit))
    check(r.status == 0 and r.launches() == r.timed() == 3 * n, f"{what}: {r.launches()}, {r.timed()} timed")
    kernels = r.by_kernel()
    check(set(kernels) == {"spin_a", "spin_b", "spin_c"}, f"{what}: {kernels}")
    for kernel, times in (("spin_c", 4), ("spin_a", 1), ("spin_b", 2)):
        want = n * times * unit
        check(abs(kernels[kernel] - want) <= want / 50, f"{what}: {kernel} {kernels[kernel]} instead of {want}")
    show(r)


def as_json():
    path = os.path.join(L.TMP, "j.folded")
    r = subprocess.run([L.GPUCOLLECT, "--json", "--launches", "50", "--no-inlines", "-y", "-o", path, "--",
                        f"{L.PROGRAMS}/gpu_paced", "1", "0", "50000", "3000"], env=L.environment(), timeout=100,
                       stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    L.skip_without_bpf(r.returncode, r.stderr)
    said = [json.loads(line) for line in r.stderr.splitlines() if line.startswith('{"gpucollect":"summary"')]
    check(len(said) == 1, f"json: {r.stderr}")
    s = said[0]
    check((s["launches"], s["timed"], s["looked_at_of"]) == (50000, 50000, 50000) and
          1000 <= s["looked_at"] < 5000 and s["estimated"] >= 50000 - s["looked_at"], f"json: {s}")
    # All launches of a path take the same time here; of the last block of each only one half may be there.
    check(s["gpu_error_ns"] < s["gpu_ns"] / 200 and s["gpu_ns"] == sum(c.ns for c in L.account(r.stdout)),
          f"json: {s}")


def again():
    """A second capture of the same process counts from nothing."""
    t = L.Launching(check, pace=20000)
    made, seen = [], []
    for i in range(2):
        before = t.made()
        path = os.path.join(L.TMP, f"again-{i}.folded")
        g = L.Attached([t.pid], "--launches", "7", "--metric", "launches", "--no-inlines", "-y", "-o", path)
        g.wait_recording()
        t.at_least(t.made() + 20000 * (2 - i))
        g.process.send_signal(2)
        g.process.wait(timeout=60)
        made.append(t.made() - before)
        seen.append(sum(s.weight for s in L.read(path)))
        check(0.2 * made[i] < seen[i] <= made[i], f"again, {i}: {seen[i]} of {made[i]}: {g.said()}")
        time.sleep(0.1)
    t.end("again")


one_of(20)
one_of(1000)
for how in (["--launches", "auto"], ["--launches", "auto", "--overhead", "0.01"], ["--launches", "3"]):
    paths("attached", how, "gpu")
    paths("library", how, "launches")
shared("library")
shared("attached")
for how in ("20", "auto"):
    chained("library", how)
    chained("attached", how)
budget()
as_json()
again()
sys.exit(check.status())
