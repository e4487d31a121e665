#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 120
# alone: takes every process of the machine that launches
"""-a --inject where another gpucollect records a process already: it goes on without that one's GPU work,
says so once, in a dry run as well, and has the process's CPU time."""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402
import slots  # noqa: E402

check = L.Checks()
DRIVER = slots.Driver(os.path.join(L.B, "simcuda/libcuda.so.1"))
FIRST, ALL = (os.path.join(L.TMP, name) for name in ("first.folded", "all.folded"))


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))


def weight_of(run, pid):
    return sum(s.weight for s in run.stacks if s.pid == pid)


if os.geteuid():
    print("needs root")
    sys.exit(L.SKIP)
target = L.Launching(check, 0)
pid = int(target.pid)
first = L.Attached([pid], "--metric", "launches", "--no-inlines", "-o", FIRST)
first.wait_recording()
L.skip_without_bpf(first.process.poll(), first.said())
who = f"is already recorded by gpucollect, pid {first.process.pid}"
said = f"warning: process {pid} {who}: its GPU work is left out"

argv = [L.GPUCOLLECT, "-a", "--inject", "--metric", "cpu", "-F", "500", "--no-inlines", "-o", ALL]
r = subprocess.run([*argv, "--dry-run"], env=L.environment(), capture_output=True, text=True, timeout=60)
dry = L.Run(r.returncode, r.stdout, r.stderr, ALL)
check(dry.status == 0 and dry.said.count(said) == 1 and f"\n  CPU samples only: it {who}\n" in dry.out and
      not dry.written, f"dry: {dry.status} {dry.out} {dry.said}")

everything = subprocess.Popen(argv, env=L.environment(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True)
lines = []
while not lines or (lines[-1] and "recording;" not in lines[-1]):
    lines.append(everything.stderr.readline())
before = cpu_ticks(pid)
L.wait_for(lambda: cpu_ticks(pid) > before + 50, "CPU time of the target")
everything.send_signal(signal.SIGINT)
_, rest = everything.communicate(timeout=60)
run = L.Run(everything.returncode, "", "".join(lines) + rest, ALL)
check(run.status == 0 and run.said.count(said) == 1, f"all: {run.status} {run.said}")
# Half a second of CPU time at least, at 2 ms a sample; some may be missing at either end.
check(weight_of(run, pid) > 0.25e9, f"all: {weight_of(run, pid)} ns of CPU time: {run.said}")

check(len(DRIVER.away(pid)) == slots.SWAPPED, "the first one has lost its slots")
first.process.send_signal(signal.SIGINT)
run = L.Run(first.process.wait(60), "", first.said(), FIRST)
check(run.status == 0 and weight_of(run, pid) > 200 and not run.complaints(), f"the first: {run.status} {run.said}")
target.end("whole machine")
sys.exit(check.status())
