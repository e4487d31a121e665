#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 600
"""What happens to a target in the middle of an attach or a detach: both sides end as they should.

gpucollect stops at a point of its own (make faults); the target is killed, stopped, executes another
program or forks; gpucollect goes on.
"""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402
import slots  # noqa: E402

FAULTY = os.environ["B"] + "-faults/gpucollect"
DRIVER = slots.Driver(os.path.join(L.B, "simcuda/libcuda.so.1"))
ATTACHING = ["tracer-started", "trace-looked", "trace-seized", "trace-prepared", "trace-sent",
             "trace-memfd", "trace-mapped", "trace-home", "library-offered", "library-probed",
             "trace-called", "trace-home@2", "library-entered", "hello", "heartbeat"]
DETACHING = ["captured", "stopping", "libraries-told", "ring-drained", "detached"]
check = L.Checks()


def state(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "gone"


class Case:
    serial = 0

    def __init__(self, action, point):
        Case.serial += 1
        self.what, self.point = f"{action} at {point}", point
        self.path = os.path.join(L.TMP, f"out-{Case.serial}.folded")
        self.stats = os.path.join(L.TMP, f"stats-{Case.serial}")
        self.target = subprocess.Popen(
            [f"{L.PROGRAMS}/gpu_until", "2", "500"], bufsize=1, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, env=L.environment(STANDIN_STATS=self.stats, STANDIN_CRASH="1"))
        self.pid = self.target.pid
        check(self.target.stdout.readline() == f"ready {self.pid}\n", f"{self.what}: not ready")
        os.environ["GPUCOLLECT_FAULT"] = f"{point}:stop"
        self.collector = L.Attached([self.pid], "--metric", "launches", "--no-inlines", "-y", "-o",
                                    self.path, *(["-d", "0.5"] if point in DETACHING else []),
                                    program=FAULTY)
        del os.environ["GPUCOLLECT_FAULT"]

    def reached(self):
        L.wait_for(lambda: state(self.collector.process.pid) in ("T", "Z", "gone"), self.what)
        return check(self.collector.process.poll() is None,
                     f"{self.what}: not reached: {self.collector.said()}")

    def tell(self, byte):
        self.target.stdin.write(byte)
        self.target.stdin.flush()

    def go_on(self):
        self.collector.process.send_signal(signal.SIGCONT)

    def entered(self):
        L.wait_for(lambda: DRIVER.away(self.pid), f"{self.what}: entered")

    def end_collector(self, statuses=(0,)):
        """By SIGINT, unless its time is up; its result is of this target alone."""
        if self.point not in DETACHING and self.collector.process.poll() is None:
            self.collector.process.send_signal(signal.SIGINT)
        self.collector.process.wait(60)
        check(self.collector.process.returncode in statuses,
              f"{self.what}: status {self.collector.process.returncode}: {self.collector.said()}")
        if os.path.exists(self.path):
            check({s.pid for s in L.read(self.path)} == {self.pid}, f"{self.what}: the result")

    def end_target(self):
        """It launched what the device ran, and nothing of ours is left in it."""
        L.wait_for(lambda: DRIVER.away(self.pid) == [], f"{self.what}: slots restored")
        out, _ = self.target.communicate(timeout=60)
        check(self.target.returncode == 0, f"{self.what}: the target ended with {self.target.returncode}")
        stats = L.stats(self.stats)
        made = sum(c.launches for c in L.account(out))
        check(made and stats["launches"] == made and not stats["stale"],
              f"{self.what}: {made} launches, the device: {dict(stats)}")


def killed(case):
    case.target.kill()
    case.go_on()
    # What it had launched by then may have been recorded, or not.
    case.collector.process.wait(60)
    check(case.collector.process.returncode in (0, 1, 2),
          f"{case.what}: status {case.collector.process.returncode}: {case.collector.said()}")
    check(case.target.wait(60) == -signal.SIGKILL, f"{case.what}: not killed by us")


def stopped(case):
    os.kill(case.pid, signal.SIGSTOP)
    case.go_on()
    if case.point in DETACHING:
        case.end_collector()
    L.wait_for(lambda: state(case.pid) == "T", f"{case.what}: stopped")
    os.kill(case.pid, signal.SIGCONT)
    if case.point not in DETACHING:
        case.entered()
        first = made(case)
        L.wait_for(lambda: made(case) > first + 50, f"{case.what}: launches")
        case.end_collector()
    case.end_target()


def made(case):
    case.tell("?")
    return int(case.target.stdout.readline().split()[1])


def forked(case):
    case.tell("F")
    case.go_on()
    case.target.stdout.readline()
    if case.point not in DETACHING:
        case.entered()
        first = made(case)
        L.wait_for(lambda: made(case) > first + 50, f"{case.what}: launches")
    case.end_collector()
    case.end_target()


def executed(case):
    case.tell("x")
    case.go_on()
    check(case.target.stdout.readline() == f"ready {case.pid}\n", f"{case.what}: not ready again")
    if case.point not in DETACHING:
        case.entered()
        first = made(case)
        L.wait_for(lambda: made(case) > first + 50, f"{case.what}: launches")
    case.end_collector((0, 1, 2) if case.point in DETACHING else (0,))
    L.wait_for(lambda: DRIVER.away(case.pid) == [], f"{case.what}: slots restored")
    # Its first image left no account.
    case.target.communicate(timeout=60)
    check(case.target.returncode == 0, f"{case.what}: the target ended with {case.target.returncode}")


def one(action, point):
    c = Case(action.__name__, point)
    try:
        if c.reached():
            action(c)
    except (OSError, ValueError) as e:	# or it was too late
        check(False, f"{c.what}: {e}; the target's status: {c.target.poll()}; {c.collector.said()}")
    for process in c.collector.process, c.target:
        process.kill()
        process.wait()


if not os.path.exists(FAULTY):
    print(f"{FAULTY}: not built; make faults")
    sys.exit(L.SKIP)
wanted = sys.argv[1:]
for action in (killed, stopped, forked, executed):
    if wanted and action.__name__ not in wanted:
        continue
    # One by one: a library does not wait for long for a collector that stands still.
    for point in ATTACHING + DETACHING:
        one(action, point)
    print("done ", action.__name__, flush=True)
left = L.bpf_left()
check(not left, f"BPF programs are left: {left}")
sys.exit(check.status())
