#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 600
"""Functions that are remembered are the right ones, though others have their addresses by now.

tests/programs/python/freed.py makes functions where others were freed, and writes down its own stack at each
launch. The probe that counts frees (3.8 to 3.11) is there while it launches, counts each one in each thread, and is gone after
too many, with the first thread, in children, after the capture, and when gpucollect is killed.
"""
import collections
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402
import python_frames as P  # noqa: E402
import python_launches  # noqa: E402
import pythons  # noqa: E402
import slots  # noqa: E402

PROGRAM = os.path.join(os.environ["TOP"], "tests/programs/python/freed.py")
DRIVER = python_launches.own_driver()
TRUTH = os.path.join(L.TMP, "truth")
FREQUENCY = 499
ROUNDS = 60
COUNTED = r"process %d: its frees of code objects are counted, by a probe on \S+\+0x([0-9a-f]+)"
UNCOUNTED = r"process %d: its frees of code objects are no longer counted, after (\d+): (.*)"
TOO_MANY, GONE, OVER = "there are too many", "the probe is gone", "the capture is over"
check = L.Checks()


class Program:
    """freed.py under an interpreter; it ends with the last command."""

    def __init__(self, what, path, **variables):
        if os.path.exists(TRUTH):
            os.remove(TRUTH)
        self.what = what
        self.process = subprocess.Popen(
            [path, "-ES", PROGRAM, "a"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=L.environment(DRIVER, TRUTH=TRUTH, **variables))
        self.pid = self.process.pid
        check(self.process.stdout.readline() == "ready\n", f"{what}: not ready")
        with open(f"/proc/{self.pid}/maps", encoding="utf-8") as f:
            files = set(re.findall(r" r-xp .* (/\S*/(?:libpython3\.\d+\.so|python3)\S*)\n", f.read()))
        # A program that has all in its library has no code of its own to speak of.
        self.interpreter = max(files, key=os.path.getsize)

    def tell(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def reuse(self, kind="reuse", rounds=ROUNDS):
        """The addresses were used again, or it is no test."""
        places = int(self.tell(kind, rounds).split()[1])
        check(places <= rounds // 2, f"{self.what}: {kind}: {places} addresses of {rounds} functions")

    def changed(self):
        return slots.changed_code(self.pid, self.interpreter)

    def end(self):
        self.process.stdin.close()
        check(self.process.wait(timeout=30) == 0, f"{self.what}: its status is {self.process.returncode}")
        self.process.stdout.close()


class Collector:
    """gpucollect on a program, with all that it says of frees."""

    def __init__(self, program, *options, metric="launches"):
        self.program, self.path = program, os.path.join(L.TMP, "o.folded")
        if os.path.exists(self.path):
            os.remove(self.path)
        self.attached = L.Attached([program.pid], "--metric", metric, "--no-inlines", "-v", "-y", "-o", self.path,
                                   *options)
        self.attached.wait_recording()
        L.skip_without_bpf(self.attached.process.poll(), self.said())

    def said(self):
        return self.attached.said()

    def counted(self):
        """Where the probes are that were placed."""
        return [int(at, 16) for at in re.findall(COUNTED % self.program.pid, self.said())]

    def uncounted(self):
        return [(int(n), why) for n, why in re.findall(UNCOUNTED % self.program.pid, self.said())]

    def wait_counted(self, probes=1):
        """Launches until it counts."""
        end = time.monotonic() + 20
        while len(self.counted()) < probes and time.monotonic() < end:
            self.program.tell("launch")
            time.sleep(0.02)
        return check(len(self.counted()) == probes, f"{self.program.what}: the frees aren't counted: {self.said()}")

    def end(self, number=signal.SIGINT):
        self.attached.process.send_signal(number)
        return self.attached.process.wait(timeout=60)

    def run(self):
        """To the end, which must be a good one."""
        status = self.end()
        check(status == 0, f"{self.program.what}: gpucollect's status is {status}: {self.said()}")
        return L.Run(0, "", self.said(), self.path, own=status)


def compare(what, r, path, version):
    """Each launch with an account has the stack of it; there are others without."""
    fault = python_launches.Faults(check, what)
    how = python_launches.How(python_launches.has_symbols(path), False, version < (3, 11),
                              python_launches.has_handlers(path))
    accounts = list(P.accounts(TRUTH))
    mine = {a.kernel for a in accounts}
    r.stacks = [s for s in r.stacks if s.kernel in mine]
    python_launches.by_kernel(r, accounts, how, fault)
    if r.lost() or r.complaints():
        fault(f"{r.lost()} lost, {r.complaints()}")
    fault.report()
    print(f"{what}: {len(accounts)} launches, {len(fault.list)} faults", flush=True)
    return len(accounts)


def names(path, version, what):
    """Right names with other functions at their addresses, by one thread and by two, and with the probe gone."""
    program = Program(what, path)
    collector = Collector(program)
    check(not program.changed(), f"{what}: probed before it has launched")
    if not collector.wait_counted():
        program.process.kill()
        return
    check(program.changed() == collector.counted(), f"{what}: changed at {program.changed()}, not {collector.counted()}")
    program.reuse()
    program.reuse("once")
    program.reuse("handed")
    check(not collector.uncounted(), f"{what}: {collector.uncounted()}")
    program.tell("flood", 40000)
    check.soon(f"{what}: too many", collector.uncounted)
    check([why for _, why in collector.uncounted()] == [TOO_MANY], f"{what}: {collector.uncounted()}")
    check.soon(f"{what}: the probe has gone", lambda: not program.changed())
    program.reuse()
    check(len(collector.counted()) == 1, f"{what}: it is counted again")
    n = compare(what, collector.run(), path, version)
    check(n == 7 * ROUNDS, f"{what}: {n} accounts")
    program.end()


def newer(path, version, what):
    """The same from 3.12 on, where a version tells, and no probe is needed."""
    program = Program(what, path)
    collector = Collector(program)
    program.reuse()
    program.reuse("once")
    program.reuse("handed")
    check(not program.changed(), f"{what}: changed at {program.changed()}")
    n = compare(what, collector.run(), path, version)
    check(n == 5 * ROUNDS, f"{what}: {n} accounts")
    program.end()


def exact(path, _, what):
    """Every free is counted, in threads that were there before and in others; and all is as before in the end."""
    program = Program(what, path)
    collector = Collector(program)
    collector.wait_counted()
    program.tell("free", 250, 4)
    program.tell("free", 500, 1)
    status = collector.end()
    check(status == 0, f"{what}: status {status}")
    check(collector.uncounted() == [(1500, OVER)], f"{what}: {collector.uncounted()} instead of 1500")
    check(not program.changed(), f"{what}: changed at {program.changed()} after the capture")
    program.end()


def leave(path, version, what):
    """The first thread ends, and the kernel calls the probe no more."""
    program = Program(what, path)
    collector = Collector(program)
    collector.wait_counted()
    program.reuse()
    program.tell("leave")
    program.reuse()
    check.soon(f"{what}: not counted", collector.uncounted)
    check([why for _, why in collector.uncounted()] == [GONE], f"{what}: {collector.uncounted()}")
    program.reuse("handed")
    n = compare(what, collector.run(), path, version)
    check(n == 3 * 2 * ROUNDS, f"{what}: {n} accounts")
    program.end()


def execute(path, version, what):
    """Another image has a probe of its own."""
    program = Program(what, path)
    collector = Collector(program)
    collector.wait_counted()
    program.reuse()
    check(program.tell("exec", "b") == "ready\n", f"{what}: not ready again")
    collector.wait_counted(2)
    program.reuse()
    n = compare(what, collector.run(), path, version)
    check(n == 2 * 2 * ROUNDS, f"{what}: {n} accounts")
    program.end()


def fork(path, _, what):
    """A child's functions are made and freed without a probe; by samples, for it doesn't launch."""
    program = Program(what, path)
    collector = Collector(program, "-F", str(FREQUENCY), metric="cpu")
    collector.wait_counted()
    check(program.tell("fork", ROUNDS) == "done 0\n", f"{what}: the child's status")
    r = collector.run()
    check(collector.uncounted()[0][1] == OVER, f"{what}: {collector.uncounted()}")
    found = collections.Counter()
    for s in r.stacks:
        made = [re.fullmatch(r"made_(\d+) \(<made (\d+)>:[2-6]\)", f) for f in s.frames if f.startswith("made_")]
        if s.pid != program.pid and made:
            check(len(made) == 1 and made[0] and made[0][1] == made[0][2], f"{what}: {P.path(s.frames)}")
            found[made[0] and made[0][1]] += s.weight // (1000000000 // FREQUENCY)
    # None runs longer than 30 ms: who seems to has another's samples. And all but a few are met.
    check(found and max(found.values()) <= 0.030 * FREQUENCY * 1.5, f"{what}: {found.most_common(2)}")
    check(len(found) >= 0.9 * ROUNDS, f"{what}: {len(found)} of {ROUNDS} functions")
    program.end()


def killed(path, _, what):
    """gpucollect is killed, and the program's code is its own again."""
    program = Program(what, path)
    collector = Collector(program)
    collector.wait_counted()
    program.reuse(rounds=20)
    collector.end(signal.SIGKILL)
    check.soon(f"{what}: no probe is left", lambda: not program.changed())
    program.reuse(rounds=20)
    program.end()


def apart(path, _, what):
    """No probe in one that is kept out, nor where no launches are recorded; and what is said of it before."""
    for variables, options in ({"GPUCOLLECT_DISABLE": "1"}, ()), ({}, ("--no-gpu",)):
        program = Program(what, path, **variables)
        collector = Collector(program, *options, metric="cpu")
        for _ in range(20):
            program.tell("launch")
            time.sleep(0.02)
        check(not program.changed(), f"{what}: {variables} {options}: changed at {program.changed()}")
        collector.end()
        check(not collector.counted(), f"{what}: {variables} {options}: {collector.said()}")
        r = subprocess.run([L.GPUCOLLECT, "--dry-run", "--metric", "cpu", *options, "-p", str(program.pid)],
                           capture_output=True, text=True, check=True)
        check("code objects" not in r.stdout, f"{what}: {variables} {options}: {r.stdout}")
        program.end()
    program = Program(what, path)
    r = subprocess.run([L.GPUCOLLECT, "--dry-run", "-p", str(program.pid)], capture_output=True, text=True, check=True)
    told = f"  uprobe, while it launches, on what frees code objects in {program.interpreter}\n"
    check(told in r.stdout, f"{what}: it says {r.stdout}")
    program.end()


P.skip_without_product()
ALL = (names, exact, leave, execute, fork, killed, apart)
wanted = [c for c in ALL if c.__name__ in sys.argv[1:]]


def run(case, interpreter, version):
    before = check.failures
    case(interpreter, version, f"{pythons.name(interpreter, version)} {case.__name__}")
    print("ok   " if check.failures == before else "WRONG", pythons.name(interpreter, version), case.__doc__,
          flush=True)


for turn, (interpreter, its_version) in enumerate(pythons.need((3, 8), (3, 12))):
    for one in wanted or [names, exact, *pythons.share(ALL[2:], turn)]:
        run(one, interpreter, its_version)
for interpreter, its_version in pythons.need((3, 12), (4, 0)) if not wanted else ():
    run(newer, interpreter, its_version)
sys.exit(check.status())
