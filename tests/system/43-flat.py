#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
"""Over a million launches, memory, descriptors and threads of target and gpucollect stay flat.

FLAT_LAUNCHES=N changes the million. Looked at in /proc after a fifth of them and at the end.
"""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402

LAUNCHES = int(os.environ.get("FLAT_LAUNCHES", "1000000"))
check = L.Checks()


class Usage:
    def __init__(self, pid):
        with open(f"/proc/{pid}/status") as f:
            status = dict(line.split(":", 1) for line in f)
        self.own = int(status["RssAnon"].split()[0])
        self.memory = self.own + int(status["RssShmem"].split()[0])
        self.threads = int(status["Threads"])
        self.files = sorted(os.readlink(f"/proc/{pid}/fd/{fd}")
                            for fd in os.listdir(f"/proc/{pid}/fd"))
        with open(f"/proc/{pid}/maps") as f:
            self.mappings = sum(1 for line in f)

    def __str__(self):
        return (f"{self.memory} kB, {self.threads} threads, {len(self.files)} files, "
                f"{self.mappings} mappings")


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(child) for child in f.read().split()]


def compare(what, who, a, b, memory=None):
    """Early and late. `memory`: what it may grow by."""
    print(f"{what}, {who}: {a}; at the end {b}")
    check(b.threads == a.threads, f"{what}, {who}: threads {a.threads} -> {b.threads}")
    check(b.files == a.files, f"{what}, {who}: files {set(b.files) ^ set(a.files)}")
    check(b.mappings <= a.mappings + 2, f"{what}, {who}: mappings {a.mappings} -> {b.mappings}")
    if memory:
        check(b.memory - a.memory <= memory, f"{what}, {who}: memory {a.memory} -> {b.memory} kB")


class Running:
    """gpucollect with a program that answers how far it is (gpu_until)."""

    def __init__(self, mode, *options):
        self.path = os.path.join(L.TMP, "o.folded")
        argv = [L.GPUCOLLECT, *L.options(mode, "launches"), *options, "-y", "-o", self.path, "--",
                f"{L.PROGRAMS}/gpu_until", "4", "0"]
        self.process = subprocess.Popen(argv, env=L.environment(), stdin=subprocess.PIPE, text=True,
                                        bufsize=1, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        check(self.process.stdout.readline().startswith("ready"), f"{mode}: not ready")
        self.target = children(self.process.pid)[0]
        self.span = 0, 0	# launches made before gpucollect saw them: at least and at most

    def made(self):
        self.process.stdin.write("?")
        self.process.stdin.flush()
        return int(self.process.stdout.readline().split()[1])

    def usage(self):
        return Usage(self.target), Usage(self.process.pid)

    def end(self):
        out, err = self.process.communicate(timeout=60)
        return L.Run(self.process.returncode, out, err, self.path)


class RunningAttached:
    """The program first, then gpucollect on it."""

    def __init__(self, mode, *options):
        self.path = os.path.join(L.TMP, "o.folded")
        self.process = subprocess.Popen([f"{L.PROGRAMS}/gpu_until", "4", "0"], env=L.environment(),
                                        stdin=subprocess.PIPE, text=True, bufsize=1,
                                        stdout=subprocess.PIPE)
        check(self.process.stdout.readline().startswith("ready"), f"{mode}: not ready")
        before = self.made()
        self.collector = L.Attached([self.process.pid], *L.options(mode, "launches"), *options, "-y",
                                    "-o", self.path)
        self.collector.wait_recording()
        self.span = before, self.made()

    made = Running.made

    def usage(self):
        return Usage(self.process.pid), Usage(self.collector.process.pid)

    def end(self):
        out, _ = self.process.communicate(timeout=60)
        self.collector.process.wait(60)
        return L.Run(self.collector.process.returncode, out, self.collector.said(), self.path)


def until(mode):
    run, samples = (RunningAttached if mode.startswith("attached") else Running)(mode), []
    while (made := run.made() - run.span[1]) < LAUNCHES:
        if made >= LAUNCHES // 5 and not samples:
            samples.append(run.usage())
        time.sleep(0.05)
    samples.append(run.usage())
    r = run.end()
    made = sum(c.launches for c in L.account(r.out))
    seen = r.launches() + r.lost()
    check(r.status == 0 and made - run.span[1] <= seen <= made - run.span[0],
          f"{mode}: status {r.status}, {r.launches()} launches, {r.lost()} lost, made {made}")
    compare(mode, "target", samples[0][0], samples[1][0], 512)
    compare(mode, "gpucollect", samples[0][1], samples[1][1], 2048)


def coming_and_going():
    """Contexts, streams, modules and the guest's events come and go.

    The virtual device never gives back the memory of a destroyed context's events, so only
    gpucollect's own memory is looked at: the ring, shared, is touched bit by bit.
    """
    path = os.path.join(L.TMP, "o.folded")
    rounds = LAUNCHES // 50
    g = subprocess.Popen([L.GPUCOLLECT, "-y", "-o", path, "--", f"{L.PROGRAMS}/gpu_contexts",
                          str(rounds), "200"], env=L.environment(), stdin=subprocess.DEVNULL,
                         text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not children(g.pid):
        time.sleep(0.01)
    target, samples = children(g.pid)[0], []
    while g.poll() is None:
        try:
            samples.append((Usage(target), Usage(g.pid)))
        except (OSError, KeyError):
            pass	# not yet, or over
        time.sleep(0.01)
    out, err = g.communicate(timeout=60)
    check(g.returncode == 0, f"contexts: status {g.returncode}: {err}")
    samples = samples[:-1]
    check(len(samples) > 10, f"contexts: {len(samples)} samples")
    early, late = samples[len(samples) // 5], samples[-1]
    compare("contexts", "target", early[0], late[0])
    compare("contexts", "gpucollect", early[1], late[1])
    # A kernel that is loaded again has its name kept again, some 100 bytes; a launch costs nothing.
    check(late[1].own - early[1].own <= 1024 + rounds // 4,
          f"contexts, gpucollect: own memory {early[1].own} -> {late[1].own} kB")


until("library")
until("probes")
until("attached")
until("attached-probes")
coming_and_going()
sys.exit(check.status())
