#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
"""Time in which threads wait for the device, by call path.

Each figure lies between two others: what the device's own stand-in measured inside of the call
(STANDIN_WAITS) and what the program measured around it. From C and from Python, by every call that waits,
started and attached, on every form of driver; threads; what is no wait; calls that fail; waits that have
begun before, or not ended when the capture, or the program, does; sampled.
"""
import collections
import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/system"))
import launches as L  # noqa: E402
import pythons  # noqa: E402
import timing  # noqa: E402

check = L.Checks()
PROGRAM = f"{L.PROGRAMS}/gpu_waits"
SCRIPT = os.path.join(os.environ["TOP"], "tests/programs/python/waits.py")
WAITS = os.path.join(L.TMP, "waits")
SLACK = 1500000000	# between a program's word and the deed, ns: on a machine that does much else

Wait = collections.namedtuple("Wait", "path tid begin end")
Inner = collections.namedtuple("Inner", "pid tid begin end")


def own_account(out):
    return [Wait(path, int(tid), int(begin), int(end)) for path, tid, begin, end in
            re.findall(r"^wait (\S+) (\d+) (\d+) (\d+)$", out, re.M)]


def of_device():
    if not os.path.exists(WAITS):
        return []
    with open(WAITS, encoding="utf-8") as f:
        lines = [Inner(*map(int, line.split())) for line in f]
    os.remove(WAITS)
    return lines


def bounds(waits, inner, key):
    """[least, most] for each: what was measured inside of its waits, and around them."""
    by_tid, sums = collections.defaultdict(collections.deque), collections.defaultdict(lambda: [0, 0])
    for x in sorted(inner, key=lambda x: x.begin):
        by_tid[x.tid].append(x)
    for w in sorted(waits, key=lambda w: w.begin):
        own = by_tid[w.tid]
        while own and own[0].end <= w.end:
            x = own.popleft()
            sums[key(w)][0] += x.end - x.begin if w.begin <= x.begin else 0
        sums[key(w)][1] += w.end - w.begin
    return sums


def compare(what, r, waits, key=lambda w: w.path, prefix=lambda k: ""):
    """Each path has what lies in its bounds, and there is nothing else."""
    limits = bounds(waits, of_device(), key)
    got, strange = collections.Counter(), []
    patterns = {k: re.compile(prefix(k) + L.pattern((k if isinstance(k, str) else k[0])).pattern) for k in limits}
    for s in r.stacks:
        text = ";".join(s.frames)
        found = [k for k, p in patterns.items() if p.fullmatch(text)]
        if len(found) == 1 and s.kernel is None:
            got[found[0]] += s.weight
        else:
            strange.append(s)
    check(limits and not strange, f"{what}: of no wait: {strange[:4]}")
    for k, (least, most) in limits.items():
        check(least <= got[k] <= most and got[k], f"{what}: {k}: {got[k]} not in [{least}, {most}]")
    check(not r.complaints() and r.own in (None, 0), f"{what}: {r.own} {r.complaints()}")
    return sum(got.values())


def entries(kind, mode):
    """Every call, and what is none."""
    what = f"{kind} {mode}"
    r = L.run([PROGRAM, "10"], kind=kind, mode=mode, metric="wait", STANDIN_WAITS=WAITS)
    waits = own_account(r.out)
    check(r.status == 0 and len({w.path for w in waits}) == 11, f"{what}: {r.status} {r.out}")
    total = compare(what, r, waits)
    called = {s.frames[-1] for s in r.stacks if s.frames[-1].startswith("cu")}
    check(kind == "simcuda-old" or called == {
        "cuStreamSynchronize", "cuStreamSynchronize_ptsz", "cuCtxSynchronize", "cuCtxSynchronize_v2",
        "cuEventSynchronize", "cuMemcpyDtoH_v2", "cuMemcpyHtoD_v2", "cuMemcpy", "cuMemcpyDtoHAsync_v2",
        "cuMemcpyAsync"}, f"{what}: {called}")
    # Copies with a stream that had nothing to wait for are no waits.
    sure = sum("cpu" not in w.path for w in waits)
    check(sure <= r.number(r"([\d,]+) waits for the GPU") <= len(waits), f"{what}: not {len(waits)}: {r.said}")
    check(f"{total}" and not r.lost() and not any("wait" in s for s in r.said if s.startswith("lost")),
          f"{what}: {r.said}")
    r = L.run([PROGRAM, "2"], kind=kind, mode=mode, metric="gpu")
    check({s.kernel for s in r.stacks} == {"spin_wait", "memcpy DtoH", "memcpy HtoD", "memcpy DtoD", "memset"},
          f"{what}: waits are no GPU time: {r.stacks}")


