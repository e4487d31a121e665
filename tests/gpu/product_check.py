#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Compares gpucollect's folded output with what programs and CUPTI know.

product_check.py chains TRUTH LAUNCHES GPU [%]  truth lines against two folded files
product_check.py cupti RECORDS LAUNCHES GPU  CUPTI's kernel records against two folded files
product_check.py paths TRUTH LAUNCHES        the same without kernels' names and times
product_check.py parts TRUTH GPU %           the same against what gpu_graphs says; under which captures
product_check.py inside RECORDS GPU %        what graphs run: its parts against CUPTI's records, those over 1 %
product_check.py total RECORDS LAUNCHES N    the same of CUPTI's records, N launches were captured
product_check.py where FOLDED LAUNCHES       CPU time of a launch, by what it was spent on
product_check.py speed LINES                 "HOW NAME US CPU_US": medians, as ratios to plain
product_check.py constants FROM TO BUSY IDLE BUSY IDLE  a copy with other constants of the device
product_check.py agree JSON SAVED            constants of two calibrations
product_check.py short HOW RECORDS OUT GPU   mean times of what product_short made against CUPTI's records
product_check.py pdl PLAIN OUT GPU SAID [RECORDS]  chains of dependent launches: overlap kept, times of the chains
product_check.py copies RECORDS OUT GPU BYTES SAID  copies and sets: the account, CUPTI's records, what was shown
product_check.py stacks FOLDED               ends and roots of all stacks, what they go through
Exit status 1 if something that must hold does not.
"""
import collections
import json
import os
import re
import statistics
import struct
import subprocess
import sys

bad = 0


def fail(text):
    global bad
    bad += 1
    print("  WRONG: " + text)


GRAPH = "[GPU] [graph]"


def whole(frames):
    """A graph with all that it runs is one piece of work."""
    return frames[:frames.index(GRAPH) + 1] if GRAPH in frames else frames


def folded(path):
    """All but copies and sets, of which the programs here keep no account."""
    for line in open(path, encoding="utf-8", errors="replace"):
        stack, _, weight = line.rstrip("\n").rpartition(" ")
        frames = whole(stack.split(";"))
        if not re.match(r"\[GPU\] (memcpy|memset)\b", frames[-1]):
            yield frames, int(weight)


def bare(frame):
    """A function's name without template arguments and annotation."""
    return re.sub(r"<.*", "", re.sub(r"_\[.\]$", "", frame))


def kernel_of(frames):
    last = frames[-1]
    return last[6:] if last.startswith("[GPU] ") else None


def chains(truth, launches, gpu, percent="3"):
    want, known = {}, set()
    for line in open(truth):
        w = line.split()
        if w and w[0] == "chain":
            want[(w[1], w[2])] = (int(w[3]), int(w[4]))
            known.update(w[1].split(";"))
        elif w and w[0] == "graph":
            want[(w[1], "[graph]")] = (int(w[2]), int(w[4]))
            known.update(w[1].split(";"))
    counts, times = collections.Counter(), collections.Counter()
    for into, path in ((counts, launches), (times, gpu)):
        for frames, weight in folded(path):
            kernel = kernel_of(frames)
            if kernel is None:
                continue
            names = ";".join(f for f in map(bare, frames[1:-1]) if f in known)
            into[(names, bare(kernel))] += weight
    print(f"  {'launches':>8} {'counted':>8} {'own us':>9} {'bracket us':>10} {'more us':>8} "
          f"{'%':>7}  path")
    for key, (n, ns) in want.items():
        got, t = counts.pop(key, 0), times.pop(key, 0)
        if key[1] == "k_beside":  # as many as there was time for: each run has its own number
            print(f"  {n:8} {got:8} (another run's)  {key[0]} {key[1]}")
            continue
        more = (t - ns) / n / 1e3
        print(f"  {n:8} {got:8} {ns / n / 1e3:9.2f} {t / n / 1e3:10.2f} {more:8.2f} "
              f"{(t - ns) / ns * 100:7.2f}  {key[0]} {key[1]}")
        if got != n:
            fail(f"{got} launches instead of {n}")
        if ns / n >= 200e3 and abs(t - ns) > float(percent) / 100 * ns and key[1] != "[graph]":
            fail(f"GPU time differs by {(t - ns) / ns * 100:.2f} %")
    for rest in (counts, times):
        for key, weight in rest.items():
            if weight:
                fail(f"not in the truth: {weight} {key}")


