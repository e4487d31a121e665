#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""PyTorch programs that have long been running when somebody attaches to them.

product_gated.py train N    N steps of eager training, with Triton's and cuBLAS's kernels
product_gated.py decode N   N tokens of a decode loop: a CUDA graph replayed, then eager sampling
product_gated.py again N    N training steps without a gate, then speed, and so on until stdin ends
product_gated.py slice CPU  on one CPU: a launch-bound loop for a moment at each line of stdin; says what an
                            operation took

The first two warm up, so that every module is loaded, print "ready" and wait for a line on stdin; what they
do from there on is the same each time. They print "done", wait for another line and end with status 3. With
PRODUCT_WINDOW=product_cupti.so only that window is counted.
"""
import ctypes
import os
import statistics
import sys
import time

import torch

from product_torch import bits, device, layer_model, say, train_step, triton_add

torch.use_deterministic_algorithms(True, warn_only=True)


def window(step):
    path = os.environ.get("PRODUCT_WINDOW")
    torch.cuda.synchronize()
    if path:
        getattr(ctypes.CDLL(path), f"product_cupti_{step}")()


def gate(word):
    say(word)
    if not sys.stdin.readline():
        sys.exit(4)


def training():
    layer, optimizer = layer_model()
    batch = torch.randn(8, 64, 256, device=device)
    x, y = torch.randn(1 << 16, device=device), torch.randn(1 << 16, device=device)
    out = torch.empty_like(x)
    a = torch.randn(512, 512, device=device, dtype=torch.bfloat16)
    add = triton_add()

    def step(i):
        loss = train_step(layer, optimizer, batch)
        add(x, y, out)
        torch.mm(a, a).relu()
        if i % 10 == 0:
            say("loss", i, bits(loss), bits(out))

    return step


def decoding():
    hidden, vocabulary = 256, 4096
    blocks = torch.nn.ModuleList(torch.nn.Linear(hidden, hidden) for _ in range(4)).to(device)
    table = torch.randn(vocabulary, hidden, device=device)
    state = torch.randn(1, hidden, device=device)
    logits = torch.empty(1, vocabulary, device=device)

    def forward():
        h = state
        for b in blocks:
            h = torch.relu(b(h))
        torch.mm(h, table.t(), out=logits)

    graph = torch.cuda.CUDAGraph()
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            forward()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            forward()

    def step(i):
        with torch.no_grad():
            graph.replay()
            token = int(torch.argmax(logits))
            state.copy_(table[token:token + 1] * 0.5 + torch.tanh(state))
        if i % 10 == 0:
            say("token", i, token, bits(state))

    return step


def gated(step, n):
    for i in range(3):
        step(-10 * i)
    torch.cuda.synchronize()
    gate("ready")
    window("begin")
    for i in range(n):
        step(i)
    window("end")
    gate("done")
    sys.exit(3)


def speed():
    x = torch.randn(1 << 14, device=device)
    best = []
    for _ in range(9):
        torch.cuda.synchronize()
        t = time.perf_counter()
        for _ in range(4000):
            torch.relu(x)
        torch.cuda.synchronize()
        best.append((time.perf_counter() - t) / 4000 * 1e6)
    return sorted(best)[len(best) // 2]


def again(step, n):
    """Each round's worst step tells for how long the program was held up."""
    for i in range(50):
        step(i)
    say("ready", f"{speed():.3f}")
    while True:
        word = sys.stdin.readline().strip()
        if word == "steps":
            worst = 0
            for i in range(n):
                t = time.perf_counter()
                step(i)
                torch.cuda.synchronize()
                worst = max(worst, time.perf_counter() - t)
            say("worst", f"{worst * 1e3:.3f}")
        elif word == "speed":
            say("speed", f"{speed():.3f}")
        else:
            sys.exit(3)


def slices():
    x = torch.randn(1 << 14, device=device)

    def loop(n):
        torch.cuda.synchronize()
        t = time.perf_counter()
        for _ in range(n):
            torch.relu(x)
        torch.cuda.synchronize()
        return (time.perf_counter() - t) / n * 1e6

    loop(20000)
    say("ready")
    for _ in sys.stdin:
        say("slice", f"{statistics.median(loop(2000) for _ in range(15)):.4f}")
    sys.exit(3)


if __name__ == "__main__":
    mode, number = sys.argv[1], int(sys.argv[2])
    if mode == "slice":
        os.sched_setaffinity(0, {number})
        slices()
    if mode == "again":
        again(training(), number)
    gated({"train": training, "decode": decoding}[mode](), number)
