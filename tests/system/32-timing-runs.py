#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Launches that may overlap are timed in runs, from outside: what is in a run, and its time.

timeout: 300
The program (gpu_runs) is told what to put into a stream; which launches belong together follows from
that, and a run's time from what the device wrote down of its members.
"""
import sys

import timing
from timing import CAPTURED, CONTEXT_ERROR, CONTEXT_GONE, DISTURBED, F_PDL, LAUNCH_FAILED, NO_END, NONE, PDL, Run, program

checks = timing.Checks()
SEEN = timing.seen_library(apart=False)
LEAD = 1000         # ns after the start of a launch at which a dependent one begins (SIM_PDL_LEAD)


def letters(run):
    """site id -> the program's word for it."""
    channel, results = run.channel, run.channel.by_id()
    kernels = {function: text for function, _, text in channel.names.values()}
    found = {}
    for s in run.sites():
        if s.id not in results:
            checks(False, "no result:", s)
            continue
        letter = kernels.get(s.function, "spin_?")[5] if s.function != "0" else "g"
        if s.entry in (11, 12):
            letter = "g"
        found[s.id] = letter.upper() if s.flags & F_PDL else letter
    return found


def truths(run, names):
    """site id -> the device's line; a stream's launches by one thread are in order."""
    found, lines = {}, {}
    for t in run.truth():
        lines.setdefault((t.tid, t.kernel), []).append(t)
    sites = {s.id: s for s in run.sites()}
    results = run.channel.by_id()
    for i in sorted(names):
        if results[i].cause == LAUNCH_FAILED:
            continue
        kernel = "graph2" if names[i] == "g" else "spin_" + names[i].lower()
        pool = lines.get((sites[i].tid, kernel), [])
        found[i] = pool.pop(0) if pool else None
    return found


def parted(run, names, truth):
    """Dependent launches, as pairs of their word and whether they began before the one before had ended."""
    before, pairs = {}, []
    for s in sorted(run.sites(), key=lambda s: s.id):
        t = truth.get(s.id)
        if not t or t.start is None:
            continue
        last = before.get(t.stream)
        if names[s.id].isupper() and last:
            pairs.append((names[s.id], t.start < last.end))
        before[t.stream] = t
    return pairs


def look(words, said=(0, ""), options=(), library=SEEN, **variables):
    """What belonged together: words of a result's launches, with its cause if it has one."""
    variables.setdefault("STANDIN_ALWAYS_BUSY", 1)
    where = words
    run = Run(program("gpu_runs", *words.split()), *options, library=library, **variables)
    checks.equal((run.status, run.stderr), said, where, "status")
    timing.account(checks, run.channel, where)
    names = letters(run)
    truth = truths(run, names)
    groups = []
    for r in sorted(run.channel.results, key=lambda r: r.id):
        if r.flags & timing.F_COPY:
            continue
        members = run.channel.members(r)
        groups.append("".join(names.get(i, "?") for i in members) + (f":{r.cause}" if r.cause else ""))
        if r.cause == NONE:
            of = [truth.get(i) for i in members]
            if not checks(all(of), where, groups[-1], "not run:", of):
                continue
            ns = max(t.end for t in of) - min(t.start for t in of)
            checks(timing.exact(r.duration, ns), where, groups[-1], "took", ns, "and has", r.duration)
    return run, " ".join(groups), parted(run, names, truth)


def expect(words, groups, kept=None, **variables):
    """kept: of the dependent launches in order, which overlap: + or -. A busy machine may launch too late."""
    for _ in range(20):
        run, got, pairs = look(words, **variables)
        marks = "".join("+" if over else "-" for _, over in pairs)
        if got == groups and kept in (None, marks):
            break
    checks.equal(got, groups, words)
    if kept is not None:
        checks.equal(marks, kept, words, "overlaps")
    return run


def chains():
    """What a run is. A first "a A" teaches that spin_a has dependent launches behind it: until then its end
    stands in front of the first of them."""
    expect("a A A sync", "a AA", "-+")
    expect("a A sync a A A sync a A B sync", "a A aAA aAB", "-++++")
    expect("a A sync a b a A B a A B c a", "a A a b aAB aAB c a", "-++++")
    # no other kernel is left open
    expect("a A sync b c b sync b A sync b A", "a A b c b b A bA", "--+")
    # a stream of nothing else; where there is no event that could part them
    expect("A A B sync B A sync", "AAB BA", "++-+")
    run = expect("A*300 sync", "A" * 256 + " " + "A" * 44, "+" * 255 + "-" + "+" * 43)
    checks.equal(run.channel.counts["brackets"], 2, "a run is one bracket")
    # two streams beside each other, and the default one
    expect("a A 2 a A ctx 1 a A 2 a A A 1 A ctx", "a A a A aAA aAA", "--++++")
    expect("0 a A sync a A A sync", "a A aAA", "-++")


