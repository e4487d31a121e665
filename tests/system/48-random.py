#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 900
"""Programs by chance (tests/programs/gpu_random.c): what holds for every one of them.

SEEDS=1000 tests/run.sh system/48-random    so many seeds (two to ten a second); without, those of 60 s
SEED=17 tests/run.sh system/48-random       this one alone; TURNS=40 makes it a shorter program

Copies and sets are launches here, with a kind for the kernel and their bytes for the grid. Each runs alone and with the timing library: it prints the same, and the device counts no use of a
dead handle and no line in the error log that are not its own. Each launch has one site and one result,
with what the program knows of it: entry, kernel, shape, stream, context. A duration is the device's own.
What has none has the one cause that follows from the program's situation as it prints it, or one of
few where that depends on the device's pace. Twenty of them run under gpucollect itself.
"""
import collections
import os
import re
import subprocess
import sys
import time

import timing
from timing import CAPTURED, CONTEXT_GONE, DISTURBED, ENTRIES, ENTRY, F_CAPTURED, F_COOPERATIVE, F_COPY, \
    F_FAILED, F_GRAPH, F_NO_BLOCK, F_PDL, F_PTSZ, F_STREAM_UNKNOWN, F_TIMED, LAUNCH_FAILED, NONE, NO_END, \
    OTHER_CONTEXT, OUTSTANDING, PDL, TMP

sys.path.insert(0, os.path.join(timing.TOP, "tests/tools"))
import launches as L  # noqa: E402

checks = timing.Checks()
TURNS = int(os.environ.get("TURNS", "150"))
SECONDS = 60
MULTI = "cuLaunchCooperativeKernelMultiDevice"
OLD = ("cuLaunch", "cuLaunchGrid", "cuLaunchGridAsync")
ALL_ENTRIES = timing.entries()
# What a thread may be inside of while another one launches.
OUTER = [e for e in ENTRIES[1:] if "Graph" not in e and e != MULTI]
HELD_FREELY = 4     # brackets without an end before one may be left out by chance (ALL_HELD)
LAUNCH = re.compile(r"t(\d+) launch (.*) = (\d+)")


def duration_right(launch, got, want):
    """Behind waits of other streams the virtual device's legacy stream has a launch's own time in its bracket:
    an event is said to be not over there, and placed before that afterwards."""
    return timing.exact(got, want) or (launch.key.startswith("legacy") and 0 < got - want < 1000)


class Launch:
    """One as the program printed it."""

    def __init__(self, thread, words, result, line):
        self.__dict__.update(w.split("=", 1) for w in words.split())
        self.thread, self.result, self.line = int(thread), int(result), line
        self.n, self.ctx, self.current, self.during = (
            int(v) for v in (self.n, self.ctx, self.current, self.during))
        self.pdl, self.event, self.cooperative = (c == "1" for c in self.attributes)
        self.asked, self.status = map(int, self.asked.split(":"))
        self.graph = "Graph" in self.entry
        self.copy = self.entry.startswith("cuMem")
        # The driver is not asked about a default stream where no context is current.
        self.unknown = self.asked != 0 and (self.key[0] == "s" or self.current != 0)
        self.captured = not self.asked and self.status != 0

    def flags(self):
        flags = F_PTSZ if self.entry.endswith(("_ptsz", "_ptds")) else 0
        flags |= F_COPY if self.copy else 0
        flags |= F_COOPERATIVE if "Cooperative" in self.entry or self.cooperative else 0
        flags |= F_GRAPH if self.graph else 0
        flags |= F_NO_BLOCK if self.entry in OLD else 0
        flags |= F_PDL if self.pdl or self.event else 0
        if self.entry != MULTI:
            flags |= F_CAPTURED if self.captured else 0
            flags |= F_STREAM_UNKNOWN if self.unknown else 0
        return flags | (F_FAILED if self.result else 0)

    def __repr__(self):
        return str(self.__dict__)