def paths(truth, launches):
    want, known = collections.Counter(), set()
    for line in open(truth):
        w = line.split()
        if w and w[0] in ("chain", "graph"):
            want[w[1]] += int(w[3] if w[0] == "chain" else w[2])
            known.update(w[1].split(";"))
    for frames, weight in folded(launches):
        if kernel_of(frames) is not None:
            want[";".join(f for f in map(bare, frames[1:-1]) if f in known)] -= weight
    for path, n in want.items():
        if n and "beside" not in path:
            fail(f"{n} launches too few: {path}")


def demangled(names):
    text = "\n".join(names) + "\n"
    try:
        out = subprocess.run(["c++filt"], input=text, capture_output=True, text=True, check=True)
        return out.stdout.split("\n")[:len(names)]
    except (OSError, subprocess.CalledProcessError):
        return names


def short(name):
    """The last identifier before arguments: one word that both sides agree on."""
    name = re.sub(r"#[0-9a-f]{8}$", "", name)
    name = name.replace("(anonymous namespace)", "anon").replace("{lambda", "lambda")
    depth, out = 0, ""
    for c in name:
        if c in "<":
            depth += 1
        elif c == ">":
            depth -= 1
        elif c == "(" and not depth:
            break
        elif not depth:
            out += c
    return out.split(" ")[-1].split("::")[-1] or name


def cupti(records, launches, gpu):
    want, graph = collections.Counter(), collections.Counter()
    want_ns = collections.Counter()
    rows = [line.rstrip("\n").split("\t") for line in open(records)]
    for row, name in zip(rows, demangled([r[4] for r in rows])):
        key = short(name)
        want[key] += int(row[0]) - int(row[1])
        graph[key] += int(row[1])
        want_ns[key] += int(row[2]) - int(row[3])
    counts, times = collections.Counter(), collections.Counter()
    for into, path in ((counts, launches), (times, gpu)):
        for frames, weight in folded(path):
            kernel = kernel_of(frames)
            if kernel is not None:
                into[short(kernel) if kernel != "[graph]" else "[graph]"] += weight
    print(f"  {'CUPTI':>8} {'counted':>8} {'CUPTI us':>9} {'timed us':>9} {'more us':>8}  kernel"
          "  (us: a launch, the untimed ones counted in)")
    close = kernels = 0
    for key in sorted(set(want) | set(counts) - {"[graph]"}):
        n = want[key]
        if not n and not counts[key]:
            continue
        mean = want_ns[key] / n / 1e3 if n else 0
        mine = times[key] / counts[key] / 1e3 if counts[key] else 0
        close += abs(mine - mean) <= max(0.03 * mean, 0.5)
        kernels += 1
        print(f"  {n:8} {counts[key]:8} {mean:9.2f} {mine:9.2f} {mine - mean:8.2f}  {key}")
        if counts[key] != n:
            fail(f"{counts[key]} launches of {key}, CUPTI has {n} records outside of graphs")
    print(f"  all: CUPTI {sum(want.values())} + {sum(graph.values())} in graphs; counted "
          f"{sum(counts.values()) - counts['[graph]']} + {counts['[graph]']} graph launches")
    total, mine = sum(want_ns.values()), sum(times.values()) - times["[graph]"]
    print(f"  GPU time: CUPTI {total / 1e6:.3f} ms, event-timed {mine / 1e6:.3f} ms "
          f"({(mine / total - 1) * 100:+.2f} %); {close} of {kernels} kernels within 3 % "
          "or 0.5 us a launch")


