#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
"""The hard launch programs (tests/cases, G and E-05): what the table demands of each.

Everywhere: the program prints the same as alone and ends with the same status; its driver calls
have the same results; no call made for gpucollect uses a dead handle, is refused, or leaves a line
in the driver's error log.
"""
import collections
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402

check = L.Checks()
INPUTS = os.path.join(os.environ["TOP"], "tests/cases")
TRACE, TRUTH, STATS = (os.path.join(L.TMP, name) for name in ("trace", "truth", "stats"))
# What the timing library calls, and the answers that it may get.
OURS = {entry: ("0",) for entry in (
    "cuCtxGetCurrent", "cuCtxGetDevice", "cuCtxGetId", "cuDeviceGetName",
    "cuDevicePrimaryCtxGetState", "cuDriverGetVersion", "cuEventCreate", "cuEventRecord", "cuFuncGetName", "cuKernelGetName",
    "cuFuncGetAttribute", "cuKernelGetAttribute",
    "cuStreamGetCtx", "cuStreamGetFlags", "cuStreamIsCapturing", "cuThreadExchangeStreamCaptureMode",
    "cuGraphGetNodes", "cuGraphNodeGetType", "cuGraphKernelNodeGetParams_v2", "cuStreamGetCaptureInfo_v3")}
OURS["cuEventElapsedTime_v2"] = ("0", "600")


