#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The guest's manners: the program sees its own calls' results, in their order, and nothing else.

timeout: 300
The device writes down every call; the program's own must be there as without the library, and what
was added must be of a few harmless kinds, none of them failing, none between a record and its launch.
"""
import collections
import os
import re
import signal
import subprocess
import sys
import time

import timing
from timing import LIBRARY, Run, case, program

checks = timing.Checks()
SEEN = timing.seen_library()
GUEST = {"cuCtxGetCurrent", "cuCtxGetDevice", "cuCtxGetId", "cuStreamIsCapturing", "cuStreamGetCtx", "cuStreamGetFlags",
         "cuEventCreate", "cuEventRecord", "cuEventElapsedTime_v2", "cuKernelGetName",
         "cuFuncGetName", "cuFuncGetAttribute", "cuKernelGetAttribute", "cuDeviceGetName", "cuDriverGetVersion", "cuThreadExchangeStreamCaptureMode",
         "cuDevicePrimaryCtxGetState"}
GRAPHS = {"cuGraphGetNodes", "cuGraphNodeGetType", "cuGraphKernelNodeGetParams_v2", "cuStreamGetCaptureInfo_v3"}
KEEPER = {"cuThreadExchangeStreamCaptureMode", "cuEventElapsedTime_v2"}


def calls(run):
    """tid -> [(name, result)] in order, sites as ("site", id)."""
    by_tid = collections.OrderedDict()
    for _, tid, words in run.trace():
        if words[0] == "hello":
            continue
        by_tid.setdefault(tid, []).append(
            ("site", int(words[2])) if words[0] == "site" else (words[0], int(words[1])))
    return by_tid


def said(run):
    """What it printed, without addresses, and without what a busy machine changes."""
    return re.sub(r"0x[0-9a-f]{6,}|^kept .*", "", run.stdout, flags=re.M), run.stderr


def subsequence(where, few, many):
    """The calls in `many` that are not matched, in order, by those in `few`."""
    rest, at = [], 0
    for c in many:
        if at < len(few) and c == few[at]:
            at += 1
        else:
            rest.append(c)
    checks.equal(at, len(few), where, "the program's own calls found; the next is",
                 few[at:at + 1])
    return rest


def brackets(where, mine):
    """Site, record, launch, record, one after the other, for every launch that was bracketed."""
    n = 0
    for i, c in enumerate(mine):
        if c[0] != "site" or mine[i + 1:i + 2] != [("cuEventRecord", 0)]:
            continue
        launch, after = mine[i + 2:i + 4]
        n += not launch[1]
        if not checks("Launch" in launch[0] and (launch[1] or after == ("cuEventRecord", 0)), where,
                      "not a bracket:", launch, after):
            break
    return n


def runs(where, mine):
    """The same where launches share a bracket: between a site and its launch an end, a begin, both or none. And
    after an end whether its begin is over is asked."""
    n = 0
    for i, c in enumerate(mine):
        if c[0] != "site" or "Synchronize" in mine[i + 1][0]:  # a wait has nothing between the two
            continue
        launch = next(k for k in range(i + 1, len(mine))
                      if mine[k] != ("cuEventRecord", 0) and mine[k][0] != "cuEventElapsedTime_v2")
        records = sum(c[0] == "cuEventRecord" for c in mine[i:launch])
        n += records
        if not checks(records <= 2 and launch - i <= records + 2 and "Launch" in mine[launch][0], where,
                      "not a launch:", mine[i:launch + 1]):
            break
    return n


def compare_calls(where, command, least, brackets=brackets, **variables):
    runs = []
    for library in ("/nonexistent", SEEN):
        run = Run(command, library=library, trace=True, **variables)
        runs.append(run)
    plain, guest = runs
    checks.equal((guest.status, said(guest)), (plain.status, said(plain)), where, "what it says")
    before, after = calls(plain), calls(guest)
    # the program's one thread, and the library's own
    own = [tid for tid in after if any(c[0] == "cuInit" for c in after[tid])][0]
    checks.equal(len(before), 1, where, "threads")
    for tid, made in after.items():
        if tid != own:
            checks({c[0] for c in made} <= KEEPER, where, "the keeper's calls:", set(made))
            checks({c[1] for c in made} <= {0, 600}, where, "the keeper's results:", set(made))
    extra = subsequence(where, next(iter(before.values())), after[own])
    added = collections.Counter(c for c in extra if c[0] != "site")
    checks({name for name, _ in added} <= GUEST | GRAPHS, where, "added:", added)
    checks(all(r == 0 or (name, r) == ("cuEventElapsedTime_v2", 600) for name, r in added), where,
           "added calls that failed:", added)
    n = brackets(where, after[own])
    checks(n >= least, where, "brackets:", n)
    # none of ours before the program's first launch
    first = next(i for i, c in enumerate(after[own]) if c[0] == "site")
    plainly = next(iter(before.values()))
    launch = next(i for i, c in enumerate(plainly) if "Launch" in c[0])
    early = subsequence(where, plainly[:launch], after[own][:first])
    allowed = {"cuCtxGetCurrent", "cuCtxGetId", "cuStreamIsCapturing", "cuStreamGetCtx", "cuStreamGetFlags", "cuCtxGetDevice",
               "cuDeviceGetName", "cuDriverGetVersion", "cuEventCreate"}
    # what a graph runs is asked when the program makes it
    if any("Instantiate" in c[0] for c in plainly[:launch]):
        allowed |= GRAPHS | {"cuFuncGetName"}
    checks({c[0] for c in early} <= allowed, where, "before the first launch:", early)


def one_thread():
    compare_calls("chains", program("gpu_chains", 3), 30)
    compare_calls("routes", case("routes"), 37)
    compare_calls("numbers", case("numbers"), 3)
    compare_calls("contexts", program("gpu_contexts", 12), 90)
    compare_calls("capture", case("capture", "plain"), 1)
    compare_calls("forkjoin", case("capture", "forkjoin"), 1)
    compare_calls("pdl", program("gpu_pdl", 5), 10, runs)
    compare_calls("modules", program("gpu_hazards", "modules", 40), 80)
    compare_calls("failing", program("gpu_hazards", "failing"), 10)


def idle():
    """Programs that hardly use the driver: no call of ours, no context, no memory on a device."""
    for mode in ("count", "one", "fork"):
        plain = Run(case("idle", mode), library="/nonexistent", STANDIN_DEVICES=2)
        guest = Run(case("idle", mode), library=SEEN, STANDIN_DEVICES=2, trace=True)
        checks.equal((guest.status, guest.stdout, guest.stderr),
                     (plain.status, plain.stdout, plain.stderr), "idle", mode)
    plain = Run(case("idle", "count"), library="/nonexistent", STANDIN_DEVICES=2,
                trace=True)
    guest = Run(case("idle", "count"), library=SEEN, STANDIN_DEVICES=2, trace=True)
    checks.equal([c for v in calls(guest).values() for c in v],
                 [c for v in calls(plain).values() for c in v], "idle count: calls")


def device_counters():
    """What the device itself counts as bad manners."""
    for where, command in (("chains", program("gpu_chains", 20)), ("capture", program("gpu_capture")),
                           ("contexts", program("gpu_contexts", 20)), ("case", case("capture", "other")),
                           ("ends", program("gpu_ends", "fork")),
                           ("modules", program("gpu_hazards", "modules", 100)),
                           ("gone", program("gpu_hazards", "gone"))):
        counts = []
        for library in ("/nonexistent", LIBRARY):
            run = Run(command, library=library, STANDIN_STATS="stats")
            path = os.path.join(timing.TMP, "stats")
            counts.append(timing.stats(path))
            os.remove(path)
            checks.equal(run.status, 0, where, "status", run.stderr)
        for key in ("logged", "stale", "after_fork"):
            checks.equal(counts[1][key], counts[0][key], where, key)
    plain = Run(program("gpu_capture"), library="/nonexistent")
    guest = Run(program("gpu_capture"))
    steady = [[w for w in r.stdout.split("\n") if "beside" not in w and "total" not in w]
              for r in (plain, guest)]
    checks.equal(steady[0], steady[1], "capture: output")


def surroundings():
    """Descriptors, threads, signal masks, handlers, environment, working of time-outs."""
    quiet = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": 60}
    plain = subprocess.run(case("eintr", 4), env=timing.environment("simcuda"), **quiet)
    guest = subprocess.run(case("eintr", 4), env=timing.environment(
        "simcuda", CUDA_INJECTION64_PATH=LIBRARY), **quiet)
    checks.equal((guest.returncode, guest.stdout), (plain.returncode, plain.stdout), "eintr")
    for env in ({"GPUCOLLECT_DISABLE": "1"}, {"GPUCOLLECT_DISABLE": ""}):
        process = subprocess.Popen(
            program("gpu_hazards", "steady", 200, 5), stdout=subprocess.DEVNULL,
            env=timing.environment("simcuda", CUDA_INJECTION64_PATH=LIBRARY, **env))
        time.sleep(0.4)
        links = [os.readlink(f"/proc/{process.pid}/fd/{fd}")
                 for fd in os.listdir(f"/proc/{process.pid}/fd")]
        checks(not any("memfd" in link for link in links), "disabled: descriptors", links)
        checks.equal(len(os.listdir(f"/proc/{process.pid}/task")), 1, "disabled: threads")
        process.send_signal(signal.SIGKILL)
        process.wait()


def had_a_chance(channel):
    """Launches with a time, and those that chance left out: the device is far behind here."""
    causes = channel.by_cause()
    return causes[timing.NONE] + causes[timing.OUTSTANDING] if causes[timing.NONE] >= 60 else 0


def ends():
    """Status and output of every way to end; all that was waited for has a time, or its estimate."""
    for mode, status in (("return", 0), ("exit", 5), ("_exit", 6), ("abort", 128 + 6),
                         ("kill", 128 + 9), ("running", 0), ("thread", 0), ("atexit", 0),
                         ("late", 0)):
        run = Run(program("gpu_ends", mode))
        plain = Run(program("gpu_ends", mode), library="/nonexistent")
        checks.equal((run.status, plain.status), (status, status), mode, "status")
        drop = [[w for w in r.stdout.split("\n") if not w.startswith("pid ")] for r in (run, plain)]
        checks.equal(drop[0], drop[1], mode, "output")
        checks.equal(had_a_chance(run.channel), 200 if mode == "thread" else 100, mode, "timed")
        launched = run.channel.count("launched")
        checks.equal(run.channel.count("probes") - run.channel.count("waits"), launched, mode, "probes")
        checks(all(abs(r.duration - 100000) < 2 for r in run.channel.results if not r.cause), mode,
               "times")
    # exec: the same program again; fork: twice in the parent, once in a child's new program
    for mode, launched in (("exec", [100, 100]), ("fork", [100, 200]), ("before", [100, 100])):
        run = Run(program("gpu_ends", mode))
        checks.equal(run.status, 0, mode, "status", run.stdout, run.stderr)
        for what in (lambda c: c.count("launched"), had_a_chance):
            checks.equal(sorted(map(what, run.channels.values())), launched, mode)
    workers = [sys.executable, os.path.join(timing.TOP, "tests/cases/gpu/workers.py")]
    for how in (["fork"], ["spawn", "parent"], ["forkserver"]):
        run = Run(workers + how)
        # Two workers may write at once, and their lines run into each other.
        made = sorted(map(int, re.findall(r"rank \d+: (\d+) launches", run.stdout)))
        checks.equal(run.status, 0, "workers", how)
        checks("exit codes [0, 0, 0, 0]" in run.stdout, "workers", how, run.stdout)
        seen = sorted(c.count("launched") for c in run.channels.values()
                      if any(n[2].startswith("spin_rank") for n in c.names.values()))
        if how[1:] == ["parent"]:
            seen = seen[-4:]
        checks.equal(seen, made, "workers", how)


one_thread()
idle()
device_counters()
surroundings()
ends()
sys.exit(checks.status())