def sampled(records, gpu, percent):
    """Times where only some launches were looked at: the sum, and kernels of over 1 % of it."""
    want = collections.Counter()
    rows = [line.rstrip("\n").split("\t") for line in open(records)]
    for row, name in zip(rows, demangled([r[4] for r in rows])):
        want[short(name)] += int(row[2]) - int(row[3])
    got = collections.Counter()
    for frames, weight in folded(gpu):
        kernel = kernel_of(frames)
        if kernel not in (None, "[graph]"):
            got[short(kernel)] += weight
    all_of = sum(want.values())
    for key, ns in want.most_common():
        if ns < all_of / 100:
            break
        print(f"  {ns / 1e6:9.3f} ms by CUPTI, {got[key] / 1e6:9.3f} ms ({(got[key] / ns - 1) * 100:+.2f} %)  {key}")
    off = (sum(got.values()) / all_of - 1) * 100
    print(f"  GPU time: CUPTI {all_of / 1e6:.3f} ms, sampled {sum(got.values()) / 1e6:.3f} ms ({off:+.2f} %)")
    if abs(off) > float(percent):
        fail(f"over {percent} % off")


def inside(records, gpu, percent):
    """The kernels of graphs: the parts of their time against CUPTI's records of the same run family."""
    want, got, whole_ns, split_ns = collections.Counter(), collections.Counter(), 0, 0
    rows = [line.rstrip("\n").split("\t") for line in open(records)]
    for row, name in zip(rows, demangled([r[4] for r in rows])):
        want[short(name)] += int(row[3])
    for line in open(gpu, encoding="utf-8", errors="replace"):
        stack, _, weight = line.rstrip("\n").rpartition(" ")
        frames = stack.split(";")
        if GRAPH in frames:
            whole_ns += int(weight)
            if frames[-1] != GRAPH:
                split_ns += int(weight)
                got[short(frames[-1][6:])] += int(weight)
    all_of, off = sum(want.values()), 0
    for key, ns in want.most_common():
        off += abs(got[key] - ns)
        if ns >= all_of / 100:
            print(f"  {ns / 1e6:9.3f} ms by CUPTI, {got[key] / 1e6:9.3f} ms ({(got[key] / ns - 1) * 100:+.2f} %)  {key}")
    for key in sorted(set(got) - set(want)):
        print(f"  not in CUPTI's records of graphs: {got[key] / 1e6:.3f} ms  {key}")
    print(f"  graphs: CUPTI {all_of / 1e6:.3f} ms, event-timed {whole_ns / 1e6:.3f} ms, of it split {split_ns / 1e6:.3f} ms; "
          f"the parts are off by {off / all_of * 100:.2f} % of the sum")
    if split_ns != whole_ns:
        fail(f"{(whole_ns - split_ns) / 1e6:.3f} ms are not split")
    if off > all_of * float(percent) / 100:
        fail(f"over {percent} % off")


def parts(truth, gpu, percent):
    """What gpu_graphs says that its graphs run, in sum over what was launched from one place."""
    want, got = collections.Counter(), collections.Counter()
    for line in open(truth):
        w = line.split()
        if w and w[0] == "inside":
            want[w[1], w[2], w[4].split(";")[-1]] += int(w[3])
    known = {f for path, _, origin in want for f in path.split(";") + [origin]}
    for line in open(gpu, encoding="utf-8", errors="replace"):
        stack, _, weight = line.rstrip("\n").rpartition(" ")
        frames = list(map(bare, stack.split(";")))
        if GRAPH not in frames:
            continue
        at = frames.index(GRAPH)
        path = ";".join(f for f in frames[1:at] if f in known)
        origin = [f for f in frames[at + 1:-1] if f in known]
        what = frames[-1][6:] if len(frames) > at + 1 else "-"
        got[path, what, origin[-1] if origin else "-"] += int(weight)
    all_want, all_got = sum(want.values()), sum(got.values())
    for key in sorted(set(want) | set(got)):
        off = (got[key] / all_got) / (want[key] / all_want) * 100 - 100 if want[key] and all_got else float("inf")
        print(f"  {want[key] / 1e3:12.2f} us {got[key] / 1e3:12.2f} us, its share {off:+8.2f} %  {' '.join(key)}")
        # Kernels have their own start and end beside what they are told to take.
        if not want[key] or not got[key] or abs(off) > float(percent):
            fail(f"missing, or over {percent} % off")