def cut_short():
    """All that comes between two launches ends a run, in front of it, so that its time is without that."""
    for what in ("sync", "ctx", "ctx2", "event", "copy", "set", "host", "wait"):
        run = expect(f"a A sync a A A {what} a A sync", "a A aAA aA", "-+++")
        # ended only when it was to be: its end stands behind the last launch and in front of what came
        checks.equal(run.channel.counts["brackets"], 4 + (what in ("copy", "set")), what, "brackets")
    expect("a A sync a A A value a A sync", "a A aAA aA", "-+++", STANDIN_ALWAYS_BUSY=0)
    expect("capture a A sync a A A graph A A sync", "b:1 B:1 a A aAA g AA", "-++-+")
    # a capture in between takes nothing, and what is under way outside of it goes on (if it takes below 1 ms)
    _, got, _ = look("a A sync a A capture A a A sync")
    checks(got in (f"a A aAA b:{CAPTURED} B:{CAPTURED} aA", f"a A aA b:{CAPTURED} B:{CAPTURED} A aA"),
           "a capture", got)
    # after which a stream is at rest, as far as anybody can know
    expect("a A sync a A sleep A sync", "a A aA A", "-+-")
    # an event of the program's own parts two launches, and is in the run's time
    expect("a A sync a A record A sync", "a A aAA", "-+-")


def given_up():
    """Runs that have no time, and why; each launch of them is answered for."""
    expect("a A sync a A a: A sync", f"a A aA:{DISTURBED} A:{PDL} a:{DISTURBED}")
    run, got, _ = look("a A sync a A A: sync")
    checks(f" aA:{DISTURBED} " in got, "another thread", got)
    expect("a A sync a A bad A sync", f"a A aAA A:{LAUNCH_FAILED}", "-++")
    expect("a A sync a bad A sync", f"a A aA A:{LAUNCH_FAILED}", "-+")
    run, got, _ = look("a A sync a A destroy a A sync")
    checks(got in ("a A aA a A", f"a A aA:{NO_END} a A"), "destroyed", got)
    expect("a A sync a A reset a A a A sync", f"a A aA:{CONTEXT_GONE} a A aA", "-+-+")
    _, got, _ = look("a A sync a A fork A sync")
    checks(got in ("a A aAA", "a A aA A"), "fork", got)
    # left open for a while; then there is no place without parting two
    expect("a A sync a A idle A sync", f"a A aA:{PDL} A:{PDL}")
    # the program ends
    expect("a A sync a A A quit", f"a A aAA:{NO_END}")
    # our end is refused
    run, got, _ = look("a A sync a A A sync", STANDIN_FAULT="cuEventRecord:6:999")
    checks.equal(got, f"a A aAA:{timing.RECORD_FAILED}", "no end")
    # the device fails in the middle
    run, got, _ = look("a A sync a A A A A A sync", (9, "cuStreamSynchronize(stream): 700\n"),
                       STANDIN_QUERY_ERROR="700:6")
    checks.equal(got, f"a A aAAAAA:{CONTEXT_ERROR}", "error")


def interrupted():
    """Signals while a launch joins a run, and while one is ended by a wait: what the handler does harms nothing."""
    # (the fifth launch, at its probe: the wait has one, too)
    expect("a A sync a A A A", f"a A aA:{NO_END} A:{NO_END} A:{PDL}", RUNS_SIGNAL="jump", TIMING_RAISE="6")
    run = expect("a A sync a A A A sync", f"a A aAA:{DISTURBED} A:{PDL}", RUNS_SIGNAL="launch", TIMING_RAISE="6")
    checks.equal(run.channel.count("nested"), 1, "interrupted: nested")
    expect("a A sync a A A A sync", "a A aAAA", RUNS_SIGNAL="fork", TIMING_RAISE="6")
    # the sixth record is the run's end
    for what, groups in (("launch", f"a A aAA:{NO_END} d b c"), ("fork", "a A aAA b c")):
        run, got, _ = look("a A sync a A A poke sync b sync", RUNS_SIGNAL=what, STANDIN_RECORD_BLOCKS=6,
                           said=(0, "stand-in: record released by another thread\n"))
        checks.equal(got, groups, "interrupted: an end,", what)
    # what is computed of a run is nobody's business
    expect("a A sync trap a A A A sync untrap", "a A aAAA")


def not_all():
    """Where not every launch is looked at there are no runs, and what is open when that begins is lost. (The
    first eight of a kind are looked at whatever the share; the collector looks every 20 ms.)"""
    def changed(after):
        return {"options": ("-t", 20, "-e", f"1000,{after}")}

    some = f"A:{PDL}"
    expect("b sync sleep*60 a A A a B sync", f"b a {some} {some} a:{PDL} B:{PDL}", **changed(1))
    # by the next launch, and by a wait
    expect("a A sync a A A sleep*60 A a sync", f"a A aAA:{PDL} {some} a:{PDL}", **changed(2))
    expect("a A sync a A A sleep*60 sync b sync", f"a A aAA:{PDL} b", **changed(2))
    expect("a A sync 2 a A A sleep*60 1 c sync", f"a A a AA:{PDL} c", **changed(2))
    # all again
    expect("b sync sleep*60 a A A sync", "b a AA", options=("-t", 20, "-e", "1,1"))