def rows(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        lines = [line.split() for line in f]
    os.remove(path)
    return lines


def program(name, *args):
    return [os.path.join(L.CASES, name), *args]


def observed(what, target, *options, mode="library", metric=None, status=0, trace=True, **extra):
    """gpucollect on a program, with the device's own account of it."""
    r = L.run(target, *options, mode=mode, metric=metric, STANDIN_TRACE=TRACE if trace else "",
              STANDIN_TRUTH=TRUTH, STANDIN_STATS=STATS, STANDIN_CRASH="1", **extra)
    r.what = f"{what} {mode}"
    r.trace, r.truth, r.stats = rows(TRACE), rows(TRUTH), L.stats(STATS)
    r.calls = collections.Counter((row[2], row[3]) for row in r.trace)
    check(r.status == status, f"{r.what}: status {r.status}")
    check(r.stats["stale"] == 0, f"{r.what}: {r.stats['stale']} uses of dead handles")
    return r


def both(what, target, *options, mask=r"\b\B", status=0, ours=None, steady=True, first_errors=0,
         **how):
    """The same alone first. Not `steady`: how often it calls depends on the time."""
    extra = {k: v for k, v in how.items() if k.isupper()}
    traced = how.get("trace", True)
    code, out, err = L.plain(target, STANDIN_TRACE=TRACE if traced else "", STANDIN_STATS=STATS,
                             **extra)
    alone, logged = collections.Counter((row[2], row[3]) for row in rows(TRACE)), L.stats(STATS)["logged"]
    r = observed(what, target, *options,
                 status=ours if ours is not None else 128 - status if status < 0 else status, **how)
    check(code == status, f"{what}: alone it ends with {code}")
    check(re.sub(mask, "", r.out) == re.sub(mask, "", out),
          f"{r.what}: it prints\n{r.out}instead of\n{out}")
    check(re.sub(mask, "", r.err) == re.sub(mask, "", err),
          f"{r.what}: on stderr\n{r.err}instead of\n{err}")
    # A process that was killed or left by _exit leaves no counters.
    # The first call to meet an error of the context can't know of it.
    check(logged <= r.stats["logged"] <= logged + first_errors or not r.stats,
          f"{r.what}: {r.stats['logged']} lines in the error log, alone {logged}")
    for entry, result in set(alone) | set(r.calls):
        n, m = r.calls[entry, result], alone[entry, result]
        if entry in OURS and how.get("mode") != "probes":
            check(n >= m if result in OURS[entry] else n == m or not steady and m,
                  f"{r.what}: {entry} returned {result} {n} times, alone {m}")
        else:
            check(n == m or not steady and (n == 0) == (m == 0),
                  f"{r.what}: {entry} returned {result} {n} times, alone {m}")
    return r


def by_device(r, key, metric):
    """The device's own sums: launches or ns, outside captures."""
    sums = collections.Counter()
    for row in r.truth:
        if row[-1] != "-":
            sums[key(row)] += int(row[-1]) - int(row[-2]) if metric == "gpu" else 1
    return sums


def kernel_of(row):
    return "[graph]" if row[3] == "(graph" else row[3]


def agrees(r, metric="gpu", key=lambda row: (row[2], kernel_of(row)),
           mine=lambda s: (s.frames[-1], s.kernel)):
    """What gpucollect wrote is what the device ran."""
    got = collections.Counter()
    for s in r.stacks:
        got[mine(s)] += s.weight
    want = by_device(r, key, metric)
    check(got == want, f"{r.what}: {dict(got)} instead of {dict(want)}")
    check(not r.complaints(), f"{r.what}: it complains: {r.complaints()}")
    check(r.lost() == 0, f"{r.what}: {r.lost()} lost")


def agrees_by_entry(r):
    agrees(r, "launches", lambda row: row[2], lambda s: s.frames[-1])


def g01():
    """Each launch call, reached by each route, once."""
    for metric in ("gpu", "launches"):
        r = both("G-01", program("routes"), metric=metric)
        agrees(r, metric)
        check(r.launches() == 37, f"{r.what}: {r.launches()} launches")
    r = both("G-01", program("routes"), mode="probes")
    agrees_by_entry(r)
    check(r.total() == 37, f"{r.what}: {r.total()} launches")


def g02():
    """An own LD_PRELOAD, an emptied environment, a static and a 32-bit child, an odd path."""
    folder = os.path.join(L.TMP, "cases")	# the script writes beside the programs
    shutil.copytree(L.CASES, folder)
    r = both("G-02", [os.path.join(INPUTS, "gpu/preload.sh"), folder])
    # The one with an emptied environment is entered while it runs, if it lives long enough.
    check(600 <= r.timed() == r.launches() <= 800 and r.total() == r.timed() * 20000 and
          len(r.stacks) in (3, 4), f"{r.what}: {r.launches()} launches, {r.timed()} timed, {r.total()} ns")
    # One that lives long enough is entered by another way, and timed from then on.
    alone = program("launches", "300", "20000", "1", "3000")
    path = f"LD_LIBRARY_PATH={os.environ['B']}/simcuda"
    ways = [["env", "-i", path], ["env", "CUDA_INJECTION64_PATH=/none"]]
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0:
        hidden = "mount -t tmpfs none /run/gpucollect && exec \"$@\""
        ways.append(["unshare", "-m", "sh", "-c", hidden, "sh"])
    for how in ways:
        r = observed(f"G-02 {how[:2]}", how + alone, metric="launches", trace=False)
        check(not r.complaints(), f"{r.what}: it says {r.said}")
        check(100 < r.launches() == r.timed() <= 300, f"{r.what}: {r.launches()} launches, {r.timed()} timed")


def g03():
    """Hardly any use of the driver, none before a fork."""
    two = {"STANDIN_DEVICES": "2"}
    agrees(both("G-03 fork", program("idle", "fork"), **two))
    agrees(both("G-03 one", program("idle", "one"), **two))
    r = both("G-03 count", program("idle", "count"), ours=2, **two)
    check(len(r.trace) == 6, f"{r.what}: calls that are not the program's own: {r.calls}")
    check(not r.written, f"{r.what}: a file without a stack")


def g04():
    """Captures: the same graphs, and what they hold is not counted as executed."""
    for mode in ("plain", "forkjoin"):
        r = both(f"G-04 {mode}", program("capture", mode, "30"))
        agrees(r)
        check(r.number(r"captured into a graph: ([\d,]+)") == r.stats["captured"] > 0,
              f"{r.what}: the device captured {r.stats['captured']}")
        # Probes can't tell launches into a capture, and say so.
        r = both(f"G-04 {mode}", program("capture", mode, "30"), mode="probes")
        check(r.total() == len(r.truth), f"{r.what}: {r.total()} of {len(r.truth)} calls")
        check(any("capture" in s for s in r.said), f"{r.what}: not a word about captures")
    agrees(both("G-04 other", program("capture", "other", "20"), steady=False))


def g05():
    """One graph, replayed many times: its number, and the memory."""
    for mode in ("library", "probes"):
        # The ring's pages come once, soon after the first launch: on a loaded machine after a tenth.
        for _ in range(3):
            r = both("G-05", program("replay", "30000"), mode=mode, trace=False,
                     mask=r"(?<=pid )\d+|(?<=resident ).*")
            m = re.search(r"resident (\d+) kB after a tenth, (\d+) kB at the end", r.out)
            if int(m[2]) - int(m[1]) < 4096:
                break
        check(int(m[2]) - int(m[1]) < 4096, f"{r.what}: {m[0]}")
        if mode == "library":
            agrees(r)
        check(r.launches() == 30002 + (5 if mode == "probes" else 0),
              f"{r.what}: {r.launches()} launches")


def g06():
    """Two contexts or devices by turns: every kernel timed, none mixed up."""
    for devices in ("2", "1"):
        r = both(f"G-06 {devices}", program("alternate", "1000"), STANDIN_DEVICES=devices)
        agrees(r)
        check(r.by_kernel() == {"spin_a": 500 * 30000, "spin_b": 500 * 60000},
              f"{r.what}: {r.by_kernel()}")
        check(r.timed() == 1000, f"{r.what}: {r.timed()} timed")


def g07():
    """The driver answers queries with an error from the 50th launch on."""
    for error in ("700", "4", "201", "719"):
        r = both(f"G-07 {error}", program("launches", "1000"), "--metric", "launches", status=3,
                 trace=False, first_errors=4, STANDIN_QUERY_ERROR=f"{error}:50")
        launched = int(re.search(r"launched (\d+), last error " + error, r.out)[1])
        check(r.total() == r.launches() == launched, f"{r.what}: {r.total()} of {launched}")
        check(r.timed() + r.untimed() == launched and r.untimed() >= 15,
              f"{r.what}: {r.timed()} timed, {r.untimed()} not")


def g08():
    """Ways to end, with a kernel under way."""
    for mode, status in (("return", 0), ("exit", 5), ("_exit", 6), ("abort", -6), ("kill", -9),
                         ("unsynced", 0)):
        r = both(f"G-08 {mode}", program("ends", mode), status=status)
        last = int(mode != "return")
        check(r.by_kernel() == {"spin_a": 100 * 100000}, f"{r.what}: {r.by_kernel()}")
        check((r.launches(), r.timed(), r.untimed()) == (100 + last, 100, last),
              f"{r.what}: {r.launches()} launches, {r.timed()} timed, {r.untimed()} not")
        if last:
            check(r.number(r"no end seen \(([\d,]+)\)") == 1, f"{r.what}: it says {r.said}")


def g09():
    """Workers by fork, spawn and forkserver, and workers that are killed."""
    for how in (["fork"], ["spawn", "parent"], ["forkserver"], ["spawn", "kill"]):
        target = [sys.executable, os.path.join(INPUTS, "gpu/workers.py"), *how]
        r = observed(f"G-09 {how}", target, metric="launches", trace=False)
        codes = re.search(r"exit codes (.*)", r.out)[1]
        check(codes == ("[-15, -15, -15, -15]" if "kill" in how else "[0, 0, 0, 0]"),
              f"{r.what}: {codes}")
        ranks = {s.kernel for s in r.stacks}
        want = {f"spin_rank{n}" for n in (0, 1, 2, 3) + ((9,) if "parent" in how else ())}
        check(ranks == want and len({s.pid for s in r.stacks}) == len(want),
              f"{r.what}: kernels {ranks}")
        sums = {kernel: [] for kernel in want}
        for s in r.stacks:
            sums[s.kernel].append(s.weight)
        for rank, n in re.findall(r"rank (\d): (\d+) launches", r.out):
            check(sum(sums[f"spin_rank{rank}"]) == int(n),
                  f"{r.what}: rank {rank}: {sums[f'spin_rank{rank}']} instead of {n}")
        if "kill" in how:
            run = by_device(r, kernel_of, "launches")
            for kernel in want:
                # The device itself loses at most the lines of its last 10 ms.
                check(run[kernel] <= sum(sums[kernel]) <= run[kernel] + 200,
                      f"{r.what}: {kernel}: {sums[kernel]}, the device wrote {run[kernel]}")
        check(not r.complaints() and not r.lost(), f"{r.what}: {r.complaints()}, {r.lost()} lost")


def g10():
    """An event record blocks in the driver until another thread launches."""
    for nth in range(40, 51, 2):
        r = observed(f"G-10 {nth}", program("locked", "100"), trace=False,
                     STANDIN_RECORD_BLOCKS=str(nth))
        check("600 launches, 0 failures" in r.out, f"{r.what}: {r.out}")
        check("released by another thread" in r.err and "blocked" not in r.err,
              f"{r.what}: {r.err}")
        agrees(r)


def g11():
    """Numbers that are all different, by three entry points."""
    agrees(both("G-11", program("numbers"), mask="stream 0x[0-9a-f]+"))
    agrees_by_entry(both("G-11", program("numbers"), mask="stream 0x[0-9a-f]+", mode="probes"))


def g12():
    """Names that are alike, empty, absent, very long or full of odd characters."""
    r = both("G-12", program("kernel_names"), metric="launches")
    names = [s.kernel for s in r.stacks]
    check(len(names) == 15 and all(s.weight == 50 for s in r.stacks),
          f"{r.what}: {[(s.kernel[:40], s.weight) for s in r.stacks]}")
    check(len(set(names)) == len(names) and all(names), f"{r.what}: names that are alike or empty")
    check({"[kernel with an empty name]", "[kernel without a name]"} <= set(names), f"{r.what}: no name: {names}")
    check(any("128" in n and "64" in n for n in names), f"{r.what}: a readable name is missing")
    for n in names:
        check(n.isprintable() and ";" not in n, f"{r.what}: {n[:60]!r}")


def g13():
    """Very many launches, names and threads."""
    for mode in ("library", "probes"):
        r = observed("G-13", program("flood", "400000", "5000", "200"), mode=mode,
                     metric="launches", trace=False)
        check(r.launches() + r.lost() == r.total() + r.lost() == r.stats["launches"] == 400000,
              f"{r.what}: {r.launches()} launches, {r.total()} written, {r.lost()} lost")
        check(not r.complaints(), f"{r.what}: {r.complaints()}")
        if mode == "library" and not r.lost():
            kernels = collections.Counter(s.kernel for s in r.stacks)
            check(len(kernels) == 5000, f"{r.what}: {len(kernels)} kernels")


def e05():
    """Under a system-call filter that kills, or answers EPERM."""
    for way in ("kill", "errno"):
        for mode in ("library", "probes"):
            r = observed(f"E-05 {way}", program("filtered", way, "1"), mode=mode,
                         metric="launches", trace=False)
            m = re.match(r"survived (\d+) launches, 0 failed$", r.out)
            check(m and r.total() == int(m[1]) + 1, f"{r.what}: {r.total()} launches; {r.out}")
            check(not r.complaints(), f"{r.what}: {r.complaints()}")
            if mode == "library":
                check(r.timed() + r.untimed() == r.launches() and r.timed() >= 100,
                      f"{r.what}: {r.timed()} timed")


wanted = sys.argv[1:]
for case in (g01, g02, g03, g04, g05, g06, g07, g08, g09, g10, g11, g12, g13, e05):
    if not wanted or case.__name__ in wanted:
        before = check.failures
        case()
        print("ok   " if check.failures == before else "WRONG", case.__name__, flush=True)
sys.exit(check.status())
