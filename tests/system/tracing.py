# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""For the tests of borrowed threads: the programs, and what their lines say."""
import os
import re
import subprocess
import sys
import time

TOP = os.environ.get("TOP", ".")
B = os.environ.get("B", "build")
FAULTS = B + "-faults"
TMP = os.environ.get("TEST_TMP", "/tmp")
LIBRARY = os.path.join(B, "programs/libtrace.so")
TOOL = os.path.join(B, "programs/trace_tool")
FAULT_TOOL = os.path.join(FAULTS, "programs/trace_tool")

LINE = re.compile(r"err=(-?\d+) placed=(\d) present=(\d) stage=(\d) status=(-?\d+) "
                  r"held_us=(\d+) holds=(\d+) why=(.*)")


def program(name):
    return os.path.join(B, "programs", name)


class Checks:
    """Counts what is wrong; a test ends by sys.exit(checks.end())."""

    def __init__(self):
        self.wrong = 0
        self.right = 0

    def __call__(self, right, *said):
        self.right += bool(right)
        if not right:
            self.wrong += 1
            print("wrong:", *said, flush=True)
        return bool(right)

    def end(self):
        print(f"{self.right} right, {self.wrong} wrong")
        return 1 if self.wrong or not self.right else 0


class Attach:
    """What a run of the tool said: one of these for each time."""

    def __init__(self, line):
        m = LINE.fullmatch(line)
        if not m:
            raise ValueError(f"not a line of the tool: {line!r}")
        (self.err, self.placed, self.present, self.stage, self.status, self.held_us,
         self.holds) = map(int, m.groups()[:7])
        self.why = m.group(8)

    def __repr__(self):
        return f"err={self.err} stage={self.stage} status={self.status} {self.why!r}"


def attach(pid, times=1, library=LIBRARY, tool=TOOL, env=None, end=120):
    r = subprocess.run([tool, library, str(pid), str(times)], stdin=subprocess.DEVNULL,
                       capture_output=True, text=True, timeout=end,
                       env={**os.environ, **(env or {})})
    found = [Attach(line) for line in r.stdout.splitlines()]
    if r.stderr or len(found) != times:
        print(f"the tool: status {r.returncode}, {r.stdout!r} {r.stderr!r}", flush=True)
    return found


def wait_until(condition, seconds=60):
    """Its first true value; None: it had none until the end."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value or None
        time.sleep(0.01)


def start(*command, **more):
    """A program that says "ready PID" first; its lines are read by the caller."""
    p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more)
    line = p.stdout.readline()
    if not line.startswith("ready"):
        p.kill()
        p.wait()
        raise RuntimeError(f"{command}: {line!r}")
    return p


def status(pid, field):
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as f:
        for line in f:
            if line.startswith(field + ":"):
                return line.split(":", 1)[1].strip()
    return None


def sleeps_in(pid, number=None):
    """Whether its first thread sleeps in a system call (that one)."""
    try:
        with open(f"/proc/{pid}/syscall", encoding="ascii") as f:
            word = f.read().split()[0]
    except (OSError, IndexError):
        return False
    return word not in ("running", "-1") and (number is None or int(word) == number)


def need_root():
    if os.geteuid():
        print("needs root")
        sys.exit(77)