def total(records, launches, captured):
    rows = [line.split("\t") for line in open(records)]
    want = sum(int(r[0]) - int(r[1]) for r in rows)
    got, graphs = 0, 0
    for frames, weight in folded(launches):
        kernel = kernel_of(frames)
        if kernel == "[graph]":
            graphs += weight
        elif kernel is not None:
            got += weight
    print(f"  CUPTI {want} records outside of graphs; counted {got} and {graphs} graph launches, "
          f"{captured} were captured")
    if got != want + int(captured):
        fail("not the same number")


# Of a CPU sample's stack the first of these that is found, from the innermost frame on.
WHERE = (("probe, BPF", r"gpucollect_site|bpf_|uprobe"), ("event record", r"^cuEventRecord"),
         ("event elapsed", r"^cuEventElapsed"), ("is capturing", r"^cuStreamIsCapturing"),
         ("library", r"^(launch|stream|context|harvest|thread|name|segment|ring|clock)__|"
                     r"^(fire|publish|record_end|take_bracket|find_stream|take_oldest|report)"),
         ("waiting", r"^c(uda|u)StreamSynchronize"), ("launch itself", r"^cuLaunchKernel"),
         ("runtime", r"^cudaLaunchKernel"))


def where(path, launches):
    spent, leaves = collections.Counter(), collections.defaultdict(collections.Counter)
    for frames, weight in folded(path):
        if "main" not in frames:
            continue
        kind = next((kind for f in reversed(frames) for kind, what in WHERE
                     if re.search(what, f)), "other")
        spent[kind] += weight
        leaves[kind][frames[-1]] += weight
    for kind, ns in spent.most_common():
        print(f"  {ns / int(launches):8.0f} ns a launch: {kind}: " +
              ", ".join(f"{k} {v / int(launches):.0f}" for k, v in leaves[kind].most_common(9)))


def constants(old, new, *values):
    busy, idle, new_busy, new_idle = map(int, values)
    program = open(old, "rb").read()
    pair = struct.pack("<II", busy, idle)
    if program.count(pair) != 1:
        fail(f"{program.count(pair)} places hold the constants")
        return
    open(new, "wb").write(program.replace(pair, struct.pack("<II", new_busy, new_idle)))
    os.chmod(new, 0o755)
    print(f"  busy {busy} -> {new_busy}, idle {idle} -> {new_idle}")


def agree(first, saved):
    """What one calibration printed, and what a later one has saved."""
    words = {"kernel": "kernel", "HtoD": "memcpy HtoD", "DtoH": "memcpy DtoH", "DtoD": "memcpy DtoD",
             "set": "memset"}
    later = {}
    for _, work, busy, idle, name in re.findall(r"^(\d+) (\w+) (\d+) (\d+) (.+)$", open(saved).read(), re.M):
        later[(name, words[work], "busy")] = int(busy)
        later[(name, words[work], "idle")] = int(idle)
    for x in map(json.loads, open(first)):
        ns = x["constant_ns"], later.get((x["name"], x["work"], x["stream"]))
        print(f"  {x['work']:12} {x['stream']}  {ns[0]} {ns[1]} ns  {x['why_not'] or ''}")
        if x["work"] == "kernel" and None in ns:
            fail("no constant of kernels")
        elif None not in ns and abs(ns[0] - ns[1]) > (300 if x["stream"] == "busy" else 500):
            fail("two calibrations differ")


