# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Kinds of work with a fixed number of launches: product_works.py NAME (product_totals.py)."""
import sys

import torch
from torch import nn


def forward():
    """A transformer's forward pass."""
    layer = nn.TransformerEncoderLayer(768, 12, 3072, dropout=0.0, batch_first=True, norm_first=True)
    model = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).to("cuda", torch.bfloat16)
    x = torch.randn(8, 128, 768, device="cuda", dtype=torch.bfloat16)

    def step():
        with torch.no_grad():
            model(x)
    return step, 120


def train():
    """A training step: forward, backward, optimizer."""
    layer = nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    x = torch.randn(8, 128, 512, device="cuda")

    def step():
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    return step, 60


def conv():
    """A convolution net, forward and backward."""
    def block(n_in, n_out):
        return nn.Sequential(nn.Conv2d(n_in, n_out, 3, padding=1), nn.BatchNorm2d(n_out), nn.ReLU(), nn.MaxPool2d(2))

    model = nn.Sequential(block(3, 64), block(64, 128), block(128, 256), nn.Flatten(), nn.Linear(256 * 64, 100))
    model.to("cuda")
    x = torch.randn(32, 3, 64, 64, device="cuda")

    def step():
        model(x).square().mean().backward()
    return step, 80


def triton():
    """A loop of Triton kernels: short ones, and one that takes longer."""
    from product_triton import add_kernel

    small, large = (torch.randn(n, device="cuda") for n in (1 << 16, 1 << 25))
    out_small, out_large = torch.empty_like(small), torch.empty_like(large)

    def step():
        for _ in range(10):
            add_kernel[(small.numel() // 1024,)](small, small, out_small, small.numel(), BLOCK=1024)
        add_kernel[(large.numel() // 2048,)](large, large, out_large, large.numel(), BLOCK=2048)
    return step, 200


def decode():
    """Token by token, each kernel launched by itself."""
    from python_decode import Decoder

    decoder = Decoder().eval().to("cuda")

    def step():
        with torch.no_grad():
            decoder()
            decoder.token.item()
    return step, 300


def graph():
    """The same, as a CUDA graph."""
    from python_decode import Decoder, captured

    decoder = Decoder().eval().to("cuda")
    with torch.no_grad():
        whole = captured(decoder)

    def step():
        whole.replay()
        decoder.token.item()
    return step, 400


WORKS = {f.__name__: f for f in (forward, train, conv, triton, decode, graph)}


def main():
    torch.manual_seed(7)
    torch.backends.cudnn.benchmark = False	# which would try kernels by their times
    step, times = WORKS[sys.argv[1]]()
    for _ in range(times):
        step()
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
