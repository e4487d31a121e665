#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Whatever becomes of the collector, the program goes on, and its slots hold the driver's values again.

timeout: 300
The slots are read from outside, through /proc/PID/mem. The program runs for some 9 s; a collector is
ended, or falls silent, at every stage of its life.
"""
import itertools
import os
import re
import signal
import struct
import subprocess
import sys
import threading
import time

import timing
from timing import PASSIVE, REASON_STOPPED, RUNNING, Run, case, program, wait_for

checks = timing.Checks()
timing.collector()
SYMBOLS = ["cuLaunchKernel", "cuLaunchKernelEx_ptsz", "cuGraphLaunch", "cuLaunchCooperativeKernel",
           "cuCtxDestroy_v2", "cuStreamDestroy_v2", "cuModuleUnload", "cuStreamSynchronize",
           "cuDevicePrimaryCtxReset_v2"]


def symbols(kind):
    text = subprocess.run(["nm", "-D", "--defined-only", os.path.join(timing.B, kind, "libcuda.so.1")],
                          capture_output=True, text=True, check=True).stdout
    return {w[2]: int(w[0], 16) for w in map(str.split, text.splitlines())}


class Target:
    """A running process, seen from outside."""

    tables = {}

    def __init__(self, pid, kind="simcuda"):
        self.pid = pid
        if kind not in Target.tables:
            Target.tables[kind] = symbols(kind)
        self.symbols = Target.tables[kind]
        self.places = {}    # where the slots are

    def maps(self):
        with open(f"/proc/{self.pid}/maps", encoding="utf-8") as f:
            for line in f:
                w = line.split()
                start, end = (int(x, 16) for x in w[0].split("-"))
                yield start, end, w[1], w[5] if len(w) > 5 else ""

    def alive(self):
        try:
            with open(f"/proc/{self.pid}/stat", encoding="utf-8") as f:
                return f.read().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False

    def address(self, mem, base, symbol):
        mem.seek(base + self.symbols[symbol])
        code = mem.read(64)
        at = re.search(rb"\xff[\x15\x25]", code).start()
        return base + self.symbols[symbol] + at + 6 + struct.unpack_from("<i", code, at + 2)[0]

    def slots(self):
        """symbol -> "driver", "guest" or another file's name."""
        maps = list(self.maps())
        base = min(m[0] for m in maps if m[3].endswith("/libcuda.so.1"))
        owner = {}
        with open(f"/proc/{self.pid}/mem", "rb", buffering=0) as mem:
            for symbol in SYMBOLS:
                if symbol not in self.places:
                    self.places[symbol] = self.address(mem, base, symbol)
                mem.seek(self.places[symbol])
                value = struct.unpack("<Q", mem.read(8))[0]
                file = next((m[3] for m in maps if m[0] <= value < m[1] and "x" in m[2]), "?")
                owner[symbol] = {"libcuda.so.1": "driver", "libgpucollect_timing.so": "guest"}.get(
                    os.path.basename(file), file)
        return owner

    def threads(self):
        names = []
        for tid in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{self.pid}/task/{tid}/comm", encoding="utf-8") as f:
                names.append(f.read().strip())
        return names

    def shared_kib(self):
        with open(f"/proc/{self.pid}/status", encoding="utf-8") as f:
            return int(re.search(r"RssShmem:\s+(\d+)", f.read()).group(1))

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))


serial = itertools.count()


def start(options, command, kind="simcuda", **variables):
    """The collector in the background: (process, target, what the target wrote)."""
    base = os.path.join(timing.TMP, f"life{next(serial)}")
    with open(base + ".said", "w", encoding="utf-8") as said:
        process = subprocess.Popen(
            [timing.collector(), "-l", timing.LIBRARY, "-o", base + ".out", "-L", base + ".pid",
             *map(str, options), "--", *map(str, command)], stdin=subprocess.DEVNULL, stdout=said,
            stderr=subprocess.STDOUT, env=timing.environment(kind, **variables), cwd=timing.TMP)
    wait_for(lambda: open(base + ".pid", encoding="utf-8").read().strip(), 10)
    with open(base + ".pid", encoding="utf-8") as f:
        return process, Target(int(f.read()), kind), base


def said(base):
    with open(base + ".said", encoding="utf-8") as f:
        return f.read()


def all_driver(target):
    return set(target.slots().values()) == {"driver"}


