# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A training step (python_common.py). The backward half is launched by a thread of the library's own.

python_train.py           that thread has no Python
python_train.py custom    it calls a function of this file
"""
import functools
import sys

import torch

from python_common import run

WIDTH, ROWS = 256, 128


class Cubed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x  # GPU custom

    @staticmethod
    def backward(ctx, gradient):
        x, = ctx.saved_tensors
        square = x * x  # GPU custom
        return 3 * square * gradient  # GPU custom


class Model(torch.nn.Module):
    def __init__(self, custom):
        super().__init__()
        self.custom = custom
        self.encoder = torch.nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True)
        self.head = torch.nn.Linear(WIDTH, 1)

    def forward(self, x):
        h = self.encoder(x)  # GPU
        if self.custom:
            h = Cubed.apply(h)  # GPU custom
        return self.head(h).squeeze(-1)  # GPU


def forward(model, x, target):
    y = model(x)  # GPU
    return torch.nn.functional.mse_loss(y, target)  # GPU


def backward(loss):
    loss.backward()  # GPU


def update(optimizer):
    optimizer.step()  # GPU
    optimizer.zero_grad()


def train_step(model, optimizer, x, target):
    loss = forward(model, x, target)  # GPU
    backward(loss)  # GPU
    update(optimizer)  # GPU


def main():
    torch.manual_seed(7)
    model = Model(sys.argv[1:] == ["custom"]).to("cuda")  # GPU set-up
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)  # GPU set-up
    x = torch.randn(8, ROWS, WIDTH, device="cuda")  # GPU set-up
    target = torch.randn(8, ROWS, device="cuda")  # GPU set-up
    run(functools.partial(train_step, model, optimizer, x, target))  # GPU


if __name__ == "__main__":
    main()  # GPU
