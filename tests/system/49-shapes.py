#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 200
"""Copies and sets of two and three dimensions, of arrays, and of several at once, as 49-copies has the others.

Then calls that the driver refuses before it looks at what they point to, which nobody else may look at either.
"""
import os
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


for kind in ("simcuda", "simcuda-relro", "simcuda-old", "simcuda-high"):
    for mode in ("library", "attached"):
        copying.summed_up(check, one("gpu", "20", kind=kind, mode=mode))
        one("bytes", "20", kind=kind, mode=mode)
one("bytes", "20", "100001")
one("launches", "10")
one("launches", "10", mode="probes")
before()
copying.captures(check, PROGRAM, 120, 20 * 23)
sys.exit(check.status())
