# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A small training loop of PyTorch, on the CPU. usage: torch_train.py STEPS

Each operation of the steps launches (tests/programs/python_torch.c, which is preloaded; $TORCH is
its file). It ends with status 77 where this PyTorch hasn't the function that it stands in front of.
"""
import contextlib
import ctypes
import os
import sys

import torch
from torch import nn

import launching
from launching import via

ENGINE = r"torch::autograd::Engine::.*"
via(ENGINE)(torch.autograd.function.BackwardCFunction.apply)	# it calls what a Function has


@contextlib.contextmanager
def launches():
    """Operations launch."""
    hook = ctypes.PyDLL(os.environ["TORCH"])
    hook.torch_begin.argtypes = [ctypes.py_object, ctypes.c_void_p]

    def kernel(frame):
        return launching.note(frame).value

    if hook.torch_begin(kernel, ctypes.cast(launching.LAUNCH, ctypes.c_void_p)):
        print("skipped: not the PyTorch that this is made for: " + torch.__version__)
        sys.exit(77)
    try:
        yield
    finally:
        hook.torch_end()


class Cubed(torch.autograd.Function):
    """Its gradient is computed by Python, called by the engine."""
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return (grad * 3 *
                x * x)


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up, self.down = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        y = self.drop(
            self.down(
                nn.functional.gelu(self.up(self.norm(x)))))
        return x + y + Cubed.apply(y) * 0.01


class Net(nn.Module):
    def __init__(self, layers, dim):
        super().__init__()
        self.embed = nn.Embedding(50, dim)
        self.blocks = nn.ModuleList([Block(dim) for _ in range(layers)])
        self.head = nn.Linear(dim, 50)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def watched(module, args, result):
    return result + 0


@via(ENGINE)
def clipped(grad):
    return grad.clamp(
        -1, 1) + 0


def batches():
    while True:
        yield torch.randint(0, 50, (2, 8)) + 0


def step(net, opt, tokens):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(tokens).view(-1, 50), tokens.view(-1))
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    return loss


def train(steps):
    net = Net(2, 16)
    net.head.register_forward_hook(watched)
    net.blocks[0].up.weight.register_hook(clipped)
    opt = torch.optim.AdamW(net.parameters(), 1e-3, foreach=False)
    data = batches()
    with launches():
        for n in range(steps):
            loss = step(net, opt, next(data))
            if n % 3 == 0:
                float(loss * 1)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    launching.start()
    launching.gate()
    train(int(sys.argv[1]))
    print("done", flush=True)


if __name__ == "__main__":
    main()