def short_ones(how, records, out, gpu):
    """Kernels have to be within 0.5 us of CUPTI's mean, 1.5 in an idle stream; of copies it is told."""
    theirs = {r[4]: int(r[2]) / int(r[0]) for r in (x.rstrip("\n").split("\t") for x in open(records))}
    times = collections.Counter()
    for line in open(gpu, encoding="utf-8"):
        stack, _, weight = line.rstrip("\n").rpartition(" ")
        times[stack.split(";")[-1][len("[GPU] "):]] += int(weight)
    for n, what in re.findall(r"^made (\d+) (.*)$", open(out).read(), re.M):
        if what not in theirs or not times[what]:
            fail(f"{what}: CUPTI {theirs.get(what)}, gpucollect {times[what]}")
            continue
        more = times[what] / int(n) - theirs[what]
        print(f"  {how} {what:12} CUPTI {theirs[what] / 1e3:8.3f} us, {more / 1e3:+7.3f}  ({n})")
        if what.startswith("k_") and what != "k_plug" and abs(more) > (500 if how == "busy" else 1500):
            fail(f"{what}: {more / 1e3:+.3f} us from CUPTI's record")


def copies(records, out, gpu, shown, said):
    """
    Bytes of each path are the program's own, their number, too; the time of each kind is CUPTI's. That has no kind
    of its own for what cuMemcpyPeer moves within a device, and as many records of a call as it likes: told only.
    """
    want, bytes_of = collections.Counter(), {}
    for count, size, what, path in re.findall(r"^copy (\d+) (\d+) (mem\w+(?: \w+)?) (\S+)$", open(out).read(), re.M):
        want[what, "count"] += int(count)
        want[what, "bytes"] += int(size)
        bytes_of[path.split(";")[-1], what] = int(size)
    got = {}
    for metric, path in ("ns", gpu), ("bytes", shown):
        for line in open(path, encoding="utf-8"):
            stack, _, weight = line.rstrip("\n").rpartition(" ")
            frames = stack.split(";")
            what = frames[-1][len("[GPU] "):]
            name = next((bare(f) for f in frames if (bare(f), what) in bytes_of), None)
            got[what, metric] = got.get((what, metric), 0) + int(weight)
            if metric == "bytes":
                got[name, what] = got.get((name, what), 0) + int(weight)
    for key, size in bytes_of.items():
        if got.get(key) != size:
            fail(f"{key}: {got.get(key)} bytes, not {size}")
    if None in {key[0] for key in got}:
        fail("copies of no known path")
    summary = next(x for x in map(json.loads, re.findall(r'^{"gpucollect":.*', open(said).read(), re.M))
                   if x["gpucollect"] == "summary")
    made = sum(n for (_, metric), n in want.items() if metric == "count")
    if (summary["copies"], summary["copies_timed"]) != (made, made):
        fail(f"{summary['copies']} copies, {summary['copies_timed']} timed, of {made}")
    theirs = {r[4]: (int(r[0]), int(r[5]), int(r[2])) for r in (x.rstrip("\n").split("\t") for x in open(records))}
    kinds = {what for what, _ in want}
    for group in [("memcpy DtoD", "memcpy PtoP")] + [(k,) for k in sorted(kinds - {"memcpy DtoD", "memcpy PtoP"})]:
        n, size, ns = (sum(theirs.get(k, (0, 0, 0))[i] for k in group) for i in range(3))
        mine = sum(got.get((k, "ns"), 0) for k in group)
        count, moved = (sum(want[k, x] for k in group) for x in ("count", "bytes"))
        off = (mine / ns - 1) * 100 if ns else 0
        print(f"  {' and '.join(group):27} {count:5} calls, CUPTI {n:5} copies; {moved} bytes, CUPTI {size}; "
              f"{mine / count / 1e3:.2f} us, CUPTI {ns / count / 1e3:.2f} ({off:+.2f} %)")
        if size != moved:
            fail("not the bytes that CUPTI has")
        if abs(off) > 5 or not ns:
            fail("over 5 % from CUPTI's time")