class Account:
    """What a run printed: its launches by number, and what may become of each."""

    def __init__(self, text):
        self.launches, self.gone = [], {}
        for at, line in enumerate(text.split("\n")):
            m = LAUNCH.fullmatch(line)
            if m:
                launch = Launch(*m.groups(), at)
                if launch.hooked == "1":
                    self.launches.append(launch)
            elif line.startswith("gone "):
                self.gone[int(line.split()[1])] = at
        self.launches.sort(key=lambda l: l.n)
        self.unfinished = "\nunfinished\n" in text
        # A launch that fails in the middle of another one may count as a disturbance.
        self.disturbed = {(l.during, l.key) for l in self.launches if l.during and not l.result}
        self.touched = {(l.during, l.key) for l in self.launches if l.during}
        self.causes = self.allowed()

    def allowed(self):
        causes, pdl, before = {}, set(), collections.Counter()
        for l in self.launches:
            causes[l.n] = self.of_one(l, l.key in pdl, before[l.key])
            if l.entry == MULTI or l.captured or l.asked:
                continue
            before[l.key] += 1
            if l.pdl or l.event:
                pdl.add(l.key)
        return causes

    def of_one(self, l, after_pdl, before):
        if l.result:
            return {LAUNCH_FAILED}
        if l.entry == MULTI:
            return {ENTRY}
        if l.captured or l.asked:
            return {CAPTURED}
        disturbed = (l.n, l.key) in self.disturbed or self.is_inside(l)
        causes = {DISTURBED} if disturbed else {NONE}
        # In a run with others, which end otherwise: by other threads, by what is no launch, or not at all.
        if l.pdl or l.event or after_pdl:
            causes |= {PDL, DISTURBED, NO_END}
        if (l.n, l.key) in self.touched:
            causes.add(DISTURBED)
        if l.ctx != l.current:
            causes.add(OTHER_CONTEXT)
        if before >= HELD_FREELY or (before and (l.pdl or l.event)):
            causes.add(OUTSTANDING)
        if self.gone.get(l.ctx, -1) > l.line:
            causes.add(CONTEXT_GONE)
        if self.unfinished:
            causes.add(NO_END)
        return causes

    def is_inside(self, l):
        """Another thread is inside of a launch into the same stream, and has its place there."""
        outer = next((o for o in self.launches if o.n == l.during), None)
        return outer and outer.key == l.key and not outer.asked and not outer.status


def match_truth(launches, sites, truths):
    """number -> the device's line of that launch; None where it has none."""
    groups = collections.defaultdict(lambda: ([], []))
    for t in truths:
        groups[t[1:9]][t.start is None].append(t)
    found = {}
    for l in launches:
        if l.result:
            continue
        s = sites[l.n]
        key = (s.tid, l.entry, l.kernel, l.grid, l.block, l.shared, s.stream, l.ctx)
        # In one stream in their order; what its context took with it comes last.
        timed, untimed = groups[key]
        timed.sort(key=lambda t: t.start)
        pool = untimed if l.captured or not timed else timed
        found[l.n] = pool.pop(0) if pool else None
    return found, [t for pools in groups.values() for pool in pools for t in pool]


def compare_first(l, site, result, channel):
    """What the result says of its launch, or of the first of its launches."""
    if ALL_ENTRIES[result.entry] != l.entry:
        return "entry of the result"
    if not l.graph and not l.copy and not l.result and channel.kernel(result) != l.kernel:
        return f"kernel {channel.kernel(result)}"
    if (site.function, site.stream) != (result.function, result.stream):
        return "function"
    if result.flags & ~F_TIMED != l.flags():
        return f"flags of the result {result.flags:x} not {l.flags():x}"
    return None


def compare_run(members, truths, result):
    """Launches of one thread that follow each other in a stream, all but the first dependent ones."""
    if len({(l.key, l.thread) for l in members}) != 1:
        return "a run of several streams or threads"
    if any(not (l.pdl or l.event) for l in members[1:]) or any(l.result or l.captured for l in members):
        return "a run of others than dependent launches"
    if result.cause != NONE:
        return None
    of = [truths.get(l.n) for l in members]
    if any(not t or t.start is None for t in of):
        return "a run that did not run"
    ns = max(t.end for t in of) - min(t.start for t in of)
    return None if timing.exact(result.duration, ns) else f"duration {result.duration} not {ns}"


