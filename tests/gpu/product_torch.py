#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""PyTorch with fixed numbers of launches, for the product's tests on a real GPU.

product_torch.py count           all kinds of work once; prints losses and sums bit by bit
product_torch.py speed [NAMES]   prints "NAME US CPU_US" (medians an iteration): relu, matmul, layer
product_torch.py profiler NAMES  the same under torch.profiler with stacks
product_torch.py loop SECONDS [NAME] …   relu or another of them for so long, one after the other; prints "pace T US"
                                 for each quarter of a second, T as of CLOCK_MONOTONIC
"""
import resource
import statistics
import struct
import sys
import time

import torch

torch.manual_seed(7)
torch.use_deterministic_algorithms(False)
device = "cuda"


def say(*words):
    print(*words, flush=True)


def bits(t):
    """The exact bytes of a value, so that a twin's must be the same."""
    return struct.pack("<d", float(t.detach().double().sum())).hex()


def layer_model():
    layer = torch.nn.TransformerEncoderLayer(256, 4, 512, dropout=0.0, batch_first=True).to(device)
    return layer, torch.optim.AdamW(layer.parameters(), lr=1e-3)


def train_step(layer, optimizer, x):
    optimizer.zero_grad()
    loss = layer(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss


def triton_add():
    import triton
    from product_triton import add_kernel

    return lambda x, y, out: add_kernel[(triton.cdiv(x.numel(), 1024),)](
        x, y, out, x.numel(), BLOCK=1024)


def count():
    n = 1 << 16
    x, y = torch.randn(n, device=device), torch.randn(n, device=device)
    a = torch.randn(1024, 1024, device=device, dtype=torch.bfloat16)
    bias = torch.randn(1024, device=device, dtype=torch.bfloat16)
    big = torch.randn(4096, 4096, device=device, dtype=torch.bfloat16)
    qkv = torch.randn(4, 8, 512, 64, device=device, dtype=torch.bfloat16)
    f = torch.randn(256, 256, device=device)
    out = torch.empty_like(x)
    add = triton_add()
    for _ in range(100):
        a = torch.addmm(bias, a, a).tanh()
    say("addmm", bits(a))
    for _ in range(200):
        c = torch.mm(big, big)
    say("mm", bits(c))
    for _ in range(50):
        d = torch.nn.functional.scaled_dot_product_attention(qkv, qkv, qkv)
    say("attention", bits(d))
    for _ in range(300):
        z = torch.relu(x)
    say("relu", bits(z))
    for _ in range(100):
        add(x, y, out)
    say("triton", bits(out))
    for _ in range(20):
        out.zero_()
        host = x.cpu()
    say("copies", bits(host))
    for _ in range(10):
        s = (torch.sort(x)[0] * 1000).long().cumsum(0)
        k = torch.nonzero(x > 0)
        m = torch.nn.functional.softmax(f, dim=-1)
    say("sort", bits(s), bits(k), bits(m))
    conv = torch.nn.Conv2d(16, 32, 3, padding=1).to(device)
    image = torch.randn(8, 16, 64, 64, device=device)
    for _ in range(10):
        v = conv(image)
    say("conv", bits(v))
    layer, optimizer = layer_model()
    batch = torch.randn(8, 64, 256, device=device)
    for i in range(30):
        loss = train_step(layer, optimizer, batch)
        say("loss", i, bits(loss))
    torch.cuda.synchronize()
    graphs(f)


def graphs(f):
    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        torch.relu(torch.mm(f, f)) * 1.0001
    torch.cuda.synchronize()
    for how in ("global", "thread_local", "relaxed"):
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g, capture_error_mode=how):
            z = torch.relu(torch.mm(f, f))
            for _ in range(10):
                z = z * 1.0001
        for _ in range(20):
            g.replay()
        torch.cuda.synchronize()
        say("graph", how, bits(z))


def workloads():
    x = torch.randn(1 << 14, device=device)
    big = torch.randn(4096, 4096, device=device, dtype=torch.bfloat16)
    layer, optimizer = layer_model()
    batch = torch.randn(8, 64, 256, device=device)

    def relu(n):
        for _ in range(n):
            torch.relu(x)

    def matmul(n):
        for _ in range(n):
            torch.mm(big, big)

    def transformer(n):
        for _ in range(n):
            train_step(layer, optimizer, batch)

    return {"relu": (relu, 20000), "matmul": (matmul, 1500), "layer": (transformer, 100)}


def measure(names, rounds=5):
    for name, (work, n) in workloads().items():
        if names and name not in names:
            continue
        work(max(n // 10, 10))
        torch.cuda.synchronize()
        wall, cpu = [], []
        for _ in range(rounds):
            c, t = time.thread_time(), time.perf_counter()
            work(n)
            torch.cuda.synchronize()
            wall.append((time.perf_counter() - t) / n * 1e6)
            cpu.append((time.thread_time() - c) / n * 1e6)
        say(f"{name} {statistics.median(wall):.3f} {statistics.median(cpu):.3f}")
    say(f"rss {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.1f} 0")  # MiB


def profiler(names):
    from torch.profiler import ProfilerActivity, profile

    work = workloads()
    for name in names:
        run, n = work[name]
        n //= 4
        run(max(n // 10, 10))
        torch.cuda.synchronize()
        wall = []
        for _ in range(2):
            with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
                         with_stack=True):
                t = time.perf_counter()
                run(n)
                torch.cuda.synchronize()
                wall.append((time.perf_counter() - t) / n * 1e6)
        say(f"{name} {min(wall):.3f} 0")


def loop(seconds, name="relu"):
    work, n = workloads()[name]
    at_once = max(n // 40, 2)
    begin = last = time.monotonic()
    n = 0
    say("started", name, begin)
    while last - begin < seconds:
        work(at_once)
        torch.cuda.synchronize()
        n += at_once
        now = time.monotonic()
        if now - last >= 0.25:
            say(f"pace {now:.3f} {(now - last) / n * 1e6:.3f}")
            last, n = now, 0


if __name__ == "__main__":
    mode = sys.argv[1] if len(sys.argv) > 1 else "count"
    if mode == "count":
        count()
        sys.exit(3)  # must come through
    if mode == "speed":
        measure(sys.argv[2:])
    elif mode == "profiler":
        profiler(sys.argv[2:])
    elif mode == "loop":
        for arg, what in zip(sys.argv[2::2], sys.argv[3::2] or ["relu"]):
            loop(float(arg), what)
