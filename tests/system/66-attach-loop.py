#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 900
"""gpucollect attaches to a program under load and detaches from it, 200 times.

What the program computes is bit by bit what it computes alone; no wait of it ends early; after the first
time its memory, descriptors, threads and mappings stay as they are; slots and code are as before each time.
ATTACH_ROUNDS=N changes the 200. How long threads were held is printed, not judged.
"""
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402
import slots  # noqa: E402

ROUNDS = int(os.environ.get("ATTACH_ROUNDS", "200"))
CHECKED = f"{L.PROGRAMS}/gpu_checked"
THREADS = 2
check = L.Checks()


class Usage:
    def __init__(self, pid):
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            status = dict(line.split(":", 1) for line in f)
        self.memory = int(status["RssAnon"].split()[0]) + int(status["RssShmem"].split()[0])
        self.threads = int(status["Threads"])
        self.files = sorted(os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd"))
        with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
            self.mappings = sum(1 for line in f)

    def __str__(self):
        return (f"{self.memory} kB, {self.threads} threads, {len(self.files)} files, "
                f"{self.mappings} mappings")


class Target:
    def __init__(self, threads):
        self.process = subprocess.Popen([CHECKED, str(threads)], env=L.environment(), text=True,
                                        bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = int(self.process.stdout.readline().split()[1])

    def made(self):
        self.process.stdin.write("?")
        self.process.stdin.flush()
        return int(self.process.stdout.readline().split()[1])

    def end(self):
        out, _ = self.process.communicate(timeout=60)
        check(self.process.returncode == 0, f"the target ended with {self.process.returncode}")
        return out


def one_round(number, target, driver, holds):
    path = os.path.join(L.TMP, "round.folded")
    before = target.made()
    g = L.Attached([target.pid], "-v", "--no-inlines", "--metric", "launches", "-y", "-o", path,
                   name="round.log")
    g.wait_recording()
    first = last = target.made()
    while last < first + 50:
        last = target.made()
    g.process.send_signal(signal.SIGINT)
    g.process.wait(60)
    after, said = target.made(), g.said()
    if not check(g.process.returncode == 0, f"round {number}: status {g.process.returncode}: {said}"):
        return
    r = L.Run(0, "", said, path)
    # Counted is what has ended: each thread may have launched its first of them before the recording.
    check(last - first - THREADS <= r.launches() <= after - before and not r.lost(),
          f"round {number}: {r.launches()} launches of {after - before}, {r.lost()} lost")
    check(r.timed() + r.untimed() == r.launches(), f"round {number}: {r.said}")
    check({tuple(s.frames[-3:]) for s in r.stacks} == {("work", "launch_checked", "cuLaunchKernel")},
          f"round {number}: {r.stacks}")
    check(driver.away(target.pid) == [], f"round {number}: slots are not restored")
    holds += map(float, re.findall(r"threads held \d+ times, ([\d.]+) ms", said))


def alone(out):
    """The same iterations without anybody looking on."""
    wanted = re.findall(r"^thread \d+ (\d+) ", out, re.M)
    status, plain, _ = L.plain([CHECKED, str(len(wanted)), *wanted], timeout=300)
    check(status == 0, f"alone it ends with {status}")
    return [line for line in plain.splitlines() if line.startswith("thread")]


def looped():
    target, driver = Target(THREADS), slots.Driver(os.path.join(L.B, "simcuda/libcuda.so.1"))
    holds, early = [], None
    for number in range(1, ROUNDS + 1):
        one_round(number, target, driver, holds)
        if number == min(3, ROUNDS):
            early = Usage(target.pid)
    late = Usage(target.pid)
    check(not slots.changed_code(target.pid, driver.path), "the driver's code is not as in its file")
    print(f"after the first rounds: {early}; after {ROUNDS}: {late}")
    check(late.threads == early.threads and late.files == early.files and
          late.mappings <= early.mappings, f"threads, files, mappings: {early.files} {late.files}")
    check(late.memory <= early.memory + 512, f"memory {early.memory} -> {late.memory} kB")
    if holds:
        print(f"threads were held for {sorted(holds)[len(holds) // 2]} ms at most in half of the rounds, "
              f"for {max(holds)} ms at most in all")
    out = target.end()
    check([line for line in out.splitlines() if line.startswith("thread")] == alone(out),
          f"the target computed {out}")
    check("\ninterrupted 0\n" in out, f"waits ended early: {out}")


looped()
left = L.bpf_left()
check(not left, f"BPF programs are left: {left}")
sys.exit(check.status())
