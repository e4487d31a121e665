#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 200
"""Copies and sets of memory by call path: bytes and GPU time are exactly the program's own account.

With the library started with the program and attached, on every form of driver; each single call against
what the device wrote down; into captures, refused ones, and without the library, which sees none.
"""
import collections
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/system"))
import launches as L  # noqa: E402
import timing  # noqa: E402

check = L.Checks()
PROGRAM = f"{L.PROGRAMS}/gpu_copies"
COPIES = os.path.join(L.TMP, "copies")
KINDS = ["memcpy", "memcpy HtoD", "memcpy DtoH", "memcpy DtoD", "memcpy PtoP", "memcpy HtoH", "memset"]
# The entries as they follow each other in channel.h, each with its per-thread twin.
ENTRIES = [name + twin for name in (
    "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2", "cuMemcpyAsync",
    "cuMemcpyPeerAsync", "cuMemsetD8Async", "cuMemsetD16Async", "cuMemsetD32Async")
    for twin in ("", "_ptsz")] + [name + twin for name in (
        "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuMemcpyDtoD_v2", "cuMemcpy", "cuMemcpyPeer",
        "cuMemsetD8_v2", "cuMemsetD16_v2", "cuMemsetD32_v2")
        for twin in ("", "_ptds")]

Copy = collections.namedtuple("Copy", "count bytes ns path what")
Line = collections.namedtuple("Line", "pid tid entry kind bytes stream context start end")


def account(out):
    """The program's copies, a line for each function."""
    found = re.findall(r"^copy (\d+) (\d+) (\d+) (\S+) (.+)$", out, re.M)
    return [Copy(int(count), int(n), int(ns), path, what) for count, n, ns, path, what in found]


def written():
    """What the device wrote down, call by call."""
    with open(COPIES, encoding="utf-8") as f:
        lines = [Line(*line.split()) for line in f]
    os.remove(COPIES)
    return lines


def chains(out, metric):
    """All that the metric shows, as the chains that L.compare takes."""
    copies = [L.Chain(None, c.path, c.what, c.bytes, c.ns) for c in account(out)]
    kernels = L.account(out)
    return {"gpu": copies + kernels, "bytes": copies, "launches": kernels}[metric]


def one(metric, *args, mode="library", kind="simcuda"):
    what = f"{' '.join(args)} {metric} {mode} {kind}"
    r = L.run([PROGRAM, *args], mode=mode, metric=metric, kind=kind, STANDIN_COPIES=COPIES)
    L.compare(check, what, r, "gpu" if metric == "gpu" else "launches", chains(r.out, metric),
              named=not L.by_probes(mode), entry=kind != "simcuda-old")
    lines, copies = written(), account(r.out)
    check(r.status == 0, f"{what}: status {r.status}")
    check(len(lines) == sum(c.count for c in copies), f"{what}: the device has {len(lines)} copies")
    for c in copies:
        check(c.count > 0, f"{what}: nothing by {c.path}")
    for name in KINDS[1:]:
        of_device = sum(int(x.bytes) for x in lines if x.kind == name.replace(" ", "_"))
        check(of_device == sum(c.bytes for c in copies if c.what == name) > 0,
              f"{what}: {name}: the device has {of_device} bytes")
    return r


def summed_up(r):
    """The closing summary keeps copies apart from launches."""
    copies, kernels = account(r.out), L.account(r.out)
    count, made = sum(c.count for c in copies), sum(k.launches for k in kernels)
    check((r.launches(), r.timed()) == (made, made), f"{r.launches()} launches, {r.timed()} timed: {r.said}")
    got = r.number(r"launches \(.*\), ([\d,]+) copies and sets \(")
    timed = r.number(r"copies and sets \([^,]*, ([\d,]+) timed,")
    check((got, timed) == (count, count), f"{got} copies, {timed} timed, not {count}: {r.said}")
    check(not r.lost() and not r.untimed(), f"lost or untimed: {r.said}")


def for_scripts():
    r = L.run([PROGRAM, "7"], "--json", metric="bytes")
    said = [json.loads(line) for line in r.err.splitlines() if line.startswith('{"gpucollect":')]
    s = next(x for x in said if x["gpucollect"] == "summary")
    copies = account(r.out)
    want = {"metric": "bytes", "unit": "bytes", "launches": 7, "timed": 7, "gpu_ns": 35000,
            "copies": sum(c.count for c in copies), "copied_bytes": sum(c.bytes for c in copies),
            "copies_timed": sum(c.count for c in copies), "copies_ns": sum(c.ns for c in copies)}
    check({key: s[key] for key in want} == want, f"--json: {s} not {want}")


def by_call():
    """Each probe and each result against what the device did, in its order."""
    run = timing.Run([PROGRAM, "30", "1000"], library=timing.seen_library(), STANDIN_COPIES=COPIES)
    lines, channel = written(), run.channel
    results = {r.id: r for r in channel.results}
    sites = [s for s in sorted(run.sites(), key=lambda s: s.id) if s.flags & timing.F_COPY]
    first = min(s.entry for s in sites)
    check(len(sites) == len(lines) == channel.count("copies"),
          f"{len(sites)} probes of {len(lines)} copies, {channel.count('copies')} counted")
    check(channel.count("launched") == 30, f"{channel.count('launched')} launches")
    for s, x in zip(sites, lines):
        r, entry = results[s.id], ENTRIES[s.entry - first]
        stream = "0" if x.stream == "(nil)" else x.stream[2:]
        low, high, kind = map(int, s.grid.split(","))
        # whose direction is known afterwards
        asked = x.entry.split("_")[0] in ("cuMemcpy", "cuMemcpyAsync")
        good = entry == x.entry and r.entry == s.entry and s.stream == r.stream == stream and \
            low + (high << 32) == r.bytes == int(x.bytes) and s.function == r.function == "0" and \
            KINDS[r.copy].replace(" ", "_") == x.kind and kind == (0 if asked else r.copy) and \
            bool(s.flags & timing.F_PTSZ) == entry.endswith(("_ptsz", "_ptds")) and \
            r.cause == timing.NONE and r.duration == int(x.end) - int(x.start)
        if not check(good, f"{s}\n{r}\n{x}"):
            break


def captures():
    """A capture has in it what the program put there; executed as a graph it isn't a copy of its own."""
    for way, says in ("capture", "captured into a graph"), ("fail", "that failed"):
        code, alone, _ = L.plain([PROGRAM, way, "20"])
        for metric in "gpu", "bytes":
            r = L.run([PROGRAM, way, "20"], metric=metric)
            check((code, alone) == (0, r.out), f"{way} {metric}: {r.out} not {alone}")
            check(not any(s.kernel.startswith("mem") for s in r.stacks), f"{way} {metric}: {r.stacks}")
            number = 60 if way == "capture" else 20
            got = r.number(rf"^copies {says}: ([\d,]+)")
            check(got == number, f"{way} {metric}: {got} not {number}: {r.said}")
            check(r.number(r"([\d,]+) copies and sets") == 0, f"{way} {metric}: {r.said}")


for kind in ("simcuda", "simcuda-relro", "simcuda-old", "simcuda-high"):
    for mode in ("library", "attached"):
        summed_up(one("gpu", "30", kind=kind, mode=mode))
        one("bytes", "30", kind=kind, mode=mode)
# Sizes that are no whole numbers of 8 bytes, and of more than 32 bits together.
one("bytes", "40", "100001")
one("launches", "10")
one("launches", "10", mode="probes")
for_scripts()
by_call()
captures()
sys.exit(check.status())