def copy_is_right(l, site, result):
    """Its probe may not know everything yet."""
    low, high, kind = map(int, site.grid.split(","))
    return (timing.KINDS[result.copy].replace(" ", "_"), result.bytes) == (l.kernel, int(l.grid)) and \
        kind in (0, result.copy) and low + (high << 32) in (0, result.bytes)


def compare_one(l, site, result, truth, channel, allowed, may_not_run):
    """What differs, or None."""
    failed_list = l.entry == MULTI and l.result
    if ALL_ENTRIES[site.entry] != l.entry:
        return "entry"
    if l.copy and not l.result and not l.captured and not copy_is_right(l, site, result):
        return f"kind {timing.KINDS[result.copy]}, {result.bytes} bytes"
    if site.id == result.id:
        what = compare_first(l, site, result, channel)
        if what:
            return what
    if not l.graph and not l.copy and not failed_list and site.grid != l.grid:
        return "grid"
    if not l.graph and not l.copy and not failed_list and l.entry not in OLD and \
            (site.block, str(site.shared)) != (l.block, l.shared):
        return "block"
    if site.weight != 1:
        return f"weight of the site {site.weight}"
    if (site.flags | (F_FAILED if l.result else 0)) & ~F_TIMED != l.flags():
        return f"flags {site.flags:x} not {l.flags():x}"
    if result.cause not in allowed:
        return f"cause {result.cause} not of {allowed}"
    if not l.result and not truth and not may_not_run:
        return "not run"
    if truth and truth.start is not None and l.kernel.startswith("spin") and \
            truth.end - truth.start != int(l.ns):
        return f"the device ran it for {truth.end - truth.start}"
    if result.weight & (result.weight - 1) or (result.weight > 1 and not {OUTSTANDING, PDL} & allowed):
        return f"weight {result.weight}"
    if result.cause == NONE and result.launches == 1 and (not truth or truth.start is None or
            not duration_right(l, result.duration, truth.end - truth.start)):
        return f"duration {result.duration}"
    return None


def in_order(launches, sites):
    """number -> site: since threads take turns, sites are hit in the launches' order."""
    threads = {}
    for l, s in zip(launches, sites):
        if threads.setdefault(l.thread, s.tid) != s.tid:
            checks(False, "thread", l.thread, "launches in two:", s, l)
    checks.equal(len(set(threads.values())), len(threads), "threads")
    return {l.n: s for l, s in zip(launches, sites)}


def compare_graphs(run, launches, sites, results):
    """What a graph runs, where that is known: the device's own, in the order of the thread."""
    made = collections.defaultdict(list)
    if os.path.exists(run.graphs_file):
        with open(run.graphs_file, encoding="utf-8") as f:
            for line in f:
                _, tid, *names = line.split()
                made[int(tid)].append(collections.Counter(names))
    for l in launches:
        site = sites[l.n]
        if not l.graph or l.result:
            continue
        if not checks(made[site.tid], "a graph that the device has not launched", l):
            continue
        want, result = made[site.tid].pop(0), results.get(site.id)
        got = run.channel.kernels_of(result) if result else None
        graphs[got is not None] += 1
        kernels.update("gone" if name == "?" else "there" for name in want.elements())
        # Kernels that were gone may have any name.
        checks(got is None or sum(got.values()) == sum(want.values()) and
               sum((got - want).values()) <= want["?"], "a graph runs", want, "not", got, l)


COPIES = os.path.join(TMP, "copies")


def copies():
    """What the device wrote down of them, in the form of launches."""
    with open(COPIES, encoding="utf-8") as f:
        words = list(map(str.split, f))
    return [timing.Truth(int(pid), int(tid), entry, kind, size, "-", "-",
                         "0" if stream == "(nil)" else stream[2:], int(context),
                         None if start == "-" else int(start), None if end == "-" else int(end))
            for pid, tid, entry, kind, size, stream, context, start, end in words]


