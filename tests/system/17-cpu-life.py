#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 200
"""CPU samples while processes and threads come and go, and while gpucollect itself is stopped."""
import fcntl
import os
import re
import signal
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import folded
from folded import holds

check = folded.Checks()
LIFE = os.path.join(folded.PROGRAMS, "cpu_life")
STEADY = os.path.join(folded.CASES, "steady")
FREQUENCY = 997
FEW = 50
F_SETPIPE_SZ = 1031	# fcntl(2); the module names it from Python 3.10 on


class Started:
    """gpucollect in the background."""

    def __init__(self, *args, name="life.folded"):
        self.path = os.path.join(folded.TMP, name)
        if os.path.exists(self.path):
            os.remove(self.path)
        argv = folded.command(frequency=FREQUENCY, path=self.path) + list(args)
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, errors="replace")

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        out, err = self.process.communicate(timeout=60)
        folded.skip_without_bpf(self.process.returncode, err)
        return folded.Recording(self.process.returncode, out, err, self.path, FREQUENCY)


def steady():
    """A target of our own that works and sleeps by turns, running for a moment already."""
    p = subprocess.Popen([STEADY], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    time.sleep(0.3)
    return p


def end(target):
    """Ends it; what it printed: steady names the signal that ended it."""
    if target.poll() is None:
        target.send_signal(signal.SIGTERM)
    return target.communicate(timeout=20)[0]


def working(pid):
    """Waits until gpucollect's samples of a process must have begun: it has its links then."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            links = []
        if any("perf_event" in link for link in links):
            time.sleep(1)
            return
        time.sleep(0.05)


def waiting_bytes(pipe):
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, struct.pack("i", 0)))[0]


def samples(rec, *names):
    return rec.total(lambda s: holds(s, *names))


# --- short lives ------------------------------------------------------------------------------


def moments():
    for how, first in (("forks", "main"), ("threads", "thread_main")):
        rec = folded.record([LIFE, how, "200"], frequency=FREQUENCY)
        check(rec.status == 0, f"{how}: status 0", rec.err)
        spent = int(rec.out.split()[1]) / 1e9
        n = rec.total(lambda s: "moment" in s.user)
        whole = rec.total(lambda s: holds(s, first, "moment") and not folded.is_cut(s))
        check(0.8 * n <= spent * FREQUENCY <= 1.25 * n,
              f"200 {how}: {n} samples for {spent:.2f} s of CPU time in moment()")
        check(whole >= 0.999 * n, f"200 {how}: {whole} of {n} are whole")
        pids = {s.pid for s in rec.stacks if "moment" in s.user}
        if how == "forks":
            check(len(pids) >= 190, f"200 forks: samples of {len(pids)} of them")
        else:
            check(len(pids) == 1, f"200 threads: of one process: {pids}")
        lost = re.findall(r"^gpucollect: .*\blost\b.*$", rec.err, re.M)
        check(not lost, f"200 {how}: nothing lost", lost)


def leader_gone():
    """L-01: the first thread ends after a second, the others go on for two."""
    rec = folded.record(["sh", "-c", '"$@"; times', "sh", os.path.join(folded.CASES, "leader_exit")],
                        secs=3, frequency=FREQUENCY)
    minutes, seconds = re.findall(r"(\d+)m([\d.]+)s", rec.out)[2]
    spent = int(minutes) * 60 + float(seconds)
    n = rec.total(lambda s: "worker_hot" in s.user)
    whole = rec.total(lambda s: holds(s, "worker", "worker_hot") and not folded.is_cut(s))
    check(0.8 * n <= spent * FREQUENCY <= 1.25 * n,
          f"first thread gone: {n} samples for {spent:.2f} s of CPU time")
    check(whole >= 0.99 * n, f"first thread gone: {whole} of {n} are whole")
    check(rec.status == 0, "first thread gone: status 0", rec.err)


def killed():
    """The target is killed in the middle; as a command, and attached to."""
    run = Started("--", STEADY)
    working(run.process.pid)
    pids = subprocess.run(["pgrep", "-P", str(run.process.pid)], capture_output=True, text=True)
    child = int(pids.stdout.split()[0])
    os.kill(child, signal.SIGKILL)
    rec = run.end()
    check(rec.status == 128 + signal.SIGKILL, f"command killed: its status: {rec.status}", rec.err)
    check(samples(rec, "main", "steady_work") >= FEW, "command killed: the profile is written")

    target = steady()
    run = Started("-p", str(target.pid))
    working(run.process.pid)
    target.kill()
    target.communicate()
    rec = run.end()
    check(rec.status in (0, 1), f"attached, target killed: written: {rec.status}", rec.err)
    check(samples(rec, "main", "steady_work") >= FEW, "attached, target killed: the samples are there")


# --- stopping gpucollect ----------------------------------------------------------------------


def attached():
    """L-04: -p, ended in every way; the target notices nothing."""
    for name, signals, status in (("one INT", [signal.SIGINT], 0), ("TERM", [signal.SIGTERM], 0),
                                  ("HUP", [signal.SIGHUP], 0), ("KILL", [signal.SIGKILL], -9)):
        target = steady()
        run = Started("-p", str(target.pid))
        working(run.process.pid)
        for number in signals:
            run.signal(number)
        rec = run.end()
        check(rec.status == status, f"-p, {name}: status {status}", f"{rec.status}: {rec.err}")
        if status == 0:
            whole = samples(rec, "main", "steady_work")
            n = rec.total(lambda s: "steady_work" in s.user)
            check(whole >= FEW and whole >= 0.99 * n, f"-p, {name}: {whole} of {n} stacks are whole")
            check({s.pid for s in rec.stacks} == {target.pid}, f"-p, {name}: of the target alone")
        with open(f"/proc/{target.pid}/stat", encoding="utf-8") as f:
            state = f.read().rsplit(")", 1)[1].split()[0]
        check(target.poll() is None and state in "RS", f"-p, {name}: the target goes on")
        said = end(target)
        check(said == f"steady: ended by signal {signal.SIGTERM}\n",
              f"-p, {name}: the target got no signal but the test's", said)


def aborted():
    """Two signals: the second ends it while the result is on its way to a reader who does not read."""
    target = subprocess.Popen([os.path.join(folded.CASES, "deep"), "900"], stdin=subprocess.DEVNULL,
                              env=dict(os.environ, SECS="30"))
    argv = folded.command("-p", str(target.pid), "-o", "-", frequency=FREQUENCY)
    run = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    fcntl.fcntl(run.stdout, F_SETPIPE_SZ, 4096)	# one such stack is longer
    working(run.pid)
    run.send_signal(signal.SIGINT)
    deadline = time.monotonic() + 20
    while not waiting_bytes(run.stdout) and time.monotonic() < deadline:
        time.sleep(0.05)
    check(run.poll() is None, "two signals: the first waits for the reader")
    run.send_signal(signal.SIGINT)
    # Only the second can end it: nobody reads before that.
    try:
        status = run.wait(timeout=20)
    except subprocess.TimeoutExpired:
        run.kill()
        status = "none"
    _, err = run.communicate()
    check(status == 130, f"two signals: status 130: {status}", err)
    check(target.poll() is None, "two signals: the target goes on")
    target.kill()
    target.wait()


def commands():
    """With a command: the first INT is its own, the second ends the capture; TERM does at once."""
    run = Started("--", STEADY)
    working(run.process.pid)
    run.signal(signal.SIGINT)
    time.sleep(0.5)
    check(run.process.poll() is None, "command, one INT: goes on")
    run.signal(signal.SIGINT)
    deadline = time.monotonic() + 20
    while not os.path.exists(run.path) and time.monotonic() < deadline:
        time.sleep(0.05)
    check(os.path.exists(run.path), "command, two INT: written while the command runs")
    child = int(subprocess.run(["pgrep", "-P", str(run.process.pid)], capture_output=True,
                               text=True).stdout.split()[0])
    os.kill(child, signal.SIGTERM)
    rec = run.end()
    check(rec.status == 0, f"command, two INT: the command's status: {rec.status}", rec.err)
    check(f"ended by signal {signal.SIGTERM}" in rec.out, "command, two INT: it ended by itself",
          rec.out)
    check(samples(rec, "main", "steady_work") >= FEW, "command, two INT: the samples are there")


def durations():
    target = steady()
    rec = Started("-p", str(target.pid), "-d", "500ms").end()
    n = rec.total()
    # Half a second of at most one CPU; how much the machine gives it is not ours to say.
    check(rec.status == 0 and 0 < n <= 0.6 * FREQUENCY, f"-d 500ms: status 0, {n} samples", rec.err)
    said = re.search(r"captured ([\d.]+) (m?s)", rec.err)
    check(said and 0.5 <= float(said[1]) / (1000 if said[2] == "ms" else 1) < 5,
          "-d 500ms: that long", rec.err)
    rec = Started("-a", "-d", "2").end()
    n, whole = (rec.total(lambda s: s.pid == target.pid and f(s)) for f in
                (lambda s: "steady_work" in s.user, lambda s: holds(s, "main", "steady_work")))
    check(rec.status == 0 and n >= FEW and whole >= 0.99 * n,
          f"-a: {whole} of {n} stacks of a process that ran before are whole", rec.err)
    check(len({s.pid for s in rec.stacks}) > 1, "-a: other processes, too")
    check(os.getpid() not in {0} and not rec.total(lambda s: s.comm.startswith("swapper")),
          "-a: idle is not work")
    end(target)


def main():
    for case in (moments, leader_gone, killed, attached, aborted, commands, durations):
        case()
    return check.status()


if __name__ == "__main__":
    sys.exit(main())
