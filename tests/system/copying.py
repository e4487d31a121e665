# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Copies and sets of memory: what the program says that it made, what the device wrote down, what is shown."""
import collections
import os
import re

import launches as L
import timing
from timing import KINDS

COPIES = os.path.join(L.TMP, "copies")
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


def one(check, program, metric, *args, mode="library", kind="simcuda"):
    what = f"{os.path.basename(program)} {' '.join(args)} {metric} {mode} {kind}"
    r = L.run([program, *args], mode=mode, metric=metric, kind=kind, STANDIN_COPIES=COPIES)
    L.compare(check, what, r, "gpu" if metric == "gpu" else "launches", chains(r.out, metric),
              named=not L.by_probes(mode), entry=kind != "simcuda-old")
    lines, copies = written(), account(r.out)
    check(r.status == 0, f"{what}: status {r.status}")
    check(len(lines) == sum(c.count for c in copies), f"{what}: the device has {len(lines)} copies")
    for c in copies:
        check(c.count > 0, f"{what}: nothing by {c.path}")
    for name in {c.what for c in copies} | {x.kind.replace("_", " ") for x in lines}:
        of_device = sum(int(x.bytes) for x in lines if x.kind == name.replace(" ", "_"))
        check(name in KINDS and of_device == sum(c.bytes for c in copies if c.what == name) > 0,
              f"{what}: {name}: the device has {of_device} bytes")
    return r


def summed_up(check, r):
    """The closing summary keeps copies apart from launches."""
    copies, kernels = account(r.out), L.account(r.out)
    count, made = sum(c.count for c in copies), sum(k.launches for k in kernels)
    check((r.launches(), r.timed()) == (made, made), f"{r.launches()} launches, {r.timed()} timed: {r.said}")
    got = r.number(r"launches \(.*\), ([\d,]+) copies and sets \(")
    timed = r.number(r"copies and sets \([^,]*, ([\d,]+) timed,")
    check((got, timed) == (count, count), f"{got} copies, {timed} timed, not {count}: {r.said}")
    check(not r.lost() and not r.untimed(), f"lost or untimed: {r.said}")


def by_call(check, program, entries, known):
    """
    Each probe and each result against what the device did, in its order. entries: those of the program, as they
    follow each other in channel.h; known(entry): whether its probe knows all, or else nothing or the bytes
    alone, or None: this depends on the call. Returns how many probes knew all.
    """
    known_all = 0
    run = timing.Run([program, "30", "1000"], library=timing.seen_library(), STANDIN_COPIES=COPIES)
    lines, channel = written(), run.channel
    results = {r.id: r for r in channel.results}
    sites = [s for s in sorted(run.sites(), key=lambda s: s.id) if s.flags & timing.F_COPY]
    first = min(s.entry for s in sites)
    check(len(sites) == len(lines) == channel.count("copies"),
          f"{len(sites)} probes of {len(lines)} copies, {channel.count('copies')} counted")
    check(channel.count("launched") == 30, f"{channel.count('launched')} launches")
    for s, x in zip(sites, lines):
        r, entry = results[s.id], entries[s.entry - first]
        stream = "0" if x.stream == "(nil)" else x.stream[2:]
        low, high, kind = map(int, s.grid.split(","))
        seen = (kind, low + (high << 32))
        all_of, want = (r.copy, r.bytes), known(entry)
        known_all += seen == all_of
        good = entry == x.entry and r.entry == s.entry and s.stream == r.stream == stream and \
            r.bytes == int(x.bytes) and s.function == r.function == "0" and \
            KINDS[r.copy].replace(" ", "_") == x.kind and \
            seen in ([all_of] if want else [(0, 0), (0, r.bytes)] + [all_of] * (want is None)) and \
            bool(s.flags & timing.F_PTSZ) == entry.endswith(("_ptsz", "_ptds")) and \
            r.cause == timing.NONE and r.duration == int(x.end) - int(x.start)
        if not check(good, f"{s}\n{r}\n{x}"):
            break
    return known_all


def captures(check, program, captured, refused):
    """A capture has in it what the program put there; executed as a graph it isn't a copy of its own."""
    for way, says in ("capture", "captured into a graph"), ("fail", "that failed"):
        code, alone, _ = L.plain([program, way, "20"])
        for metric in "gpu", "bytes":
            r = L.run([program, way, "20"], metric=metric)
            check((code, alone) == (0, r.out), f"{way} {metric}: {r.out} not {alone}")
            check(not any(s.kernel.startswith("mem") for s in r.stacks), f"{way} {metric}: {r.stacks}")
            number = captured if way == "capture" else refused
            got = r.number(rf"^copies {says}: ([\d,]+)")
            check(got == number, f"{way} {metric}: {got} not {number}: {r.said}")
            check(r.number(r"([\d,]+) copies and sets") == 0, f"{way} {metric}: {r.said}")