def restored(where, options, kind="simcuda", signals=None, limit=8):
    """Ends a collector as the options say; the target must be rid of us, and end well."""
    process, target, base = start(options, program("gpu_hazards", "steady", 1700, 5), kind)
    armed = wait_for(lambda: set(target.slots().values()) == {"guest"}, 5)
    if signals:
        signals(process, target)
    process.wait(timeout=60)
    checks(armed, where, "armed")
    checks.equal(process.returncode, -signal.SIGKILL, where, "the collector's own end")
    if checks(wait_for(lambda: all_driver(target), limit), where, "restored",
              target.slots() if target.alive() else "(target is gone)"):
        checks(wait_for(lambda: target.threads() == ["gpu_hazards"], 2), where, "threads",
               target.threads())
    wait_for(lambda: not target.alive(), 30)
    checks(not target.alive(), where, "ends")
    checks.equal(said(base), "accepted 1700, wrong 0\n", where, "output")
    print(where, "done", flush=True)


def collectors_that_die():
    jobs = [("start", ["-k", "start"], "simcuda"), ("found", ["-k", "found"], "simcuda"),
            ("first", ["-k", "first"], "simcuda"), ("300", ["-k", "300"], "simcuda"),
            ("relro", ["-k", "100"], "simcuda-relro"), ("old", ["-k", "100"], "simcuda-old")]
    threads = [threading.Thread(target=restored, args=job[:2], kwargs={"kind": job[2]})
               for job in jobs]

    def kill_mute(process, _):
        time.sleep(3.5)
        process.kill()

    threads.append(threading.Thread(target=restored, args=("mute", ["-m", 500]),
                                    kwargs={"signals": kill_mute}))
    # A few at a time: what is to be seen of each lasts some seconds, and there may be two processors.
    for i in range(0, len(threads), 3):
        for t in threads[i:i + 3]:
            t.start()
        for t in threads[i:i + 3]:
            t.join()


def never_came():
    """No collector at all: the library waits 5 s for one."""
    with subprocess.Popen(program("gpu_hazards", "steady", 1700, 5), stdout=subprocess.PIPE,
                          env=timing.environment("simcuda", CUDA_INJECTION64_PATH=timing.LIBRARY),
                          text=True) as process:
        target = Target(process.pid)
        checks(wait_for(lambda: "guest" in target.slots().values(), 3), "never: armed")
        checks(wait_for(lambda: all_driver(target), 8), "never: restored")
        checks.equal(process.communicate(timeout=30)[0], "accepted 1700, wrong 0\n", "never: output")
    # and in one that never launches (cuInit only, then it sleeps)
    code = "import ctypes, time; ctypes.CDLL('libcuda.so.1').cuInit(0); time.sleep(9)"
    with subprocess.Popen([sys.executable, "-c", code],
                          env=timing.environment("simcuda", CUDA_INJECTION64_PATH=timing.LIBRARY)
                          ) as process:
        target = Target(process.pid)
        checks(wait_for(lambda: "guest" in target.slots().values(), 3), "no launch: armed")
        checks(wait_for(lambda: all_driver(target), 8), "no launch: restored")
        checks.equal(process.wait(timeout=30), 0, "no launch: status")


def stopped(kind, options=(), holds="driver"):
    where = f"stopped {kind} {options}"
    process, target, base = start(["-S", 700, *options], program("gpu_hazards", "steady", 800, 5), kind)
    checks(wait_for(lambda: "guest" in target.slots().values(), 3), where, "armed")
    # It has its name only once it runs, which on a loaded machine is later.
    checks(wait_for(lambda: "gpucollect" in target.threads(), 3), where, "thread there")
    before = target.descriptors()
    checks(wait_for(lambda: "gpucollect" not in target.threads(), 5), where, "thread gone")
    checks.equal(set(target.slots().values()), {holds}, where, "slots")
    checks.equal(target.descriptors(), before, where, "descriptors")
    checks(target.shared_kib() < 200, where, "the ring's memory", target.shared_kib())
    process.wait(timeout=60)
    checks.equal(process.returncode, 0, where, "status")
    checks.equal(said(base), "accepted 800, wrong 0\n", where, "output")
    run = Run.__new__(Run)
    run.out, run.channels, run.refused_files = base + ".out", {}, []
    run.read()
    channel = run.channel
    checks.equal((channel.state, channel.reason), (PASSIVE, REASON_STOPPED), where, "state")
    timing.account(checks, channel, where)
    checks(0 < channel.count("launched") < 800, where, "launches", channel.count("launched"))
    checks.equal(set(channel.by_cause()), {timing.NONE}, where, "causes")
    checks.equal(bool(channel.slots), holds == "guest", where, "slots in the segment")