def by_call():
    """The stack is taken before the call; one result each, within the bounds of that very call."""
    run = timing.Run([PROGRAM, "5"], library=timing.seen_library(), trace=True, STANDIN_WAITS=WAITS)
    channel, inner = run.channel, of_device()
    timing.account(timing.Checks(), channel, "by call")
    results = {r.id: r for r in channel.waits}
    sites = [s for s in run.all_sites() if s.flags & timing.F_WAIT]
    check(len(sites) == len(results) == channel.count("waits") == 35, f"{len(sites)} {len(results)}")
    calls = [w for _, tid, w in run.trace() if tid == sites[0].tid and (w[0].startswith("cu") or w[0] == "site")]
    before = collections.Counter(b[0] for a, b in zip(calls, calls[1:])
                                 if a[0] == "site" and int(a[9]) & timing.F_WAIT)
    check(sum(n for name, n in before.items() if "Synchronize" in name) == 35 == before.total(),
          f"after a site: {before}")
    outer = [w for w in own_account(run.stdout) if "copy" not in w.path and "cpu" not in w.path]
    for s, w in zip(sites, outer):
        least = sum(x.end - x.begin for x in inner if w.begin <= x.begin and x.end <= w.end)
        r = results[s.id]
        if not check(least <= r.duration <= w.end - w.begin and (r.cause, r.weight) == (0, 1) and
                     s.entry == r.entry and s.function == "0", f"{s} {r} {least} {w}"):
            break


def threads():
    """Each thread its own, though they wait at the same time."""
    r = L.run([PROGRAM, "threads", "4", "20", "200000"], "--per-thread", metric="wait", STANDIN_WAITS=WAITS)
    waits = own_account(r.out)
    check(len({w.tid for w in waits}) == 4, f"threads: {r.out}")
    compare("threads", r, waits, key=lambda w: (w.path, w.tid), prefix=lambda k: rf"tid {k[1]} [^;]*;")


def whole(*args, **how):
    """A run in which no stack was lost, as may happen where the collector gets no CPU for long."""
    for _ in range(3):
        of_device()
        r = L.run(*args, STANDIN_WAITS=WAITS, **how)
        if not any("stack copies lost" in s or "stacks lost" in s for s in r.said):
            break
    return r


def python():
    for path, version in pythons.need():
        what = pythons.name(path, version)
        r = whole([path, SCRIPT, "10"], metric="wait", kind="simcuda")
        found = re.findall(r"^wait (\S+) (\d+) (\d+) (\d+) (\d+)$", r.out, re.M)
        waits = [Wait((names, int(line)), int(tid), int(a), int(b)) for names, line, tid, a, b in found]
        limits = bounds(waits, of_device(), lambda w: w.path)
        check(r.status == 0 and len(limits) == 3, f"{what}: {r.status} {r.out} {r.err}")
        got, strange = collections.Counter(), []
        for s in r.stacks:
            text = ";".join(s.frames)
            hit = [k for k in limits if re.search(
                ";".join(re.escape(name) + r" \([^;]*waits\.py:\d+\)" for name in k[0].split(";")[:-1]) +
                (";" if ";" in k[0] else "") + re.escape(k[0].split(";")[-1]) + rf" \([^;]*waits\.py:{k[1]}\);",
                text)]
            got.update({hit[0]: s.weight} if len(hit) == 1 else {})
            strange += [] if len(hit) == 1 else [s]
        check(not strange, f"{what}: of no wait: {strange[:3]} {r.said}")
        for k, (least, most) in limits.items():
            check(least <= got[k] <= most, f"{what}: {k}: {got[k]} not in [{least}, {most}]")


def errors():
    """What fails fails as it does alone, and a capture comes out of it as it would."""
    for kind in ("simcuda", "simcuda-old"):
        code, alone, _ = L.plain([PROGRAM, "errors"], kind=kind)
        for mode in ("library", "attached"):
            r = L.run([PROGRAM, "errors"], metric="wait", mode=mode, kind=kind)
            theirs, ours = ([x for x in out.splitlines() if not x.startswith("wait")] for out in (alone, r.out))
            check((code, theirs) == (r.status, ours), f"errors {kind} {mode}: {r.status} {ours} not {code} {theirs}")
            check(r.own in (None, 0) and not r.complaints(), f"errors {kind} {mode}: {r.said}")