def sizes(out, said):
    """Registers and static shared memory of each kernel are the runtime's."""
    want = {name: (int(registers), int(shared), int(n)) for name, registers, shared, n in
            re.findall(r"^size (\S+) (\d+) (\d+) (\d+)$", open(out).read(), re.M)}
    summary = next(x for x in map(json.loads, re.findall(r'^{"gpucollect":.*', open(said).read(), re.M))
                   if x["gpucollect"] == "summary")
    got = {k["mangled"]: (k["registers"], k["static_shared_bytes"], k["launches"]) for k in summary["kernels"]}
    for name, size in want.items():
        print(f"  {name}: {got.get(name)}")
        if got.get(name) != size:
            fail(f"{name}: not {size}")
    if len(want) != 20 or got.keys() - want.keys():
        fail(f"{len(want)} kernels; others: {got.keys() - want.keys()}")


def speed(path):
    wall, cpu = collections.defaultdict(list), collections.defaultdict(list)
    for line in open(path):
        how, name, us, cpu_us = line.split()
        wall[(name, how)].append(float(us))
        cpu[(name, how)].append(float(cpu_us))
    for (name, how), values in sorted(wall.items()):
        plain = statistics.median(wall[(name, "plain")])
        mine = statistics.median(values)
        pairs = sorted(m / p for m, p in zip(values, wall[(name, "plain")]))
        print(f"  {name:8} {how:10} {mine:9.3f} us (of {len(values)}: {min(values):.3f} to "
              f"{max(values):.3f}), {mine / plain:.3f} x plain (in pairs "
              f"{pairs[0]:.2f}, {statistics.median(pairs):.2f}, {pairs[-1]:.2f}), {mine - plain:+.3f} us; the thread's "
              f"CPU {statistics.median(cpu[(name, how)]):.3f} us")


def ways(path):
    """name -> launches, chains, ns, overlapped, of, sum, wall us: lines of product_pdl."""
    found = {}
    for line in open(path):
        w = line.split()
        if w and w[0] == "way":
            found[w[1]] = [int(n) for n in w[2:]]
    return found


def pdl(plain, out, gpu, said, records=None):
    """Chains overlap as much as without us. With CUPTI's records all were looked at, and a chain's time is the
    device's busy time, less what a bracket adds, or of those that can't be timed the sum; else it is told what the
    means of the few launches that are timed make of it."""
    alone, ours = ways(plain), ways(out)
    times, kernels, everything = collections.Counter(), collections.defaultdict(collections.Counter), 0
    for frames, weight in folded(gpu):
        name = next((f[4:] for f in map(bare, frames) if f.startswith("way_")), None)
        if kernel_of(frames):
            everything += weight
        if name and kernel_of(frames) and "k_long" not in frames[-1]:
            times[name] += weight
            kernels[name][bare(kernel_of(frames))] += weight
    print(f"  {'way':8} {'launches':>8} {'overlap alone':>14} {'with us':>8} {'busy alone':>10} {'with us':>9} "
          f"{'sum us':>9} {'we say':>9} {'wall alone':>10} {'with us':>9}")
    for name, (n, _, ns, over, of, total, wall) in ours.items():
        before = alone[name]
        share, was = over / max(of, 1), before[3] / max(before[4], 1)
        print(f"  {name:8} {n:8} {was * 100:12.2f} % {share * 100:6.2f} % {before[2] / 1e3:10.0f} {ns / 1e3:9.0f} "
              f"{total / 1e3:9.0f} {times[name] / 1e3:9.0f} {before[6]:10} {wall:9}")
        print("    " + ", ".join(f"{k} {v / 1e3:.0f} us" for k, v in sorted(kernels[name].items())))
        if not all(kernels[name].values()) or len(kernels[name]) < (2 if name == "pair" else 3):
            fail(f"{name}: kernels without a time")
        if name not in ("pair", "ahead"):   # the rest depends on the host's pace
            if records and not 0.9 * ns <= times[name] <= 1.1 * total:
                fail(f"{name}: {times[name]} ns, busy {ns}, sum {total}")
            continue
        # Two overlaps in 256 launches are given up, and those of the first two of each kernel. That makes a
        # chain of eight that all overlap the longer.
        if share < was - 0.03:
            fail(f"{name}: overlaps {share:.4f}, alone {was:.4f}")
        if ns > (1.03 if name == "pair" else 1.1) * before[2]:
            fail(f"{name}: busy for {ns} ns, alone {before[2]}")
        # What isn't in a run that counts has the mean of launches that overlap with nothing.
        if records and not 0.97 * ns <= times[name] <= (ns + total) / 2:
            fail(f"{name}: {times[name]} ns, busy {ns}, sum {total}")
    if records:
        rows = [line.rstrip("\n").split("\t") for line in open(records)]
        busy = sum(int(r[2]) for r in rows if r[4] == "(busy)")
        print(f"  all: {everything / 1e3:.0f} us, CUPTI's records: busy {busy / 1e3:.0f} us "
              f"({(everything / busy - 1) * 100:+.2f} %), sum {sum(int(r[2]) for r in rows) / 1e3 - busy / 1e3:.0f} us")
    for line in open(said, errors="replace"):
        if "estimate" in line or "timed" in line or "looked at" in line:
            print("  " + line.rstrip())