def foreign():
    """Another tool has put its own value over ours: it stays, and ours is a mere pass-through."""
    process, target, base = start(["-S", 1200], program("gpu_hazards", "steady", 600, 5))
    checks(wait_for(lambda: "guest" in target.slots().values(), 3), "foreign: armed")
    lib = min(m[0] for m in target.maps() if m[3].endswith("/libcuda.so.1"))
    with open(f"/proc/{target.pid}/mem", "r+b", buffering=0) as mem:
        ours = target.address(mem, lib, "cuLaunchKernel")
        mem.seek(target.address(mem, lib, "cuLaunchKernel_ptsz"))
        other = mem.read(8)
        mem.seek(ours)
        mem.write(other)
        checks(wait_for(lambda: target.slots()["cuGraphLaunch"] == "driver", 5), "foreign: stopped")
        mem.seek(ours)
        checks.equal(mem.read(8), other, "foreign: its value")
    process.wait(timeout=60)
    checks.equal(said(base), "accepted 600, wrong 0\n", "foreign: output")


def pauses():
    """A collector that is stopped for a second is not silent; nor is one stopped with its target."""
    process, target, base = start(["-w"], program("gpu_hazards", "steady", 1700, 5))
    checks(wait_for(lambda: "guest" in target.slots().values(), 3), "pauses: armed")
    time.sleep(0.5)
    process.send_signal(signal.SIGSTOP)
    time.sleep(1.0)
    process.send_signal(signal.SIGCONT)
    time.sleep(0.7)
    checks("guest" in target.slots().values(), "pauses: a short one")
    os.kill(target.pid, signal.SIGSTOP)
    process.send_signal(signal.SIGSTOP)
    time.sleep(4)
    os.kill(target.pid, signal.SIGCONT)
    time.sleep(0.2)
    process.send_signal(signal.SIGCONT)
    time.sleep(0.7)
    checks(set(target.slots().values()) == {"guest"}, "pauses: together", target.slots())
    process.kill()
    process.wait()
    checks(wait_for(lambda: all_driver(target), 5), "pauses: restored after the end")
    os.kill(target.pid, signal.SIGKILL)


def killed_target():
    process, target, base = start([], program("gpu_paced", 2, 40000, 20))
    time.sleep(1.5)
    os.kill(target.pid, signal.SIGKILL)
    checks.equal(process.wait(timeout=20), 128 + 9, "killed target: status")
    run = Run.__new__(Run)
    run.out, run.channels, run.refused_files = base + ".out", {}, []
    run.read()
    channel = run.channel
    checks.equal(channel.state, RUNNING, "killed target: state")
    checks(not channel.broken, "killed target: ring")
    probes, made = channel.count("probes"), len(channel.results + channel.waits)
    checks(probes > 10000 and probes - 2 * 500 <= made <= probes, "killed target:", made, "of", probes)


def filtered(mode, options, kind):
    """Under a filter that kills for an unusual call, no end may bring one."""
    process, target, base = start(options, case("filtered", mode, 5), kind)
    process.wait(timeout=60)
    wait_for(lambda: not target.alive(), 20)
    checks(re.fullmatch(r"survived \d+ launches, 0 failed\n", said(base)), "filtered", mode, options,
           kind, repr(said(base)))


never = threading.Thread(target=never_came)
never.start()
collectors_that_die()
never.join()
stopped("simcuda")
stopped("simcuda-relro")
stopped("simcuda-relro", ["-c"], "guest")
foreign()
pauses()
killed_target()
FILTERED = [(mode, options, kind) for mode in ("kill", "errno") for options, kind in (
    (["-S", 800], "simcuda"), (["-S", 800, "-c"], "simcuda-relro"), (["-k", "200"], "simcuda"),
    (["-k", "200", "-c"], "simcuda-relro"), ([], "simcuda"))]
jobs = [threading.Thread(target=filtered, args=job) for job in FILTERED]
for t in jobs:
    t.start()
for t in jobs:
    t.join()
sys.exit(checks.status())
