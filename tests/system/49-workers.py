#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 200
"""Workers that a launcher starts: each one's launches are counted, by device, and under its own rank."""
import collections
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402

check = L.Checks()
WORKERS = 4
LAUNCHER = os.path.join(os.environ["TOP"], "tests/programs/python/workers_started.py")
OUT = os.path.join(L.TMP, "o.folded")
RANKS = {"torchrun": lambda i: 10 + i, "mpi": lambda i: i, "none": lambda i: None}


def launcher(how):
    return [sys.executable, LAUNCHER, how, str(WORKERS), f"{L.PROGRAMS}/gpu_rank"]


def environment(**extra):
    env = L.environment(STANDIN_DEVICES=str(WORKERS), **extra)
    for name in ("RANK", "LOCAL_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"):
        env.pop(name, None)
    return env


def objects(err, kind):
    found = [json.loads(s) for s in err.splitlines() if s.startswith('{"gpucollect":')]
    return [o for o in found if o["gpucollect"] == kind]


def compare(what, how, out, err, times=True, words=None):
    """By the workers' own account."""
    rows = [tuple(map(int, row)) for row in re.findall("worker" + r" (\d+)" * 7, out)]
    check(len(rows) == WORKERS, f"{what}: {out}")
    want = {}
    for number, pid, device, streams, launches, copies, ns in rows:
        want[pid] = (RANKS[how](number), "gpu_rank", *((device, streams, launches, copies, ns) if times else
                                                     (None, None, launches, None, None)))
    summaries = objects(err, "summary")
    check(len(summaries) == 1, f"{what}: {err}")
    said = summaries[0]["processes"] if summaries else []
    got = {s["pid"]: tuple(s[key] for key in ("rank", "name", "device", "streams", "launches", "copies", "gpu_ns"))
           for s in said}
    check(got == want and len(said) == WORKERS, f"{what}: {said}\n      instead of {want}")
    ranks = [s["rank"] for s in said]
    check(how == "none" or ranks == [RANKS[how](i) for i in range(WORKERS)], f"{what}: in the order {ranks}")
    # The stacks have the same by process.
    sums = collections.Counter()
    for s in L.read(OUT):
        sums[s.pid] += s.weight
    check(sums == {pid: w[6] if times else w[4] for pid, w in want.items()}, f"{what}: stacks {sums}")
    said = objects(err, "error") + objects(err, "warning")
    check(len(said) == (words is not None) and all(words in s["text"] for s in said), f"{what}: {err}")


def started(how, *options, times=True):
    metric = "gpu" if times else "launches"
    r = subprocess.run([L.GPUCOLLECT, "--json", *options, "--metric", metric, "-y", "-o", OUT, "--", *launcher(how)],
                       env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    L.skip_without_bpf(r.returncode, r.stderr)
    check(r.returncode == 0, f"{how}: {r.returncode} {r.stderr}")
    compare(f"started {how} {options}", how, r.stdout, r.stderr, times)


def attached(how, late):
    """To the launcher, before or after its workers have started; they go on when the library is in them."""
    what = f"attached {how} {'early' if late else 'late'}"
    gate = L.Gate()
    p = subprocess.Popen(launcher(how), env=environment(**gate.variable), stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
    p.stdout.readline()

    def go():
        p.stdin.write("\n")
        p.stdin.flush()
    if not late:
        go()
        L.wait_for(lambda: len(gate.pids()) == WORKERS, "workers")
    g = L.Attached([p.pid], "--json", "--launches", "all", "--metric", "gpu", "-y", "-o", OUT)
    L.wait_for(lambda: '"recording' in g.said() or g.process.poll() is not None, "recording")
    if late:
        go()
    # Whoever reads first goes first.
    L.wait_for(lambda: len(gate.pids()) == WORKERS, "workers")
    L.wait_for(lambda: all(L.is_entered(pid, "simcuda", "library") for pid in gate.pids()), "entered")
    gate.let_through(WORKERS)
    out = p.communicate(timeout=60)[0]
    g.process.wait(60)
    gate.close()
    check((p.returncode, g.process.returncode) == (0, 0), f"{what}: {p.returncode} {g.said()}")
    compare(what, how, out, g.said(), words="has loaded the CUDA driver" if late else None)


def said():
    """In words, where the result has the process alone."""
    r = L.run(launcher("torchrun"), STANDIN_DEVICES=str(WORKERS))
    pids = {int(n): pid for n, pid in re.findall(r"worker (\d+) (\d+)", r.out)}
    check(r.status == 0 and "ranks: " + ", ".join(f"{10 + n} is pid {pids[n]}" for n in range(WORKERS)) in r.said,
          f"said: {r.said}")


if os.geteuid():
    print("needs root")
    sys.exit(L.SKIP)
for kind in RANKS:
    started(kind, "--launches", "all")
started("torchrun")
started("torchrun", "--no-inject", times=False)
for early in (True, False):
    attached("torchrun", early)
said()
sys.exit(check.status())
