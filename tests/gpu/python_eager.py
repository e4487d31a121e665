# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Eager inference: a few layers of this file's own (python_common.py)."""
import functools

import torch

from python_common import run

WIDTH, ROWS = 512, 64


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(WIDTH, 4 * WIDTH)
        self.second = torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        h = self.first(x)  # GPU
        h = torch.relu(h)  # GPU
        return x + self.second(h)  # GPU


def normalised(x):
    return x / x.norm(dim=-1, keepdim=True)  # GPU


def scores(model, x):
    h = model(x)  # GPU
    h = normalised(h)  # GPU
    return torch.softmax(h, dim=-1)  # GPU


def main():
    torch.manual_seed(7)
    model = torch.nn.Sequential(Block(), Block(), Block()).eval().to("cuda")  # GPU set-up
    x = torch.randn(ROWS, WIDTH, device="cuda")  # GPU set-up
    with torch.inference_mode():
        run(functools.partial(scores, model, x))  # GPU


if __name__ == "__main__":
    main()  # GPU
