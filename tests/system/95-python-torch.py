#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
"""Launches of PyTorch have the Python frames that the interpreter had.

Where a PyTorch of Debian 12 is installed (python3-torch; it needs no GPU), each of its operations
launches on the virtual device: in a training loop, whose gradients and hooks the engine calls, and in a
server with tasks, generators and threads.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402
import python_frames as P  # noqa: E402
import python_launches  # noqa: E402
import pythons  # noqa: E402

PROGRAMS = os.path.join(os.environ["TOP"], "tests/programs/python")
TORCH = os.path.join(os.path.abspath(L.PROGRAMS), "libpython_torch.so")
DRIVER = python_launches.own_driver()
check = L.Checks()


def has_torch(path):
    return subprocess.run([path, "-c", "import torch"], capture_output=True).returncode == 0


def one(path, version, mode, program, rounds, least):
    what = f"{pythons.name(path, version)} {program} {mode}"
    truth = os.path.join(L.TMP, "truth")
    if os.path.exists(truth):
        os.remove(truth)
    target = ["env", "LD_PRELOAD=" + TORCH, path, os.path.join(PROGRAMS, program), str(rounds)]
    r = L.run(target, mode=mode, metric="launches", kind=DRIVER, TRUTH=truth, TORCH=TORCH)
    if r.status == L.SKIP:
        print(r.out)
        sys.exit(L.SKIP)
    check(r.status == 0 and r.out == "done\n", f"{what}: status {r.status}, it printed {r.out!r} {r.err}")
    python_launches.compare(check, what, r, (path, version), mode, truth, least)


P.skip_without_product()
found = [(path, version) for path, version in pythons.need() if has_torch(path)]
if not found:
    print("skipped: no interpreter has PyTorch (python3-torch)")
    sys.exit(L.SKIP)
for interpreter, its_version in found:
    for one_mode in ("library", "probes", "attached", "attached-probes"):
        one(interpreter, its_version, one_mode, "torch_train.py", 3, 900)
        one(interpreter, its_version, one_mode, "torch_serve.py", 4, 900)
sys.exit(check.status())
