#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 200
"""Copies and sets of memory by call path: bytes and GPU time are exactly the program's own account.

With the library started with the program and attached, on every form of driver; each single call against
what the device wrote down; into captures, refused ones, and without the library, which sees none.
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/system"))
import copying  # noqa: E402
import launches as L  # noqa: E402

check = L.Checks()
PROGRAM = f"{L.PROGRAMS}/gpu_copies"
# The entries as they follow each other in channel.h, each with its per-thread twin.
ENTRIES = [name + twin for name in (
    "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2", "cuMemcpyAsync",
    "cuMemcpyPeerAsync", "cuMemsetD8Async", "cuMemsetD16Async", "cuMemsetD32Async")
    for twin in ("", "_ptsz")] + [name + twin for name in (
        "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuMemcpyDtoD_v2", "cuMemcpy", "cuMemcpyPeer",
        "cuMemsetD8_v2", "cuMemsetD16_v2", "cuMemsetD32_v2")
        for twin in ("", "_ptds")]


def one(metric, *args, **how):
    return copying.one(check, PROGRAM, metric, *args, **how)


def for_scripts():
    r = L.run([PROGRAM, "7"], "--json", metric="bytes")
    said = [json.loads(line) for line in r.err.splitlines() if line.startswith('{"gpucollect":')]
    s = next(x for x in said if x["gpucollect"] == "summary")
    copies = copying.account(r.out)
    want = {"metric": "bytes", "unit": "bytes", "launches": 7, "timed": 7, "gpu_ns": 35000,
            "copies": sum(c.count for c in copies), "copied_bytes": sum(c.bytes for c in copies),
            "copies_timed": sum(c.count for c in copies), "copies_ns": sum(c.ns for c in copies)}
    check({key: s[key] for key in want} == want, f"--json: {s} not {want}")


def known(entry):
    """The direction of the others is asked afterwards."""
    return entry.split("_")[0] not in ("cuMemcpy", "cuMemcpyAsync")


for kind in ("simcuda", "simcuda-relro", "simcuda-old", "simcuda-high"):
    for mode in ("library", "attached"):
        copying.summed_up(check, one("gpu", "30", kind=kind, mode=mode))
        one("bytes", "30", kind=kind, mode=mode)
# Sizes that are no whole numbers of 8 bytes, and of more than 32 bits together.
one("bytes", "40", "100001")
one("launches", "10")
one("launches", "10", mode="probes")
for_scripts()
copying.by_call(check, PROGRAM, ENTRIES, known)
copying.captures(check, PROGRAM, 60, 20)
sys.exit(check.status())
