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
