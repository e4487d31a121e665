#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 200
"""The launch programs' own accounts agree with what the virtual device says it ran.

Kernel by kernel: launches, and the sum of the lengths to the nanosecond. Also after a process was
killed, with all kinds of the library, and with the counters of the device.
"""
import collections
import os
import subprocess
import sys

B, TMP = os.environ["B"], os.environ["TEST_TMP"]
failures = 0


def check(good, text):
    global failures
    failures += not good
    if not good:
        print("WRONG", text)


def run(args, kind="simcuda", status=0, **extra):
    """Runs a program; its output, the device's lines, and its counters by process."""
    files = {name: os.path.join(TMP, name) for name in ("truth", "stats")}
    for path in files.values():
        if os.path.exists(path):
            os.remove(path)
    env = dict(os.environ, LD_LIBRARY_PATH=f"{B}/{kind}", STANDIN_TRUTH=files["truth"],
               STANDIN_STATS=files["stats"], **extra)
    r = subprocess.run([f"{B}/programs/{args[0]}", *args[1:]], env=env, stdin=subprocess.DEVNULL,
                       capture_output=True, text=True, timeout=60)
    check(r.returncode == status, f"{args}: status {r.returncode}: {r.stderr}")
    rows = [line.split() for line in open(files["truth"])] if os.path.exists(files["truth"]) else []
    stats = collections.Counter()
    if os.path.exists(files["stats"]):
        for line in open(files["stats"]):
            _, name, n = line.split()
            stats[name] += int(n)
    return r.stdout.splitlines(), rows, stats


def by_program(lines):
    sums = collections.defaultdict(lambda: [0, 0])
    for line in lines:
        if line.startswith("chain "):
            _, _, kernel, launches, ns = line.split()
            sums[kernel][0] += int(launches)
            sums[kernel][1] += int(ns)
    return dict(sums)


def by_device(rows):
    """Launches outside captures; a graph's line has a name in brackets."""
    sums = collections.defaultdict(lambda: [0, 0])
    for row in rows:
        if not row[3].startswith("(") and row[-1] != "-":
            sums[row[3]][0] += 1
            sums[row[3]][1] += int(row[-1]) - int(row[-2])
    return dict(sums)


def compare(args, **how):
    lines, rows, stats = run(args, **how)
    mine, theirs = by_program(lines), by_device(rows)
    check(mine and mine == theirs, f"{args} {how}: {mine} instead of {theirs}")
    return lines, rows, stats


def total(lines):
    return [line.split()[1:] for line in lines if line.startswith("total ")]


def own_code(program, *functions):
    """The compiler left each of them a function of its own, which a chain's name needs."""
    out = subprocess.run(["nm", f"{B}/programs/{program}"], capture_output=True, text=True,
                         check=True).stdout
    at = {line.split()[2]: line.split()[0] for line in out.splitlines() if len(line.split()) == 3}
    found = [at[f] for f in functions if f in at]
    check(len(set(found)) == len(functions), f"{program}: {functions} at {found}")


own_code("gpu_chains", "train", "evaluate", "layer", "shared_leaf", "own_leaf", "recurse",
         "recurse_end", "compare", "sorted", "entries", "by_ex", "by_cooperative", "by_old",
         "by_default_stream")
own_code("gpu_paced", "paced", "unpaced", *(f"{name}_{n}" for n in range(16)
                                            for name in ("lane", "first", "second", "third")))
own_code("gpu_capture", "one_capture", "replay_graph", "launch_live", "launch_beside", "beside")
own_code("gpu_pdl", "chained", "launch_head", "launch_dependent", "launch_plain")
own_code("gpu_ends", "work", "launch_work", "launch_last", "end_by", "forked_children",
         "fork_before", "at_exit", "go_on")
own_code("gpu_contexts", "one_round", "one_reset", "launch_some")
own_code("gpu_hold", "queue_up", "launch_held")

lines, rows, stats = compare(["gpu_chains", "50", "7000"])
check(total(lines) == [["600", "0"]] and stats["launches"] == 600, "gpu_chains: total")
check({row[2] for row in rows} == {"cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchGridAsync",
                                   "cuLaunchCooperativeKernel"}, "gpu_chains: entries")
for kind in ("simcuda-relro", "simcuda-old", "simcuda-odd", "simcuda-high"):
    compare(["gpu_chains", "5"], kind=kind)

lines, rows, stats = compare(["gpu_paced", "4", "50000", "2"])
check(stats["launches"] == 100000 and len(rows) == 100000, "gpu_paced: nothing lost")
kernels = collections.defaultdict(collections.Counter)
for row in rows:
    kernels[row[1]][row[3]] += 1
check(len(kernels) == 4 and all(len(k) == 3 for k in kernels.values()), "gpu_paced: threads")
compare(["gpu_paced", "4", "0", "50000"])
lines, rows, stats = compare(["gpu_paced", "2", "0", "5000", "10000"], STANDIN_QUEUE="100")
check(stats["queue_waits"] > 0, "a full queue makes launches wait")

lines, rows, stats = compare(["gpu_capture", "6", "3"])
graphs = [line.split() for line in lines if line.startswith("graph ")]
check(sum(int(g[2]) for g in graphs) == stats["graph_launches"] == 54, "gpu_capture: replays")
check(stats["captured"] == 6 * 3 * 6, "gpu_capture: captured launches")
ran = [int(row[-1]) - int(row[-2]) for row in rows if row[3] == "(graph"]
check(sum(ran) == sum(int(g[4]) for g in graphs), "gpu_capture: time of the replays")

lines, rows, stats = compare(["gpu_pdl", "20"])
check("kept 20 of 20" in lines and stats["pdl"] == 20 * 7, "gpu_pdl: overlap")
lines, rows, stats = compare(["gpu_contexts"])
same = next(line for line in lines if line.startswith("same ")).split()
check(all(int(n) >= 20 for n in same[1:]), f"gpu_contexts: handles come again: {same}")
compare(["gpu_hold", "1020", "2"], STANDIN_QUEUE="1022")

for mode, status in (("return", 0), ("exit", 5), ("_exit", 6), ("abort", -6), ("term", -15),
                     ("kill", -9), ("running", 0), ("thread", 0), ("atexit", 0), ("late", 0),
                     ("exec", 0), ("fork", 0), ("before", 0)):
    compare(["gpu_ends", mode], status=status)

sys.exit(failures != 0)
