#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Measures what gpucollect costs, interleaved with the program alone, and prints it beside the budgets.

Everything is a median of ROUNDS (default 5). The stand-in driver launches in about 0.1 us, so ratios of
launch loops are far worse here than with a real driver: they serve to compare versions of gpucollect.
"""
import os
import re
import statistics
import subprocess
import sys
import tempfile

B = os.path.abspath(os.environ.get("B", "build"))
GPUCOLLECT = os.environ.get("GPUCOLLECT", B + "/gpucollect")
ROUNDS = int(os.environ.get("ROUNDS", "5"))
LAUNCHES = 50000
SHALLOW, DEEP = 2, 62
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
SIZES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def run(args):
    env = dict(os.environ, LD_LIBRARY_PATH=B + "/simcuda")
    done = subprocess.run(args, env=env, capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"{' '.join(args)}: status {done.returncode}\n{done.stderr}")
    return done


def closing(text):
    """Own cost from the closing summary: ns in BPF programs, bytes of memory."""
    bpf = re.search(r"([\d.,]+) (ns|us|ms|s) in BPF programs", text)
    memory = re.search(r"([\d.,]+) (B|KiB|MiB|GiB) of memory", text)
    if not bpf or not memory:
        sys.exit("no cost in the closing summary:\n" + text)
    return (float(bpf[1].replace(",", "")) * UNITS[bpf[2]],
            float(memory[1].replace(",", "")) * SIZES[memory[2]])


def own_time(text):
    return float(re.search(r"^ns ([\d.]+)$", text, re.M)[1])


def launch_loop(depth, how, out):
    program = [B + "/programs/gpu_deep", str(depth), str(LAUNCHES)]
    if how is None:
        return own_time(run(program).stdout), 0, 0
    done = run([GPUCOLLECT, "--no-cpu", "--metric", "launches", "-y", "-o", out, *how, "--", *program])
    return (own_time(done.stdout), *closing(done.stderr))


def launches(out):
    ways = {"plain": None, "library": [], "uprobes": ["--no-inject"]}
    times = {(way, depth): [] for way in ways for depth in (SHALLOW, DEEP)}
    bpf = {key: [] for key in times}
    memory = []
    for _ in range(ROUNDS):
        for (way, depth), values in times.items():
            ns, in_bpf, size = launch_loop(depth, ways[way], out)
            values.append(ns)
            bpf[way, depth].append(in_bpf / LAUNCHES)
            if way == "library":
                memory.append(size)
    return times, bpf, memory


def sampling(out):
    """ns of a CPU sample: taken often, so that the first look at each page of code hardly counts."""
    frequency, seconds = 997, 4
    spin = "while True: sum(range(1000))"
    busy = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(os.cpu_count())]
    try:
        pids = ",".join(str(process.pid) for process in busy)
        done = run([GPUCOLLECT, "-p", pids, "--no-gpu", "--metric", "cpu", "-F", str(frequency),
                    "-d", str(seconds), "-y", "-o", out])
    finally:
        for process in busy:
            process.kill()
            process.wait()
    samples = int(re.search(r"([\d,]+) CPU samples", done.stderr)[1].replace(",", ""))
    return closing(done.stderr)[0] / samples


def row(what, value, first, goal):
    print(f"{what:<64} {value:>12} {first:>10} {goal:>10}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        out = folder + "/out.folded"
        times, bpf, memory = launches(out)
        sample = statistics.median(sampling(out) for _ in range(ROUNDS))
    median = {key: statistics.median(values) for key, values in times.items()}
    in_bpf = {key: statistics.median(values) for key, values in bpf.items()}
    frames = DEEP - SHALLOW
    row("what (medians of %d)" % ROUNDS, "measured", "first", "goal")
    for way in ("library", "uprobes"):
        row(f"native unwinding, warm, ns a frame ({way})",
            f"{(in_bpf[way, DEEP] - in_bpf[way, SHALLOW]) / frames:.1f}", "40", "28")
    row("launch with a known site, new stack of 62 + 5 frames: BPF, us",
        f"{in_bpf['library', DEEP] / 1e3:.2f}", "3", "2.2")
    for depth in (SHALLOW, DEEP):
        for way in ("library", "uprobes"):
            row(f"launch from depth {depth}, {way}, more than plain, us",
                f"{(median[way, depth] - median['plain', depth]) / 1e3:.2f}", "-", "-")
    row("the stand-in's launch itself, depth 2, us", f"{median['plain', SHALLOW] / 1e3:.2f}", "-", "-")
    row("CPU sample of a busy Python, us", f"{sample / 1e3:.2f}", "-", "-")
    row("CPU sampling at 20 Hz, every CPU busy, % of the machine", f"{sample * 20 / 1e7:.4f}", "0.02",
        "0.01")
    row("collector and its BPF maps, small target, MB", f"{statistics.median(memory) / 1e6:.1f}",
        "150", "60")


if __name__ == "__main__":
    main()
