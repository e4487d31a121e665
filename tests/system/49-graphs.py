#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
"""The time of graphs is split among what they run: the sum to the nanosecond, the parts by what is known."""
import collections
import os
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402

check = L.Checks()
UNSPLIT = r"^graph launches of which it is not known what they run: ([\d,]+)"
CAPTURED = r"^captured into a graph: ([\d,]+)"
SPLIT = r"^GPU time is event-timed.*; of graphs, split among what they run by an estimate: "


def insides(out):
    """(path, what, captured from) -> ns, as the program says; "-" is what nobody can know."""
    sums = collections.Counter()
    for line in out.splitlines():
        if line.startswith("inside "):
            _, path, what, ns, origin = line.split()
            sums[path, what, origin] += int(ns)
    return sums


def run(what, *args, mode="library", kind="simcuda", metric="gpu", **extra):
    r = L.run([f"{L.PROGRAMS}/gpu_graphs", *args], mode=mode, metric=metric, kind=kind, **extra)
    L.compare(check, what, r, metric, entry=kind != "simcuda-old")
    check(r.lost() == 0, f"{what}: {r.lost()} lost")
    check(not r.err, f"{what}: {r.err}")
    return r


def bare(frames):
    """Without the way to the program's first function, and without the driver's."""
    m = L.re.fullmatch(rf"(?:{L.ROOT};)*(.*?)(;cu[A-Z]\w*)?", ";".join(frames))
    return m[1] or "-"


def parts(r):
    """(path, what, captured from) -> ns, as it was written; "-" is what stands at the graph itself."""
    got = collections.Counter()
    for s in r.stacks:
        if s.kernel == L.GRAPH:
            what = s.inside[-1][len(L.GPU):] if s.inside else "-"
            got[bare(s.frames), what, bare(s.inside[:-1])] += s.weight
    return got


def split(what, *args, **how):
    what, before = f"{what} {' '.join(args)}", check.failures
    r = run(what, *args, **how)
    want, got = insides(r.out), parts(r)
    check(want, f"{what}: the program says nothing")
    check(set(want) == set(got), f"{what}: {sorted(got)} instead of {sorted(want)}")
    # Each entry of its own is rounded.
    for key, ns in want.items():
        check(abs(got[key] - ns) <= 4, f"{what}: {key}: {got[key]} instead of {ns}")
    check(any(L.re.search(SPLIT, s) for s in r.said) == any(k[1] != "-" for k in want),
          f"{what}: what it says: {r.said}")
    unknown = sum(int(line.split()[2]) for line in r.out.splitlines() if line.startswith("graph ")) \
        if {k[1] for k in want} == {"-"} else 0
    if unknown:
        check(r.number(UNSPLIT) == unknown, f"{what}: {r.number(UNSPLIT)} not known, not {unknown}")
    elif "-" not in {k[1] for k in want}:
        check(r.number(UNSPLIT) == 0, f"{what}: {r.number(UNSPLIT)} not known")
    if check.failures != before:
        r.show()
    return r


for case in "decode", "often", "stale", "cold", "some", "shapes", "built", "copies", "update", "nodes", "sources", "again", "threads":
    split("library", case)
split("library", "decode", "1000")
for kind in "simcuda-relro", "simcuda-old", "simcuda-high":
    split(kind, "built", kind=kind)
    split(kind, "update", kind=kind)
split("library", "large", "20000")
r = split("library", "large", "70000")
check(any("graphs whose kernels are not known, too many (1)" in s for s in r.said),
      f"large: it says {r.said}")
# What goes into a capture is looked at, whichever others are.
for how in "auto", "50":
    r = L.run([f"{L.PROGRAMS}/gpu_graphs", "often"], "--launches", how)
    check(how == "auto" or 0 < r.number(r"^looked at ([\d,]+) of") < 880, f"{how}: all were looked at: {r.said}")
    want, got = insides(r.out), parts(r)
    check(set(want) == set(got), f"{how}: {sorted(got)} instead of {sorted(want)}")
    for key, ns in want.items():
        check(abs(got[key] - ns) <= 4, f"{how}: {key}: {got[key]} instead of {ns}")
    check(r.number(CAPTURED) == 7, f"{how}: {r.number(CAPTURED)} captured, not 7")
# Who updates graphs has them read as long as that can be paid for; here, not twice.
r = L.run([f"{L.PROGRAMS}/gpu_graphs", "poor", "20000"], "--launches", "auto", "--overhead", "0.01")
check(parts(r).keys() == insides(r.out).keys() and r.number(UNSPLIT) == 2 and r.number(CAPTURED) == 20000,
      f"poor: {sorted(parts(r).items())} instead of {sorted(insides(r.out).items())}, {r.number(UNSPLIT)} not known")
# What it runs has no launches of its own.
r = run("launches", "decode", metric="launches")
check(all(not s.inside for s in r.stacks), "launches: of what is in a graph")

# The stand-in answers as a device is thought to.
for kind in "simcuda", "simcuda-high":
    _, out, _ = L.plain([f"{L.PROGRAMS}/gpu_graph_facts", "100"], kind=kind)
    check(len(L.re.findall("^fact .*: yes$", out, L.re.M)) == 3 and
          "node made of a function: the same as function, name spin_a, result 0" in out, f"{kind}: {out}")

# Attached before the graph is made, and after.
split("attached", "decode", mode="attached")
r = L.run([f"{L.PROGRAMS}/gpu_graphs", "decode", "20"], mode="attached", gate="cuGraphLaunch")
check(set(parts(r)) == {("main;replay", "-", "-")} and 19 <= r.number(UNSPLIT) <= 20,
      f"attached late: {parts(r)}, {r.number(UNSPLIT)} not known")
check(not r.complaints(), f"attached late: {r.complaints()}")

sys.exit(check.status())
