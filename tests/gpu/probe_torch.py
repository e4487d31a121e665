#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""PyTorch with fixed numbers of launches, for the counting and slot probes.

probe_torch.py count            the work once; counts are printed by the injected library
probe_torch.py swap-profiler    hooks are in (PROBE_SWAP=1), then the profiler starts and stops
probe_torch.py profiler-swap    the profiler starts, then the hooks go in, then it stops
"""
import ctypes
import os
import sys
import time

import torch

try:
    import triton
    import triton.language as tl

    @triton.jit
    def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = at < n
        tl.store(out + at, tl.load(x + at, mask) + tl.load(y + at, mask), mask)
except ImportError:
    triton = None

mode = sys.argv[1] if len(sys.argv) > 1 else "count"
hook = None
if os.environ.get("PROBE_HOOK"):
    hook = ctypes.CDLL(os.environ["PROBE_HOOK"])
    hook.probe_hook_hits.restype = ctypes.c_long


def say(text):
    print(text, flush=True)


def dump(tag):
    if hook:
        hook.probe_hook_init()
        hook.probe_hook_dump(tag.encode())
        say(f"  {tag}: hooks saw {hook.probe_hook_hits()} calls since the last dump")


n = 1 << 16
x = torch.randn(n, device="cuda")
y = torch.randn(n, device="cuda")
a = torch.randn(1024, 1024, device="cuda", dtype=torch.bfloat16)
b = torch.randn(1024, 1024, device="cuda", dtype=torch.bfloat16)
bias = torch.randn(1024, device="cuda", dtype=torch.bfloat16)
big = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
qkv = torch.randn(4, 8, 512, 64, device="cuda", dtype=torch.bfloat16)
f = torch.randn(256, 256, device="cuda")
out = torch.empty_like(x)
model = torch.nn.Sequential(
    torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.LayerNorm(512), torch.nn.Linear(512, 10)
).cuda()
optimizer = torch.optim.AdamW(model.parameters())
inputs = torch.randn(64, 256, device="cuda")
host = torch.empty(n, pin_memory=True)


def work():
    for _ in range(20):
        torch.mm(a, b)
    for _ in range(10):
        torch.addmm(bias, a, b)
    for _ in range(10):
        torch.mm(f, f)
    for _ in range(6):
        torch.mm(big, big)
        torch.bmm(qkv[0], qkv[1].transpose(1, 2))
        torch.nn.functional.scaled_dot_product_attention(qkv, qkv, qkv)
    for _ in range(30):
        torch.relu(x)
    if triton:
        for _ in range(15):
            add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    for _ in range(12):
        out.zero_()
        host.copy_(out, non_blocking=True)
    for _ in range(5):
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()
    for _ in range(3):
        x.sum().item()
        torch.sort(x)
        torch.nonzero(x > 0)
        torch.nn.functional.softmax(f, dim=-1)
    torch.cuda.synchronize()


def graph_work():
    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        torch.mm(f, f)
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        z = torch.relu(torch.mm(f, f))
        for _ in range(5):
            z = z * 1.0001
    for _ in range(7):
        g.replay()
    torch.cuda.synchronize()


def relu_us():
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(5000):
        torch.relu(x)
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / 5000 * 1e6


if mode == "count":
    work()
    graph_work()
    say("done")
    sys.exit(0)

from torch.profiler import ProfilerActivity, profile  # noqa: E402

work()
dump("before the profiler")
say(f"  relu {relu_us():.2f} us")
dump("relu loop of 5000")
for turn in range(2):
    p = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
    p.start()
    dump(f"profiler started, turn {turn}")
    if mode == "profiler-swap" and turn == 0 and hook:
        say(f"  swapped {hook.probe_hook_swap(0)} under the profiler")
        dump("swapped under the profiler")
    work()
    dump("work under the profiler")
    say(f"  relu {relu_us():.2f} us under the profiler")
    dump("relu loop of 5000 under the profiler")
    p.stop()
    dump(f"profiler stopped, turn {turn}")
    count = {}
    for e in p.events():
        if "cuda" in str(e.device_type).lower():
            count[e.name] = count.get(e.name, 0) + 1
    say(f"  the profiler saw {sum(count.values())} device events, "
        f"cuEventRecord named in {sum('EventRecord' in e.name for e in p.events())} events")
work()
dump("work after the profiler")
say(f"  relu {relu_us():.2f} us")
dump("relu loop of 5000 after the profiler")
if hook:
    say(f"  unswapped {hook.probe_hook_unswap()}")
    dump("unswapped")
    say(f"  relu {relu_us():.2f} us")
    dump("relu loop of 5000 unswapped")
