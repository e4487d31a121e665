#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
"""Processes come and go under one gpucollect: each is entered, and nothing of them stays in it.

COMING=N changes their number (30). Memory, descriptors and threads of gpucollect are looked at after each
third of them, when none of them lives.
"""
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402

COMING = int(os.environ.get("COMING", "30"))
check = L.Checks()


class Usage:
    def __init__(self, pid):
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            status = dict(line.split(":", 1) for line in f)
        self.memory = int(status["RssAnon"].split()[0])
        self.shared = int(status["RssShmem"].split()[0])
        self.threads = int(status["Threads"])
        self.files = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]

    def __str__(self):
        return f"{self.memory} kB and {self.shared} shared, {self.threads} threads, {len(self.files)} files"


def made_by(parent, fifo):
    os.write(fifo, b"?")
    return int(parent.stdout.readline().split()[1])


def come_and_go(mode):
    path = os.path.join(L.TMP, "o.folded")
    # It starts one child a line that it reads, and says when the child has ended.
    parent = subprocess.Popen(["sh", "-c", f"echo $$; while read line; do {L.PROGRAMS}/gpu_until 2 500 "
                               f"<{L.TMP}/fifo; echo over; done"], env=L.environment(), text=True,
                              bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    pid = int(parent.stdout.readline())
    g = L.Attached([pid], *L.options(mode, "launches"), "-y", "-o", path)
    g.wait_recording()
    children, samples, made = [], [], 0
    for number in range(1, COMING + 1):
        fifo = os.open(f"{L.TMP}/fifo", os.O_RDWR)
        parent.stdin.write("next\n")
        child = int(parent.stdout.readline().split()[1])
        children.append(child)
        L.wait_for(lambda c=child: L.is_entered(c, "simcuda", mode), f"child {number} entered")
        first = made_by(parent, fifo)
        while made_by(parent, fifo) < first + 20:
            time.sleep(0.01)
        os.close(fifo)
        while (line := parent.stdout.readline()) != "over\n":
            if m := re.match(r"total (\d+) 0$", line):
                made += int(m[1])
        if number % (COMING // 3) == 0:
            samples.append(Usage(g.process.pid))
    parent.stdin.close()
    parent.wait(30)
    g.process.wait(60)
    r = L.Run(g.process.returncode, "", g.said(), path)
    early, middle, late = samples[0], samples[1], samples[2]
    print(f"{mode}: {early}; then {middle}; at the end {late}; {r.said[1:2]}")
    check(r.status == 0 and not r.complaints(), f"{mode}: {r.status} {r.complaints()}")
    check({s.pid for s in r.stacks} == set(children), f"{mode}: not all children are in the result")
    check(0 < r.launches() <= made and (L.by_probes(mode) or r.timed() == r.launches()),
          f"{mode}: {r.launches()} of {made}: {r.said}")
    # Probes are let go in the background, a moment after their process has ended.
    check(len(late.files) <= len(early.files) + 4, f"{mode}: files {sorted(late.files)}")
    check(late.threads <= early.threads + 8, f"{mode}: threads {early.threads} -> {late.threads}")
    # A thread that gets a heap of its own under load does so once: what leaks does so in each third.
    grown = min(middle.memory - early.memory, late.memory - middle.memory)
    check(grown <= 512 and late.shared <= early.shared + 1024,
          f"{mode}: memory {early} -> {middle} -> {late}")


os.mkfifo(f"{L.TMP}/fifo")
for how in ("attached", "attached-probes"):
    come_and_go(how)
sys.exit(check.status())