def compare(run, account):
    channel = run.channel
    timing.account(checks, channel, "channel")
    if not checks.equal(len(run.sites()), len(account.launches), "sites"):
        return
    sites = in_order(account.launches, run.sites())
    results, runs = channel.by_id(), collections.defaultdict(list)
    truths, left = match_truth(account.launches, sites, run.truth() + copies())
    checks(not left, "the device ran what nobody launched:", left[:1])
    contexts = {}
    compare_graphs(run, account.launches, sites, results)
    for l in account.launches:
        result, truth = results.pop(sites[l.n].id, None), truths.get(l.n)
        if not checks(result, "no result", l, sites[l.n]):
            continue
        runs[result].append(l)
        # It may never have run: one that isn't timed doesn't tell.
        may_not_run = account.unfinished or account.gone.get(l.ctx, -1) > l.line
        what = compare_one(l, sites[l.n], result, truth, channel, account.causes[l.n], may_not_run)
        if not checks(not what, what, l, sites[l.n], result, truth):
            break
        seen[l.entry, result.cause] += 1
        in_runs[result.cause] += result.launches > 1
        if result.context:
            checks.equal(contexts.setdefault(result.context, l.ctx), l.ctx, "context", l, result)
    for result, members in runs.items():
        checks.equal(len(members), result.launches, "launches of", result)
        if result.launches > 1:
            what = compare_run(members, truths, result)
            checks(not what, what, members, result)
    checks.equal(len(set(contexts.values())), len(contexts), "contexts that have two numbers")
    checks(not results or checks.wrong, "results of no launch", list(results.values())[:1])


def compare_stats(account, alone, guest, runs):
    """Asking about a stream that the program may not use fails as its launch does."""
    asked = [l for l in account.launches if l.unknown and l.entry != MULTI]
    lines = sum(2 if l.asked == 906 else 1 for l in asked)
    stale = sum(l.asked == 709 and l.key[0] == "s" for l in asked)
    # Before a run ends in the legacy stream it is asked, too, and fails where another stream captures.
    more = guest["logged"] - alone["logged"] - lines
    checks(more == 0 or (more % 2 == 0 and more <= 2 * runs), more, "more lines in the error log,", runs, "runs")
    checks.equal(guest["stale"], alone["stale"] + stale, "uses of dead handles")
    checks.equal(guest["after_fork"], alone["after_fork"], "calls after a fork")
    for key in ("launches", "failed", "graph_launches", "captured", "pdl", "copies"):
        checks.equal(guest[key], alone[key], key)


def variables(seed, what):
    """The environment of a run, and what the program gets."""
    fifo, stats = (os.path.join(TMP, f"{what}.{name}") for name in ("fifo", "stats"))
    for path in (fifo, fifo + ".ready", stats, COPIES):
        if os.path.exists(path):
            os.remove(path)
    os.mkfifo(fifo)
    entry = OUTER[seed % len(OUTER)]
    return stats, timing.program("gpu_random", seed, TURNS, entry, fifo), {
        "STANDIN_DEVICES": "2", "STANDIN_STATS": stats, "STANDIN_COPIES": COPIES, "STANDIN_GATE": f"{entry}:{fifo}"}


def with_library(seed):
    """
    With every other seed launches that may overlap are also bracketed by themselves, now and then.
    A run whose channel the collector has met and kept: it looks for it every 5 ms, if it gets the time, must
    not be silent for 2 s, and another one that looks at the whole machine may take it over.
    """
    for _ in range(10):
        stats, command, extra = variables(seed, "guest")
        run = timing.Run(command, library=seen_library[seed % 2], **extra)
        if len(run.channels) == 1 and run.channel.reason not in (timing.REASON_SILENT,
                                                                 timing.REASON_SUPERSEDED):
            break
    return run, timing.stats(stats)


