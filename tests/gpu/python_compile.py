# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""torch.compile, whose kernels are Triton's, and a Triton kernel of our own (python_common.py)."""
import functools

import torch
import triton
import triton.language as tl

from python_common import run

WIDTH, ROWS = 512, 256


@triton.jit
def scaled_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask) + 0.5 * tl.load(y + at, mask), mask)


def add_scaled(x, y):
    out = torch.empty_like(x)
    scaled_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)  # GPU
    return out


def mixed(x, weight, bias):  # GPU compiled
    h = torch.nn.functional.gelu(x @ weight + bias)
    h = h * torch.sigmoid(x) + x
    return torch.softmax(h, dim=-1)


def step(compiled, x, weight, bias):
    y = compiled(x, weight, bias)  # GPU
    return add_scaled(x, y)  # GPU


def main():
    torch.manual_seed(7)
    x = torch.randn(ROWS, WIDTH, device="cuda")  # GPU set-up
    weight = torch.randn(WIDTH, WIDTH, device="cuda")  # GPU set-up
    bias = torch.randn(WIDTH, device="cuda")  # GPU set-up
    compiled = torch.compile(mixed)
    with torch.no_grad():
        run(functools.partial(step, compiled, x, weight, bias))  # GPU


if __name__ == "__main__":
    main()  # GPU
