#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 200
"""A launching command under gpucollect keeps its output and its status, and signals mean what --help says.

The first Ctrl-C is the command's own, the second stops the capture, a third aborts; SIGTERM stops at
once. The command goes on in each case, untouched, and gpucollect waits for it.
"""
import hashlib
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402
import slots  # noqa: E402

check = L.Checks()
PATH = os.path.join(L.TMP, "o.folded")
ABORTED = 130
GOES_ON = "the command goes on; waiting for its end"


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(child) for child in f.read().split()]


class Running(L.Counted):
    """gpucollect on gpu_until, in a session of its own, as a terminal's foreground group."""

    def __init__(self, *options, metric="launches", mode="library", pace="1000", fresh=True):
        if fresh and os.path.exists(PATH):
            os.unlink(PATH)
        argv = [L.GPUCOLLECT, *L.options(mode, metric), *options, "-o", PATH, "--",
                f"{L.PROGRAMS}/gpu_until", "2", pace]
        self.process = subprocess.Popen(argv, env=L.environment(), stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        start_new_session=True)
        check(self.process.stdout.readline().startswith("ready"), "gpu_until: not ready")
        self.target = children(self.process.pid)[0]

    def until(self, words):
        """It has said that; what came before is read."""
        while words not in (line := self.process.stderr.readline()) and line:
            pass

    def end(self):
        out, err = self.process.communicate(timeout=60)
        return L.Run(self.process.returncode, out, err, PATH)

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])


def total(r):
    return int(re.search(r"^total (\d+) 0$", r.out, re.M)[1])


def output():
    """What the command reads and writes passes through, byte for byte."""
    script = ("import hashlib, os, sys; data = sys.stdin.buffer.read(); os.write(2, b'to stderr\\n'); "
              "sys.stdout.buffer.write(data[::-1]); sys.stdout.flush(); "
              f"os.execv({L.PROGRAMS + '/gpu_chains'!r}, ['gpu_chains', '20'])")
    data = os.urandom(1 << 20)
    r = subprocess.run([L.GPUCOLLECT, "--no-inlines", "-y", "-o", PATH, "--", sys.executable, "-c", script],
                       env=L.environment(), input=data, capture_output=True, timeout=60)
    check(r.returncode == 0, f"output: status {r.returncode}")
    check(hashlib.sha256(r.stdout[:len(data)]).digest() == hashlib.sha256(data[::-1]).digest(),
          "output: stdout is not the command's")
    rest = r.stdout[len(data):].decode()
    made = L.Run(0, rest, r.stderr.decode(), PATH)
    check(made.err == "to stderr\n", f"output: stderr: {made.err}")
    L.compare(check, "output", made, "gpu")


def statuses():
    for script, status in (("exit 7", 7), ("exit 137", 137), ("kill -TERM $$", 143),
                           ("kill -SEGV $$", 139), ("exit 64", 64), ("exit 77", 77), ("exit 2", 2)):
        r = L.run(["sh", "-c", f"{L.PROGRAMS}/gpu_chains 3; ulimit -c 0; {script}"])
        check(r.status == status and r.launches() == 36 and r.written and not r.complaints(),
              f"{script}: status {r.status}, {r.launches()} launches, {r.complaints()}")