class Held:
    """A program with threads that wait for what it releases at its end of input."""

    def __init__(self, count, **extra):
        self.process = subprocess.Popen([PROGRAM, "held", str(count)], env=L.environment(**extra), text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ready(self):
        check(self.process.stdout.readline().startswith("ready"), "held: not ready")
        return time.monotonic_ns()

    def end(self, what):
        out, _ = self.process.communicate(timeout=30)
        check(self.process.returncode == 0, f"{what}: the program's status is {self.process.returncode}")
        return own_account(out)


def attach(pid, *more, name="held.folded"):
    path = os.path.join(L.TMP, name)
    if os.path.exists(path):
        os.remove(path)
    return path, L.Attached([pid], "--metric", "wait", "--no-inlines", "--launches", "all", "-y", "-o", path, *more)


def begun_before():
    """Of a wait that had begun when gpucollect came nothing is known, and the program notices nothing."""
    held = Held(2)
    held.ready()
    _, g = attach(held.process.pid, "-d", "700ms")
    g.process.wait(60)
    check(g.process.returncode == 2 and "no thread was seen to wait for the GPU" in g.said(),
          f"begun before: {g.process.returncode} {g.said()}")
    check(len(held.end("begun before")) == 2, "begun before: its waits")


def gated(count):
    """Attached to before it waits, now inside: program, file, gpucollect, when it was known to be inside."""
    gate = L.Gate()
    held = Held(count, **gate.variable)
    L.wait_for(gate.pids, "the gate")
    path, g = attach(held.process.pid)
    g.wait_recording()
    gate.let_through()
    inside = held.ready()
    gate.close()
    return held, path, g, inside


def under_way(what, path, g, count, least, most):
    r = L.Run(g.process.returncode, "", g.said(), path)
    check({s.frames[-2:] == ["held", "cuStreamSynchronize"] for s in r.stacks} == {True}, f"{what}: {r.stacks}")
    check(count * least <= r.total() <= count * most, f"{what}: {r.total()} not in {count} x [{least}, {most}]")
    check(r.number(r"^waits under way at the end, shown up to there: (\d+)") == count, f"{what}: {r.said}")
    return r


def not_ended():
    """The capture ends first: they are shown up to there, and go on."""
    held, path, g, inside = gated(3)
    time.sleep(2.5)
    stopped = time.monotonic_ns()
    g.process.send_signal(signal.SIGINT)
    g.process.wait(60)
    ended = time.monotonic_ns()
    check(g.process.returncode == 0, f"not ended: {g.process.returncode} {g.said()}")
    _, again = attach(held.process.pid, "-d", "300ms", name="again.folded")
    again.process.wait(60)
    check(again.process.returncode == 2, f"not ended, the second: {again.process.returncode} {again.said()}")
    waits = held.end("not ended")
    check(len(waits) == 3, f"not ended: {waits}")
    under_way("not ended", path, g, 3, stopped - inside - SLACK, ended - min(w.begin for w in waits))


def killed():
    """The program ends first, by what can't be caught."""
    begun = time.monotonic_ns()
    held, path, g, inside = gated(2)
    time.sleep(2.5)
    killed_at = time.monotonic_ns()
    held.process.kill()
    held.process.wait()
    gone = time.monotonic_ns()
    g.process.wait(60)
    under_way("killed", path, g, 2, killed_at - inside - SLACK, gone + SLACK - begun)


def sampled():
    """Some of very many are looked at, and stand for the others; the long ones are a thousandth of them."""
    r = L.run([PROGRAM, "often", "200000"], "--launches", "20", "--json", metric="wait", STANDIN_WAITS=WAITS)
    s = next(x for x in map(json.loads, (line for line in r.err.splitlines()
                                         if line.startswith('{"gpucollect":'))) if x["gpucollect"] == "summary")
    waits = own_account(r.out)
    (least, most), = bounds(waits, of_device(), lambda w: w.path).values()
    check(len(waits) == 200000 and r.status == 0, f"sampled: {len(waits)} {r.status}")
    check(s["waits"] == 200000 and s["waits_ns"] == r.total() and s["metric"] == "wait" and
          s["unit"] == "nanoseconds", f"sampled: {s}")
    check(s["waits_estimated_ns"] > s["waits_ns"] / 2 and s["waits_error_ns"] > 0, f"sampled: {s}")
    away = 6 * s["waits_error_ns"]
    check(least - away <= s["waits_ns"] <= most + away, f"sampled: {s['waits_ns']} not in [{least}, {most}]: {s}")
    # Of the launches, some hundred of one shape, all or nearly all were looked at: no figure of theirs has waits in it.
    check(s["launches"] == 200 and (s["looked_at_of"] or 200) == 200, f"sampled: {s}")
    r = L.run([PROGRAM, "often", "300000"], "--launches", "auto", "--json", metric="wait", STANDIN_WAITS=WAITS)
    s = json.loads(next(line for line in r.err.splitlines() if line.startswith('{"gpucollect":"summary"')))
    (least, most), = bounds(own_account(r.out), of_device(), lambda w: w.path).values()
    away = 6 * s["waits_error_ns"]
    check(s["waits"] == 300000 and s["waits_estimated_ns"] > 0 and least - away <= s["waits_ns"] <= most + away,
          f"sampled by the budget: not in [{least}, {most}]: {s}")


def on_all_drivers():
    for kind in ("simcuda", "simcuda-relro", "simcuda-old", "simcuda-high"):
        for mode in ("library", "attached"):
            entries(kind, mode)


PARTS = on_all_drivers, by_call, threads, python, errors, begun_before, not_ended, killed, sampled
for part in PARTS:
    if not sys.argv[1:] or part.__name__ in sys.argv[1:]:
        print(part.__name__, flush=True)
        part()
sys.exit(check.status())