def one(seed):
    stats, command, extra = variables(seed, "alone")
    # Alone: whoever looks at the whole machine meanwhile stays out of it.
    alone = subprocess.run(command, env=timing.environment("simcuda", GPUCOLLECT_DISABLE=1, **extra),
                           capture_output=True, stdin=subprocess.DEVNULL, text=True, timeout=120)
    run, guest_stats = with_library(seed)
    checks.equal(alone.returncode, 0, "status alone", alone.stderr)
    if checks.equal((run.status, run.stderr), (alone.returncode, alone.stderr), "status") and \
            checks.equal(difference(run.stdout, alone.stdout), None, "it prints"):
        account = Account(alone.stdout)
        compare(run, account)
        runs = sum(bool(r.cause) and bool(r.flags & F_PDL) or r.launches > 1 for r in run.channel.results)
        compare_stats(account, timing.stats(stats), guest_stats, runs)
    for path in (run.out, run.truth_file, run.trace_file, run.graphs_file):
        if os.path.exists(path) and "SEED" not in os.environ:
            os.remove(path)


def difference(one, other):
    """The first line that is not the same."""
    for pair in zip(one.split("\n"), other.split("\n")):
        if pair[0] != pair[1]:
            return pair
    return None if len(one) == len(other) else "their lengths"


def under_gpucollect(seed):
    """
    The whole way: each kernel has as many launches as the program made outside of captures, and each kind of copy
    as many bytes.
    """
    target = timing.program("gpu_random", seed, TURNS)
    code, out, _ = L.plain(target, STANDIN_DEVICES="2", GPUCOLLECT_DISABLE="1")
    made = [l for l in Account(out).launches if not l.result and not l.captured]
    launches = collections.Counter("[graph]" if l.graph else l.kernel for l in made if not l.copy)
    moved = collections.Counter()
    for l in made:
        if l.copy and int(l.grid):
            moved[l.kernel.replace("_", " ")] += int(l.grid)
    for metric, want in ("launches", launches), ("bytes", moved):
        r = L.run(target, metric=metric, STANDIN_DEVICES="2", name=f"{seed}.folded")
        checks.equal((r.status, difference(r.out, out)), (code, None), "under gpucollect")
        checks.equal(r.by_kernel(), want, f"under gpucollect: {metric} by kernel")


def seeds():
    """Those to run, as long as there is time."""
    if "SEED" in os.environ:
        yield int(os.environ["SEED"])
        return
    number, end = int(os.environ.get("SEEDS", "0")), time.monotonic() + SECONDS
    seed = 0
    while seed < number or (not number and time.monotonic() < end):
        seed += 1
        yield seed


def try_seed(what, seed):
    before = checks.wrong
    what(seed)
    if checks.wrong != before:
        print(f"seed {seed}; again: SEED={seed} TURNS={TURNS} tests/run.sh system/48-random", flush=True)
        failed.append(seed)


seen, in_runs, failed, done = collections.Counter(), collections.Counter(), [], 0
kernels = collections.Counter()
graphs = collections.Counter()	# launches by whether it is known what they run
seen_library = [timing.seen_library(apart) for apart in (False, True)]
for each in seeds():
    try_seed(one, each)
    done += 1
for each in [int(os.environ["SEED"])] if "SEED" in os.environ else range(1, 21):
    try_seed(under_gpucollect, each)
by_cause = collections.Counter()
for (_, cause), n in seen.items():
    by_cause[cause] += n
print(f"{graphs[True]} graph launches of which it is known what they run, {graphs[False]} others; of their kernels {kernels['gone']} of "
      f"{sum(kernels.values())} were unloaded before")
if done >= 100:
    checks(graphs[True] > 20 * graphs[False] and kernels["there"] > kernels["gone"], "graphs of which it isn't known what they run:", graphs)
print(f"{done} seeds, {sum(seen.values())} launches, by cause {dict(sorted(by_cause.items()))}, "
      f"of these in runs {dict(sorted(in_runs.items()))}")
if done >= 100:
    for name in ENTRIES[1:] + [e for e in ALL_ENTRIES if e.startswith("cuMem")]:
        checks(seen[name, ENTRY if name == MULTI else NONE], name, "was never timed")
    for cause in (NONE, CAPTURED, PDL, OUTSTANDING, OTHER_CONTEXT, LAUNCH_FAILED, CONTEXT_GONE, DISTURBED,
                  ENTRY):
        checks(by_cause[cause], "no launch had cause", cause)
    checks(in_runs[NONE], "no run has a time")
if failed:
    print("seeds that failed:", *failed)
sys.exit(checks.status())
