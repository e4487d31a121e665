#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""GPU time of each kernel against CUPTI's records of a run like it: product_totals.py GPUCOLLECT [NAME]...

Each kind of work of product_works.py runs under CUPTI, then under gpucollect with `--launches all` and with
`auto`. Of all launches looked at, kernels of more than 1 % of the time must be within 3 % or 0.5 us a launch of
CUPTI's sum; what of their time is estimated is told, and how far off `auto` is.
"""
import collections
import json
import os
import re
import subprocess
import sys

from product_check import demangled, short

WORKS = ("forward", "train", "conv", "triton", "decode", "graph")
SHARE = 0.01
PERCENT, NS_A_LAUNCH = 3, 500
Sum = collections.namedtuple("Sum", "n ns")
bad = 0


def fail(text):
    global bad
    bad += 1
    print("  WRONG: " + text)


def by_cupti(name):
    """{kernel: Sum}, launched by themselves and in graphs."""
    path = os.path.abspath(f"totals-{name}.cupti")
    env = dict(os.environ, CUDA_INJECTION64_PATH=os.path.abspath("product_cupti.so"), PRODUCT_OUT=path)
    subprocess.run([sys.executable, "product_works.py", name], env=env, check=True, timeout=100)
    with open(path, encoding="utf-8") as f:
        rows = [line.rstrip("\n").split("\t") for line in f]
    all_of = collections.defaultdict(lambda: Sum(0, 0))
    for row, kernel in zip(rows, demangled([row[4] for row in rows])):
        had = all_of[short(kernel)]
        all_of[short(kernel)] = Sum(had.n + int(row[0]), had.ns + int(row[2]))
    return all_of


def by_gpucollect(gpucollect, name, how):
    """The same, and what the summary says."""
    path = f"folded/totals-{name}-{how}.folded"
    r = subprocess.run([gpucollect, "--launches", how, "--metric", "gpu", "--json", "-y", "-o", path, "--",
                        sys.executable, "product_works.py", name], stderr=subprocess.PIPE, text=True, check=False,
                       timeout=100)
    if r.returncode:
        fail(f"{name} {how}: status {r.returncode}: {r.stderr[-400:]}")
        return {}, {}
    times = collections.Counter()
    with open(path, encoding="utf-8") as f:
        for line in f:
            stack, _, weight = line.rstrip("\n").rpartition(" ")
            leaf = stack.split(";")[-1]
            if leaf.startswith("[GPU] ") and not re.match(r"\[GPU\] (memcpy|memset)\b", leaf):
                times[leaf[6:] if leaf == "[GPU] [graph]" else short(leaf[6:])] += int(weight)
    summary = next(x for x in map(json.loads, re.findall(r'^{"gpucollect":.*', r.stderr, re.M))
                   if x["gpucollect"] == "summary")
    return times, summary


def compare(name, how, want, times, summary):
    """How many of the kernels that count are within the budget."""
    all_of = sum(s.ns for s in want.values())
    mine = sum(times.values())
    if "[graph]" in times:
        fail(f"{name} {how}: {times['[graph]'] / 1e6:.3f} ms of graphs are not split")
    share = summary["estimated_ns"] / summary["gpu_ns"] * 100 if summary.get("gpu_ns") else 0
    close = kernels = 0
    for kernel, s in sorted(want.items(), key=lambda item: -item[1].ns):
        if s.ns < SHARE * all_of:
            break
        kernels += 1
        more = times[kernel] - s.ns
        is_close = abs(more) <= max(PERCENT / 100 * s.ns, NS_A_LAUNCH * s.n)
        close += is_close
        print(f"    {how:4} {s.n:6} x {s.ns / s.n / 1e3:9.2f} us by CUPTI, {more / s.n / 1e3:+8.2f} us "
              f"({more / s.ns * 100:+7.2f} %) {'' if is_close else 'OFF '} {kernel}")
    print(f"  {name:8} {how:4} CUPTI {all_of / 1e6:9.3f} ms, {mine / 1e6:9.3f} ms ({(mine / all_of - 1) * 100:+.2f} %); "
          f"{close} of {kernels} kernels within {PERCENT} % or {NS_A_LAUNCH / 1e3} us a launch; "
          f"{summary.get('launches')} launches, {share:.1f} % of the time estimated", flush=True)
    if how == "all" and close < kernels:
        fail(f"{name}: {kernels - close} kernels are off")


def main():
    for name in sys.argv[2:] or WORKS:
        want = by_cupti(name)
        for how in ("all", "auto"):
            times, summary = by_gpucollect(sys.argv[1], name, how)
            if summary:
                compare(name, how, want, times, summary)
    print(f"  {bad} wrong")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
