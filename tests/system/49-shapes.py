#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 200
"""Copies and sets of two and three dimensions, of arrays, and of several at once, as 49-copies has the others.

Then where only some are looked at, and calls that the driver refuses before it looks at what they point to, which nobody else may look at either.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/system"))
import copying  # noqa: E402
import launches as L  # noqa: E402

check = L.Checks()
PROGRAM = f"{L.PROGRAMS}/gpu_shapes"


def forms(stream, plain=None):
    """An entry with a stream and one without, each with its per-thread twin."""
    return [stream, stream + "_ptsz"] + ([plain, plain + "_ptds"] if plain else [])


# The entries as they follow each other in channel.h.
ENTRIES = sum((
    forms("cuMemcpy2DAsync_v2", "cuMemcpy2D_v2"), forms("cuMemcpy3DAsync_v2", "cuMemcpy3D_v2"),
    forms("cuMemcpy3DPeerAsync", "cuMemcpy3DPeer"), forms("cuMemcpyHtoAAsync_v2", "cuMemcpyHtoA_v2"),
    forms("cuMemcpyAtoHAsync_v2", "cuMemcpyAtoH_v2"), forms("cuMemsetD2D8Async", "cuMemsetD2D8_v2"),
    forms("cuMemsetD2D16Async", "cuMemsetD2D16_v2"), forms("cuMemsetD2D32Async", "cuMemsetD2D32_v2"),
    *([name, name + "_ptds"] for name in ("cuMemcpy2DUnaligned_v2", "cuMemcpyAtoD_v2", "cuMemcpyDtoA_v2",
                                          "cuMemcpyAtoA_v2")),
    *(forms(name) for name in ("cuMemcpyBatchAsync", "cuMemcpyBatchAsync_v2", "cuMemcpy3DBatchAsync",
                               "cuMemcpy3DBatchAsync_v2", "cuMemcpyWithAttributesAsync",
                               "cuMemcpy3DWithAttributesAsync"))), [])


def one(metric, *args, **how):
    return copying.one(check, PROGRAM, metric, *args, **how)


def known(entry):
    """Batches are known afterwards; of those with a struct it depends on where that is, and what it says."""
    if "Batch" in entry or "With" in entry:
        return False
    return None if "2D_" in entry or "2DA" in entry or "2DU" in entry or "3D" in entry else True


def before():
    """Of 59 calls a round all but those of 13 batches, 4 of unified memory and one of a struct elsewhere."""
    got = copying.by_call(check, PROGRAM, ENTRIES, known)
    check(got == 30 * (59 - 18), f"{got} were known before the driver's call")


def looked_at(metric):
    """
    Where all of a path are alike, what isn't looked at is as what is: nothing is lost by one of four, also of
    copies that are known only afterwards.
    """
    r = L.run([PROGRAM, "same", "100"], "--launches", "4", metric=metric)
    L.compare(check, f"one of 4: {metric}", r, "gpu" if metric == "gpu" else "launches",
              copying.chains(r.out, metric))
    m = re.search(r"looked at ([\d,]+) of ([\d,]+) launches and copies", "\n".join(r.said))
    seen, made = (int(n.replace(",", "")) for n in m.groups()) if m else (0, 0)
    check(made == 60 * 100 and 0 < seen < made * 0.6, f"looked at {seen} of {made}")


for kind in ("simcuda", "simcuda-relro", "simcuda-old", "simcuda-high"):
    for mode in ("library", "attached"):
        copying.summed_up(check, one("gpu", "20", kind=kind, mode=mode))
for mode in ("library", "attached"):
    one("bytes", "20", mode=mode)
one("bytes", "20", "100001")
one("launches", "10")
one("launches", "10", mode="probes")
before()
looked_at("bytes")
looked_at("gpu")
copying.captures(check, PROGRAM, 120, 20 * 23)
sys.exit(check.status())
