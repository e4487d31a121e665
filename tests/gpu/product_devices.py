#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two devices: a process each that reduce together, and what is to hold for them.

product_devices.py run             starts two workers as torchrun does, each with its rank in its environment
product_devices.py worker          one of them: matrix products of its own and sums over both, through NCCL
product_devices.py devices OUT SAID         product_devices' account against the closing summary's devices
product_devices.py ranks RECORDS LAUNCHES GPU SAID SAID  each rank's kernels against CUPTI's records, of RECORDS.RANK
Exit status 1 if something that must hold does not.
"""
import json
import os
import re
import subprocess
import sys

WORKERS = 2
PRODUCTS, SUMS = 40, 20


def run():
    procs = []
    for rank in range(WORKERS):
        env = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(WORKERS), MASTER_ADDR="127.0.0.1",
                   MASTER_PORT=str(20000 + os.getpid() % 20000))
        # NVLink's multicast stays out of it.
        env.update(NCCL_NVLS_ENABLE="0", TORCH_SYMM_MEM_DISABLE_MULTICAST="1")
        if "PRODUCT_OUT" in env:
            env["PRODUCT_OUT"] += f".{rank}"
        procs.append(subprocess.Popen([sys.executable, __file__, "worker"], env=env, stdout=subprocess.PIPE, text=True))
    # One after the other: lines of two must not be mixed up.
    for p in procs:
        print(p.communicate()[0], end="", flush=True)
    return max(abs(p.returncode) for p in procs)


def worker():
    import torch
    import torch.distributed as dist

    rank = int(os.environ["RANK"])
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    torch.manual_seed(7)
    a = torch.randn(2048, 2048, device="cuda") / 64
    sums = torch.empty(16 << 20, device="cuda")
    b = a
    for _ in range(PRODUCTS * (rank + 1)):
        b = a @ b
        b = b / b.abs().max()
    for _ in range(SUMS):
        sums.fill_(rank + 1)
        dist.all_reduce(sums)
    torch.cuda.synchronize()
    print(f"worker {rank}: sum {sums.sum().item()}, product {b.double().sum().item():.6f}", flush=True)
    dist.destroy_process_group()
    return 0


def summary(path):
    return next(x for x in map(json.loads, re.findall(r'^{"gpucollect":.*', open(path).read(), re.M))
                if x["gpucollect"] == "summary")


def devices(out, said):
    from product_check import fail
    want = {int(d): tuple(map(int, rest)) for d, *rest in
            re.findall(r"^device (\d+) (\d+) (\d+) (\d+)$", open(out).read(), re.M)}
    got = summary(said)["processes"]
    print(f"  {got}")
    if [s["device"] for s in got] != list(want):
        fail(f"devices {[s['device'] for s in got]}, not {list(want)}")
    for s in got:
        launches, copies, ns = want.get(s["device"], (0, 0, 0))
        if (s["launches"], s["copies"]) != (launches, copies):
            fail(f"device {s['device']}: not {launches} launches and {copies} copies")
        # The copies are in it, too.
        if s["gpu_ns"] < 0.97 * ns:
            fail(f"device {s['device']}: less than the {ns} ns of its kernels")


def of_process(path, pid):
    """The lines of one process, in a file of their own."""
    mine = f"{path}.{pid}"
    with open(path, encoding="utf-8", errors="replace") as f, open(mine, "w", encoding="utf-8") as to:
        to.writelines(line for line in f if f"(pid {pid})" in line.split(";")[0])
    return mine


def ranks(records, launches, gpu, said_launches, said_gpu):
    from product_check import cupti, fail, folded
    by_rank = []
    for said in said_launches, said_gpu:
        got = summary(said)["processes"]
        print(f"  {got}")
        if [(s["rank"], s["device"]) for s in got] != [(r, r) for r in range(WORKERS)]:
            fail("not a device for each rank")
        by_rank.append({s["rank"]: s["pid"] for s in got})
    for rank in range(WORKERS):
        print(f"  rank {rank}:")
        if not all(rank in pids for pids in by_rank):
            fail(f"no rank {rank}")
            continue
        mine = of_process(gpu, by_rank[1][rank])
        cupti(f"{records}.{rank}", of_process(launches, by_rank[0][rank]), mine)
        if not sum(weight for frames, weight in folded(mine) if "nccl" in frames[-1].lower()):
            fail(f"rank {rank}: NCCL has no width")


if __name__ == "__main__":
    if sys.argv[1] in ("run", "worker"):
        sys.exit({"run": run, "worker": worker}[sys.argv[1]]())
    import product_check
    {"devices": devices, "ranks": ranks}[sys.argv[1]](*sys.argv[2:])
    print("  ok" if not product_check.bad else f"  {product_check.bad} wrong")
    sys.exit(product_check.bad != 0)