def first_is_the_commands():
    """Both get the terminal's signal; the server ends by itself, and all of it is captured."""
    server = os.path.join(os.environ["TOP"], "tests/cases/cli/server.py")
    argv = [L.GPUCOLLECT, "--metric", "cpu", "-F", "99", "-y", "-o", PATH, "--", sys.executable, server]
    g = subprocess.Popen(argv, env=L.environment(), stdin=subprocess.DEVNULL, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    check(g.stdout.readline() == "serving\n", "server: not serving")
    os.killpg(g.pid, signal.SIGINT)
    out, err = g.communicate(timeout=60)
    check(g.returncode == 0 and out == "stopped after 1 interrupt(s)\n",
          f"server: status {g.returncode}, {out}")
    # It serves for one more second after the signal, with whatever share of a CPU it gets.
    r = L.Run(g.returncode, out, err, PATH)
    check(r.total() > 0.1e9, f"server: {r.total()} ns of CPU time")
    # A launching one that ignores it goes on being captured; one that dies of it is reported so.
    run = Running()
    os.kill(run.process.pid, signal.SIGINT)
    before = run.made()
    run.at_least(before + 200)
    r = run.end()
    check(r.status == 0 and r.total() == total(r), f"one SIGINT: {r.status}, {r.total()} of {total(r)}")
    run = Running()
    run.at_least(100)
    os.killpg(run.process.pid, signal.SIGINT)
    r = run.end()
    check(r.status == 130 and r.total() >= 100, f"dies of SIGINT: {r.status}, {r.total()} launches")


def stops(what, signals, *options, mode="library"):
    """The capture stops, the command goes on as if it had never been watched."""
    run = Running(*options, mode=mode)
    driver = slots.Driver(os.path.join(os.environ["B"], "simcuda/libcuda.so.1"))
    run.at_least(200)
    if mode == "library" and signals:
        check(driver.away(run.target), f"{what}: no slot was swapped")
    for number in signals:
        os.kill(run.process.pid, number)
        time.sleep(0.1)
    check.soon(f"{what}: it writes", lambda: os.path.exists(PATH))
    written = run.made()
    check.soon(f"{what}: slots restored", lambda: driver.away(run.target) == [])
    check.soon(f"{what}: code as in the file", lambda: not slots.changed_code(run.target, driver.path))
    check(run.process.poll() is None, f"{what}: gpucollect did not wait for the command")
    before = run.cpu()
    run.at_least(written + 500)
    check(run.cpu() - before <= 5, f"{what}: waiting costs {run.cpu() - before} ticks of CPU time")
    r = run.end()
    check(r.status == 0 and not r.complaints(), f"{what}: {r.status} {r.said}")
    check([s for s in r.said if "command" in s] == [GOES_ON], f"{what}: it says {r.said}")
    check(100 <= r.total() == r.launches() <= written, f"{what}: {r.total()} launches of {written}")
    check(total(r) >= written + 500, f"{what}: the command made {total(r)}")


def stopping():
    stops("two SIGINT", (signal.SIGINT, signal.SIGINT))
    stops("SIGTERM", (signal.SIGTERM,))
    stops("-d", (), "-d", "0.7")
    stops("SIGTERM, probes", (signal.SIGTERM,), mode="probes")


def after_the_time():
    """When -d is over Ctrl-C is the command's alone, however often, and so is the status."""
    run = Running("-q", "-d", "0.7")
    os.kill(run.process.pid, signal.SIGINT)
    check.soon("after -d: it writes", lambda: os.path.exists(PATH))
    run.at_least(run.made() + 100)	# long enough for the rest
    for _ in range(3):
        os.kill(run.process.pid, signal.SIGINT)
        run.at_least(run.made() + 100)
        check(run.process.poll() is None, f"after -d: a SIGINT ends it: {run.process.returncode}")
    r = run.end()
    check(r.status == 0 and r.total() >= 100 and not r.said, f"after -d: {r.status} {r.total()} {r.said}")
    # Whoever presses it again is told what is waited for, and how to end that.
    run = Running("-d", "0.5")
    run.until(GOES_ON)
    for _ in range(4):
        os.kill(run.process.pid, signal.SIGINT)
        time.sleep(0.3)
    r = run.end()
    told = (f"waiting for the end of the command, process {run.target}, whose own Ctrl-C is; "
            f"kill {run.process.pid} ends the waiting")
    check(r.status == 0 and r.said == [told], f"after -d: told {r.said}")
    # One that dies of it is reported so, and what was written stays.
    run = Running("-d", "0.5")
    check.soon("dies after -d: it writes", lambda: os.path.exists(PATH))
    run.at_least(run.made() + 100)
    os.killpg(run.process.pid, signal.SIGINT)
    r = run.end()
    check(r.status == 128 + signal.SIGINT and r.said.count(GOES_ON) == 1 and r.total() >= 100,
          f"dies after -d: {r.status} {r.total()} {r.said}")
    # No way out but SIGTERM would be a trap if that were none.
    run = Running("-d", "0.5")
    check.soon("left after -d: it writes", lambda: os.path.exists(PATH))
    run.at_least(run.made() + 100)
    os.kill(run.process.pid, signal.SIGTERM)
    check.soon("left after -d: it ends", lambda: run.process.poll() is not None)
    check(run.process.returncode == ABORTED, f"left after -d: status {run.process.returncode}")
    run.process.stdin.close()
    check("total" in run.process.stdout.read(), "left after -d: the command did not end as ever")


def left(what, run, last):
    """It ends at once and says so last; the command goes on."""
    check.soon(f"{what}: it ends", lambda: run.process.poll() is not None)
    check(run.process.returncode == ABORTED, f"{what}: status {run.process.returncode}")
    before = run.made()
    run.at_least(before + 100)
    run.process.stdin.close()
    check("total" in run.process.stdout.read(), f"{what}: the command did not end as ever")
    said = run.process.stderr.read().splitlines()
    check(said[-1] == f"gpucollect: {last}" and sum(" goes on" in s for s in said) <= 2, f"{what}: it says {said}")


def aborting():
    """Stopped, and once more while it waits; a third Ctrl-C is the second that is for us."""
    for stop, more in ((signal.SIGTERM, ()), (signal.SIGINT, (signal.SIGINT,))):
        run = Running()
        run.at_least(100)
        for number in (stop, *more):
            os.kill(run.process.pid, number)
            time.sleep(0.3)
        check.soon("abort: it writes", lambda: os.path.exists(PATH))
        os.kill(run.process.pid, stop)
        left(f"abort, {stop!r}", run, f"the command, process {run.target}, goes on; its end is not waited for any "
             "longer")
        check(L.read(PATH), "abort: nothing is left of what was written")
    # Before the result is written: as long as a named pipe has no reader.
    os.unlink(PATH)
    os.mkfifo(PATH)
    try:
        run = Running(fresh=False)
        run.at_least(100)
        os.kill(run.process.pid, signal.SIGTERM)
        run.until("waiting for a reader")
        os.kill(run.process.pid, signal.SIGTERM)
        left("given up", run, f"warning: the result is given up, and the command, process {run.target}, goes on")
    finally:
        os.unlink(PATH)


def in_between():
    """SIGUSR1 writes what there is; the end result is whole all the same."""
    run = Running("-y")
    run.at_least(200)
    made = 0
    for n in range(3):
        if os.path.exists(PATH):
            os.unlink(PATH)
        os.kill(run.process.pid, signal.SIGUSR1)
        check.soon(f"SIGUSR1, {n}: it writes", lambda: os.path.exists(PATH))
        some = sum(s.weight for s in L.read(PATH))
        check(made < some <= run.made(), f"SIGUSR1, {n}: {some} launches, before {made}")
        made = some
        run.at_least(made + 200)
    r = run.end()
    L.compare(check, "after SIGUSR1", r, "launches")
    check(r.status == 0 and r.launches() == total(r), f"SIGUSR1: {r.status}, {r.launches()}")


def flooded():
    """Ctrl-C under as many launches as there can be."""
    g = subprocess.Popen([L.GPUCOLLECT, "--metric", "launches", "-y", "-o", PATH, "--",
                          f"{L.CASES}/flood", "100000000", "500", "50"], env=L.environment(), text=True,
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         start_new_session=True)
    check.soon("flood: it runs", lambda: children(g.pid) and
               len(os.listdir(f"/proc/{children(g.pid)[0]}/task")) > 50)
    time.sleep(1)
    os.killpg(g.pid, signal.SIGINT)
    out, err = g.communicate(timeout=60)
    r = L.Run(g.returncode, out, err, PATH)
    check(r.status == 0 and "0 failures" in r.out, f"flood: {r.status} {r.out}")
    check(r.total() == r.launches() > 1000, f"flood: {r.total()} launches, {r.said}")


def attached():
    """-p: the first signal stops and writes, the target notices nothing."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        target = L.Launching(check, 1000)
        g = subprocess.Popen([L.GPUCOLLECT, "--metric", "launches", "-y", "-o", PATH, "-p",
                              target.pid], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while "recording" not in (line := g.stderr.readline()) and line:
            pass
        time.sleep(0.3)		# for some launches
        g.send_signal(number)
        r = L.Run(g.wait(30), "", g.stderr.read(), PATH)
        check(r.status == 0 and r.total() == r.launches() >= 50, f"-p, {number!r}: {r.status} {r.said}")
        target.end(f"-p, {number!r}")


wanted = sys.argv[1:]
for part in (output, statuses, first_is_the_commands, stopping, after_the_time,
             aborting, in_between, flooded, attached):
    if not wanted or part.__name__ in wanted:
        done = check.failures
        part()
        print("ok   " if check.failures == done else "WRONG", part.__name__, flush=True)
sys.exit(check.status())
