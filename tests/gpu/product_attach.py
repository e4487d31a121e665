#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Attaches to programs that have long been running, on a real GPU.

product_attach.py counts GPUCOLLECT   PyTorch training, a decode loop with CUDA graphs, an nvcc program:
                                      counts, names and stacks of a window, against CUPTI in a twin
product_attach.py again GPUCOLLECT N  attaches to a training run N times and lets it go again
product_attach.py after GPUCOLLECT N  how fast the same process runs before, while and after it is recorded
Exit status 1 if something that must hold does not.
"""
import os
import re
import select
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CUPTI = os.path.abspath("product_cupti.so")
TURNS = 10
bad = 0


def fail(text):
    global bad
    bad += 1
    print("  WRONG: " + text, flush=True)


class Target:
    """A program with a gate: lines from it, lines to it."""

    def __init__(self, name, argv, **extra):
        self.name, self.lines = name, []
        self.err = open(name + ".err", "w")
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        stderr=self.err, env=dict(os.environ, **extra))
        self.pid = self.process.pid

    def until(self, word):
        for line in self.process.stdout:
            if line.split()[:1] == [word]:
                return line.rstrip("\n")
            self.lines.append(line)
        raise SystemExit(f"  WRONG: {self.name} ended without saying {word}")

    def say(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def end(self):
        self.process.stdin.close()
        self.lines += self.process.stdout.readlines()
        with open(self.name + ".out", "w") as f:
            f.writelines(self.lines)
        return self.process.wait()

    def state(self):
        with open(f"/proc/{self.pid}/status") as f:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        return {"rss KiB": int(status["VmRSS"].split()[0]), "threads": int(status["Threads"]),
                "descriptors": len(os.listdir(f"/proc/{self.pid}/fd"))}


class Recording:
    """gpucollect on a running process, until stop(); says when it records."""

    def __init__(self, gpucollect, pid, name, *options):
        self.name, self.path = name, f"folded/{name}.folded"
        self.started = time.monotonic()
        self.process = subprocess.Popen([gpucollect, "-v", "-y", "-o", self.path, "--launches", "all", *options,
                                         "-p", str(pid)],
                                        stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.said = b""
        while b": recording" not in self.said:
            ready = select.select([self.process.stderr], [], [], 30)[0]
            more = os.read(self.process.stderr.fileno(), 65536) if ready else b""
            if not more:
                print(self.said.decode(errors="replace"))
                raise SystemExit(f"  WRONG: {name}: gpucollect did not begin to record")
            self.said += more
        self.began = time.monotonic() - self.started

    def stop(self):
        t = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        self.said += self.process.stderr.read()
        self.status = self.process.wait()
        self.ended = time.monotonic() - t
        self.said = self.said.decode(errors="replace")
        with open(self.name + ".said", "w") as f:
            f.write(self.said)
        return self

    def number(self, pattern):
        m = re.search(pattern, self.said)
        return float(m[1].replace(",", "")) if m else None


def check(*argv):
    r = subprocess.run(["python3", os.path.join(HERE, "product_check.py"), *argv], text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(r.stdout, end="", flush=True)
    if r.returncode:
        fail(" ".join(argv))


def window(gpucollect, name, argv, metric):
    target = Target(f"{name}-{metric}", argv)
    target.until("ready")
    rec = Recording(gpucollect, target.pid, f"{name}-{metric}", "--metric", metric)
    target.say("go")
    target.until("done")
    rec.stop()
    target.say("leave")
    status = target.end()
    print(f"  {name}, {metric}: recording after {rec.began:.3f} s, stopped and written after "
          f"{rec.ended:.3f} s, gpucollect's status {rec.status}, the target's {status}", flush=True)
    print("".join("    " + line + "\n" for line in rec.said.splitlines()), flush=True)
    if rec.status:
        fail(f"gpucollect ended with status {rec.status}")
    return status, target.lines, rec


def counts(gpucollect):
    programs = {"train": ["python3", "product_gated.py", "train", "60"],
                "decode": ["python3", "product_gated.py", "decode", "400"]}
    for name, argv in programs.items():
        print(f"--- {name}", flush=True)
        twin = Target(f"{name}-cupti", argv, CUDA_INJECTION64_PATH=CUPTI, PRODUCT_WINDOW=CUPTI,
                      PRODUCT_OUT=os.path.abspath(f"{name}.cupti"))
        twin.until("ready")
        twin.say("go")
        twin.until("done")
        twin.say("leave")
        expected = twin.end()
        for metric in ("launches", "gpu"):
            status, lines, rec = window(gpucollect, name, argv, metric)
            if (status, lines) != (expected, twin.lines):
                fail(f"{name}: the program's own output or status differs from its twin's")
        check("cupti", f"{name}.cupti", f"folded/{name}-launches.folded", f"folded/{name}-gpu.folded")
        check("stacks", f"folded/{name}-launches.folded")
    for mode in ("busy", "idle"):
        print(f"--- nvcc program, {mode}", flush=True)
        for metric in ("launches", "gpu"):
            status, lines, rec = window(gpucollect, f"chains-{mode}",
                                        ["./product_chains", mode, "50", "gated"], metric)
            if status != 7:
                fail(f"the program's status is {status}, not 7")
        check("chains", f"chains-{mode}-gpu.out", f"folded/chains-{mode}-launches.folded",
              f"folded/chains-{mode}-gpu.folded", "3")
        check("stacks", f"folded/chains-{mode}-launches.folded")


def again(gpucollect, times):
    steps = 250
    argv = ["python3", "product_gated.py", "again", str(steps)]
    target, twin = Target("again", argv), Target("again-plain", argv)
    before = float(target.until("ready").split()[1])
    twin.until("ready")
    first, plain, worst, began, ended, holds = None, [], [], [], [], []
    for i in range(times):
        twin.say("steps")
        plain.append(float(twin.until("worst").split()[1]))
        target.say("steps")
        rec = Recording(gpucollect, target.pid, "again", "--metric", "launches")
        worst.append(float(target.until("worst").split()[1]))
        rec.stop()
        if rec.status not in (0, 1, 2):
            fail(f"round {i}: gpucollect's status {rec.status}")
            print(rec.said)
        began.append(rec.began)
        ended.append(rec.ended)
        hold = rec.number(r"held for (?:at most )?([\d.,]+) ms")
        holds += [] if hold is None else [hold]
        if i == 1:
            first = target.state()
    last = target.state()
    target.say("speed")
    after = float(target.until("speed").split()[1])
    twin.say("speed")
    other = float(twin.until("speed").split()[1])
    print(f"  {times} times; the process after the second: {first}, at the end: {last}")
    print(f"  relu loop: {before:.3f} us before, {after:.3f} us after ({after / before:.3f} x), the twin {other:.3f}")
    for what, v in (("recording after, s", began), ("stopped and written after, s", ended),
                    ("worst step, ms", worst), ("the twin's worst step, ms", plain),
                    ("longest stop of a thread, ms", holds)):
        if v:
            print(f"  {what}: median {statistics.median(v):.3f}, {min(v):.3f} to {max(v):.3f}")
    print("".join("    " + line + "\n" for line in rec.said.splitlines()))
    status = [t.end() for t in (target, twin)]
    if status != [3, 3] or target.lines != twin.lines:
        fail(f"results differ from the twin's: status {status}")
    else:
        print(f"  {len(target.lines)} lines of losses, the same bit by bit")
    if last["threads"] != first["threads"] or last["descriptors"] != first["descriptors"]:
        fail("threads or descriptors grow")
    if last["rss KiB"] > first["rss KiB"] * 1.01 + 2048:
        fail("memory grows")


def after(gpucollect, pairs):
    """
    Two processes on one CPU take turns, so that whatever the machine does it does to both; one of them is
    attached to, three times. The machine moves between states: a ratio is one of medians, of one process
    after against before, over that of the other.
    """
    ratios, while_recorded = [], []
    for pair in range(pairs):
        argv = ["python3", "product_gated.py", "slice", str(2 + pair % (os.cpu_count() - 2))]
        both = [Target(name, argv) for name in ("after", "after-twin")]
        for t in both:
            t.until("ready")

        def turn(t):
            t.say("slice")
            return float(t.until("slice").split()[1])

        def turns(n):
            took = [[], []]
            for i in range(n):
                for k in (0, 1) if i % 2 else (1, 0):
                    took[k].append(turn(both[k]))
            return [statistics.median(v) for v in took]

        before = turns(TURNS)
        said = []
        for _ in range(3):
            rec = Recording(gpucollect, both[0].pid, "after", "--metric", "launches")
            during = statistics.median(turn(both[0]) for _ in range(5))
            rec.stop()
            now = turns(TURNS)
            ratios.append(now[0] / before[0] / (now[1] / before[1]))
            while_recorded.append(during / now[0])
            said.append(f"{during:.3f} {now[0]:.3f} (twin {now[1]:.3f})")
        print(f"  us an operation, before {before[0]:.3f} (twin {before[1]:.3f}), while and after: " +
              "; ".join(said), flush=True)
        if [t.end() for t in both] != [3, 3]:
            fail("a program ended otherwise than its twin")
    mean, error = statistics.mean(ratios), statistics.stdev(ratios) / len(ratios) ** 0.5
    print(f"  after against before, over the twin's: mean {mean:.4f}, standard error {error:.4f}, median "
          f"{statistics.median(ratios):.4f}, {min(ratios):.3f} to {max(ratios):.3f}, of {len(ratios)}")
    print(f"  while recorded {statistics.median(while_recorded):.3f} x")
    if mean - 2 * error > 1.01:
        fail(f"slower after detach: {mean:.4f}")


if __name__ == "__main__":
    if sys.argv[1] == "counts":
        counts(sys.argv[2])
    elif sys.argv[1] == "after":
        after(sys.argv[2], int(sys.argv[3]))
    else:
        again(sys.argv[2], int(sys.argv[3]))
    print("  ok" if not bad else f"  {bad} wrong")
    sys.exit(bad != 0)
