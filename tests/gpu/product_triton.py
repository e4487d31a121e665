# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A Triton kernel, apart: importing Triton takes long and not every run needs it."""
import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask) + tl.load(y + at, mask), mask)