def apart():
    """Kernels of chains have brackets of their own, too, each its first two launches and then one in 256."""
    library = timing.seen_library()
    run = expect("A A A A A sync B B B A sync", "A A AAA B B BA", "--++---+", library=library)
    checks.equal({r.weight for r in run.channel.results}, {1}, "apart: the first")
    expect("a A sync a A sync a A A sync", "a A a A aAA", "--++", library=library)

    # 4,000 launches, 1 in 256: 15.6 on average
    run, _, _ = look("( A*100 sync )*40", library=library, RUNS_NS=2000)
    by_chance = [r for r in run.channel.results if r.weight > 1]
    checks.equal({(r.weight, r.launches, r.cause) for r in by_chance}, {(256, 1, NONE)}, "apart: by chance")
    checks(2 <= len(by_chance) <= 40, "apart: by chance", len(by_chance))
    timed = [r.launches for r in run.channel.results if not r.cause]
    checks(sum(timed) >= 3600, "apart: timed, in all", sum(timed), run.channel.by_cause())

    # Where one launch in 16 is looked at, one in 64 of these has a bracket: 29 of 30,000.
    run, _, _ = look("( A*100 sync )*300", library=library, options=("-e", "16,1"), RUNS_NS=2000)
    weights = {s.id: s.weight for s in run.sites()}
    some = [r for r in run.channel.results if weights[r.id] == 16]
    timed = [r for r in some if not r.cause]
    checks(1700 <= len(some) <= 1900, "apart: looked at", len(some))
    checks(6 <= len(timed) <= 70, "apart: timed of these", len(timed))
    checks.equal({(r.weight, r.launches) for r in timed}, {(64, 1)}, "apart: their weights")
    checks.equal({r.cause for r in some}, {NONE, PDL}, "apart: causes")


def idle_between():
    """A time that may hold the host's own pauses is none; such streams are timed launch by launch."""
    # (kernels of 5 ms, so that the machine has to pause for longer than that to be told apart)
    expect("a A sync a A A A sync a A B sync", "a A aAAA aAB", "-+++++", STANDIN_ALWAYS_BUSY=0)
    run, got, _ = look("a A sync ( a sleep A sleep A sleep )*20 sync", STANDIN_ALWAYS_BUSY=0, RUNS_NS=20000)
    causes = run.channel.by_cause()
    checks.equal(set(causes), {NONE, PDL}, "idle between", got)
    checks(causes[PDL] < 20, "idle between: most are timed", got)
    for r in run.channel.results:
        checks(r.cause or r.launches == 1, "idle between: a run", r)


def at_once():
    """Threads in the same streams: a run that has a time holds launches of one of them alone."""
    for _ in range(3):
        run = Run(program("gpu_runs", "race"), library=SEEN, STANDIN_CRASH=1)
        checks.equal((run.status, run.stderr), (0, ""), "at once: status")
        channel = run.channel
        timing.account(checks, channel, "at once")
        sites = {s.id: s for s in run.sites()}
        truth = truths(run, letters(run))
        in_stream = {}
        for t in sorted((t for t in truth.values() if t), key=lambda t: t.start):  # copies have none
            in_stream.setdefault(t.stream, []).append(t)
        place = {id(t): (stream, n) for stream, of in in_stream.items() for n, t in enumerate(of)}
        # A handle that comes again stands for two streams whose work may overlap: not those of all threads.
        kept = sorted(in_stream, key=lambda stream: -len(in_stream[stream]))[:3]
        timed = [r for r in channel.results if r.cause == NONE and not r.flags & timing.F_COPY]
        for r in timed:
            members = channel.members(r)
            of = [truth[i] for i in members]
            if not checks(len({sites[i].tid for i in members}) == 1, "at once: a run of several threads", r):
                break
            places = [place[id(t)] for t in of]
            first = places[0]
            ns = max(t.end for t in of) - min(t.start for t in of)
            # (the legacy stream and the others wait for each other)
            checks(ns <= r.duration + 1, "at once: shorter than it was:", r, ns)
            checks(r.launches == 1 or timing.exact(r.duration, ns), "at once: duration", r, ns)
            if not checks(first[0] not in kept or places == [(first[0], first[1] + n) for n in range(len(places))],
                          "at once: others in a run", r, places):
                break
            checks(all(sites[i].flags & F_PDL for i in members[1:]), "at once: not dependent", r)
        print("at once:", dict(channel.by_cause()), "runs that have a time",
              sum(r.launches > 1 for r in timed), flush=True)


chains()
cut_short()
at_once()
given_up()
interrupted()
not_all()
idle_between()
apart()
sys.exit(checks.status())
