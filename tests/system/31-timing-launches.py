#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every launch is seen once, with its own numbers, and its time is the device's own.

timeout: 300
The virtual device writes down each launch; the library's sites, here replaced by ones that write,
and its results are held against that, launch by launch, thread by thread.
"""
import collections
import re
import sys

import timing
from timing import B, CAPTURED, F_CAPTURED, F_COOPERATIVE, F_FAILED, F_GRAPH, F_NO_BLOCK, F_PDL, \
    F_PTSZ, F_TIMED, NONE, PDL, Run, case, program

checks = timing.Checks()
SEEN = timing.seen_library()


def flags_of(truth):
    flags = F_PTSZ if truth.entry.endswith("_ptsz") else 0
    flags |= F_COOPERATIVE if "Cooperative" in truth.entry else 0
    flags |= F_GRAPH if "Graph" in truth.entry else 0
    flags |= F_NO_BLOCK if timing.ENTRIES.index(truth.entry) in (8, 9, 10) else 0
    return flags | (F_CAPTURED if truth.start is None else 0)


def compare_one(where, site, result, truth, channel):
    """One launch: its probe, its result, the truth. Returns what differs, or None."""
    graph = truth.kernel.startswith("graph")
    if timing.ENTRIES[site.entry] != truth.entry or result.entry != site.entry:
        return "entry"
    if not graph and channel.kernel(result) != truth.kernel:
        return "kernel"
    if not graph and (site.grid, str(site.shared)) != (truth.grid, truth.shared):
        return "shape"
    if not graph and not site.flags & F_NO_BLOCK and site.block != truth.block:
        return "block"
    if site.stream != truth.stream or result.stream != site.stream:
        return "stream"
    if site.function != result.function or site.weight != 1 or result.launches != 1:
        return "function"
    if (site.flags & ~F_TIMED & ~F_PDL) != flags_of(truth):
        return f"flags {site.flags:x}"
    if result.flags & ~F_TIMED != site.flags & ~F_TIMED:
        return f"flags of the result {result.flags:x}"
    if (result.cause == NONE) != bool(result.flags & F_TIMED):
        return "timed"
    if (result.cause == CAPTURED) != (truth.start is None):
        return "captured"
    if result.cause == NONE and not timing.exact(result.duration, truth.end - truth.start):
        return f"duration {result.duration} not {truth.end - truth.start}"
    return None


def compare(where, run, least_timed=1.0):
    """least_timed: the share of the executed launches that must have a time."""
    channel = run.channel
    timing.account(checks, channel, where)
    results = channel.by_id()
    sites = run.sites()
    by_tid = collections.defaultdict(lambda: ([], []))
    for s in sorted(sites, key=lambda s: s.id):
        by_tid[s.tid][0].append(s)
    truths = run.truth()
    for t in truths:
        by_tid[t.tid][1].append(t)
    checks.equal(channel.count("launched"), len(truths), where, "launches counted")
    checks.equal(len(sites), len(truths), where, "sites hit")
    for entry, n in collections.Counter(t.entry for t in truths).items():
        key = f"launches[{timing.ENTRIES.index(entry)}]"
        checks.equal(channel.count(key), n, where, entry)
    wrong = []
    for here, there in by_tid.values():
        if not checks.equal(len(here), len(there), where, "launches of a thread"):
            continue
        for s, t in zip(here, there):
            if s.id not in results:
                wrong.append(("no result", s, t))
                continue
            what = compare_one(where, s, results[s.id], t, channel)
            if what:
                wrong.append((what, s, results[s.id], t))
    checks(not wrong, where, len(wrong), "launches differ, the first:", *wrong[:1])
    executed = [r for r in channel.results if not r.flags & (F_CAPTURED | F_FAILED)]
    timed = sum(r.cause == NONE for r in executed)
    checks(timed >= least_timed * len(executed), where, "timed", timed, "of", len(executed),
           dict(channel.by_cause()))
    print(f"{where}: {len(sites)} launches, {timed} timed", flush=True)


def main():
    run = Run(program("gpu_chains", 20), library=SEEN)
    compare("chains", run, 0.3)
    for kind in ("simcuda-relro", "simcuda-old", "simcuda-high"):
        compare(f"chains on {kind}", Run(program("gpu_chains", 20), library=SEEN, kind=kind), 0.3)
    # every route to every entry
    run = Run(case("routes"), library=SEEN)
    plain = Run(case("routes"), library="/nonexistent")
    checks.equal(run.stdout, plain.stdout, "routes: output")
    checks.equal(len(run.sites()), 37, "routes: launches")
    compare("routes", run)
    compare("numbers", Run(case("numbers"), library=SEEN))
    # names: alike, empty, absent, odd; none merged
    run = Run(case("kernel_names"), library=SEEN)
    names = {n[1:] for n in run.channel.names.values()}
    checks.equal(len(run.channel.names), 15, "kernel_names: names sent")
    checks.equal(len(names), 15, "kernel_names: different names")
    checks((timing.NONE, "") in names, "kernel_names: the empty one")
    checks((1, "") in names, "kernel_names: the absent one")
    checks(any(len(text) > 60000 for _, text in names), "kernel_names: the long one")
    timing.account(checks, run.channel, "kernel_names")
    per_name = collections.Counter(r.name for r in run.channel.results)
    checks.equal(sorted(per_name.values()), [50] * 15, "kernel_names: launches each")
    # threads, each with its own chain and stream
    compare("paced", Run(program("gpu_paced", 4, 20000, 2), library=SEEN), 0.99)
    compare("unpaced", Run(program("gpu_paced", 4, 0, 20000, 1), library=SEEN), 0.1)
    # captures, and graphs as a whole
    compare("capture", Run(program("gpu_capture"), library=SEEN), 0.9)
    compare("replay", Run(case("replay", 300), library=SEEN))
    # contexts and devices by turns
    compare("two contexts", Run(case("alternate", 600), library=SEEN))
    run = Run(case("alternate", 600), library=SEEN, STANDIN_DEVICES=2)
    compare("two devices", run)
    checks.equal({d for d in run.channel.devices}, {0, 1}, "two devices: sent")
    for kernel, device in (("spin_a", 0), ("spin_b", 1)):
        checks.equal({r.device for r in run.channel.results if run.channel.kernel(r) == kernel},
                     {device}, "two devices: device of", kernel)
    checks.equal(len({r.context for r in run.channel.results}), 2, "two devices: contexts")
    # a chain that may overlap
    run = Run(program("gpu_pdl"), library=SEEN)
    sites = {s.id: s for s in run.sites()}
    pdl = [i for i, s in sites.items() if s.flags & F_PDL]
    checks.equal(len(pdl), 350, "pdl: marked")
    # (which are timed, and in which runs: 32-timing-runs.py)
    results = run.channel.by_id()
    checks(all(results[i].cause in (NONE, PDL) for i in pdl), "pdl: causes", run.channel.by_cause())
    checks.equal({r.launches for r in run.channel.results if r.cause == NONE} - set(range(1, 9)), set(),
                 "pdl: none longer than a chain")
    plain = Run(program("gpu_pdl"), library="/nonexistent")
    # (a busy machine may launch too late for an overlap, with or without the library)
    kept = [int(re.search(r"^kept (\d+) of 50$", r.stdout, re.M).group(1)) for r in (run, plain)]
    checks(kept[0] >= kept[1] - 5, "pdl: overlaps kept", kept)
    print("all of", B)


main()
sys.exit(checks.status())