def stacks(path):
    weights = whole = 0
    roots, entries, unnamed, through = (collections.Counter() for _ in range(4))
    depth = []
    for frames, weight in folded(path):
        if kernel_of(frames) is None:
            continue
        weights += weight
        inner = frames[1:-1]
        depth.append((len(inner), weight))
        marks = [f for f in inner if f.startswith("[") and not f.startswith("[thread ")]
        root = inner[0] if inner else "(none)"
        roots[root] += weight
        entries[inner[-1] if inner else "(none)"] += weight
        at_root = root == "_start" or re.match(r"(__)?clone3?$|libc\.so\.6\+0x|"
                                                 r"<module> \(|\[thread [^]]+\]$", root)
        if at_root and not marks:
            whole += weight
        for f in set(inner):
            if re.search(r"\+0x[0-9a-f]+$", f):
                unnamed[f.split("+")[0]] += weight
            for word in ("torch::autograd::Engine", "at::native", "at::_ops", "THPVariable",
                         "_PyEval_EvalFrame", "torch::autograd::generated", "c10::Dispatcher"):
                if word in f:
                    through[word] += weight
        for m in marks:
            through["mark " + m] += weight
    if not weights:
        fail("no stacks")
        return
    print(f"  {len(depth)} stacks, weight {weights}, whole {whole / max(weights, 1) * 100:.3f} %, "
          f"depth {min(d for d, _ in depth)} to "
          f"{max(d for d, _ in depth)}, mean "
          f"{sum(d * w for d, w in depth) / max(weights, 1):.1f}")
    for title, c in (("roots", roots), ("innermost", entries), ("frames without a name", unnamed),
                     ("through", through)):
        print(f"  {title}: " + ", ".join(f"{k} {v / weights * 100:.2f} %"
                                         for k, v in c.most_common(12)))
    if whole < 0.999 * weights:
        fail(f"only {whole / weights * 100:.3f} % of the stacks are whole")


if __name__ == "__main__":
    {"chains": chains, "paths": paths, "cupti": cupti, "total": total, "speed": speed,
     "where": where, "constants": constants, "agree": agree, "short": short_ones, "copies": copies,
     "stacks": stacks, "sizes": sizes, "sampled": sampled, "inside": inside, "parts": parts,
     "pdl": pdl}[sys.argv[1]](*sys.argv[2:])
    print("  ok" if not bad else f"  {bad} wrong")
    sys.exit(bad != 0)
