#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 600
"""gpucollect is killed, or stopped for 5 s, at every step of its life: the target must not notice.

Every point of the sources (FAULT_POINT) must be reached. After each: the target goes on, its own
account is what the device ran, its status is its own; slots lead into the driver again, code is as
in the files, no BPF program is left; gpucollect works again, also on that very process.
"""
import ctypes
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402
import slots  # noqa: E402

FAULTY = os.environ["B"] + "-faults/gpucollect"
SHARED = "/run/gpucollect"
TOGETHER = 12
check = L.Checks()


def private_files():
    """A folder of its own for the timing library, so that no other run has probes in ours."""
    if "FAULTS_APART" in os.environ:
        return
    os.makedirs(SHARED, mode=0o755, exist_ok=True)
    os.environ["FAULTS_APART"] = "1"
    script = f"mount -t tmpfs -o mode=0755 none {SHARED} && exec \"$@\""
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0:
        os.execvp("unshare", ["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh",
                              sys.executable, __file__])


def points(*folders):
    found = set()
    top = os.environ["TOP"]
    for folder in folders:
        for name in os.listdir(f"{top}/{folder}"):
            if name.endswith(".c"):
                with open(f"{top}/{folder}/{name}") as f:
                    found.update(re.findall(r'FAULT_POINT\("([^"]+)"\)', f.read()))
    return found


# In the order of a run's steps. Those before BEFORE_COMMAND leave no command behind; until HEARD
# the library has not heard of its collector and gives it 5 s to come; from TOLD on the slots may
# be restored before we look.
COMMAND_RUNS = ["command-released", "process-event", "mappings-announced", "mappings-read", "woken"]
HELLO = ["hello", "channel-fetched", "channel-opened"]
HEARD = ["heartbeat", "launch", "launch@100", "time", "time@100", "rows-compiled",
         "rows-compiled@3", "stack-copy", "tick@25", "woken@40", "captured",
         "stopping"]
TOLD = ["libraries-told", "sampling-ended", "ring-drained", "probe-detached", "probe-detached@2", "detached", "drained",
        "result-made", "writing", "text-written", "written", "unloaded"]
# rows-compiled and tick may come before the library is there
EARLY = ["tick"]
FIRST = ["library-written"]	# alone: whoever finds the file there does not write it
BEFORE = ["events-set-up", "driver-checked", "programs-opened", "programs-loaded",
          "processes-followed", "library-placed", "sites-probed", "probe-attached",
          "store-set-up", "cpu-opened", "cpu-opened@2",
          "sampling-set-up", "command-forked", "targets-known", "targets-set-up", "output-ready"]
# The library is brought by the tracer, in two holds of a thread. These it passes only when it fails.
UNDOING = ["trace-unmapped", "trace-closed", "trace-left"]
AGAIN = ["trace-seized@2", "trace-stopped@2", "trace-prepared@2", "trace-sent@2", "trace-home@2"]
ENTERING = ["tracer-started", "library-offered", "library-probed", "library-entered"]
ENTERED = ["targets-entered", "tick@25", "launch@50", "time@50", "captured", "stopping"]
ATTACHED = ["programs-loaded", "sampling-set-up", "output-ready", "libraries-told", "drained",
            "text-written", "probe-detached", "probe-detached@2", "detached", "unloaded"]
PROBES = ["command-released", "launch", "stopping", "probe-detached"]
STOPPED = ["tick@25", "launch@100", "stopping", "libraries-told", "writing"]


def bounded(what, condition, seconds=10):
    """Waits for a condition; whether it came true."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return check(False, f"{what}, not within {seconds} s")
        time.sleep(0.1)
    return True


class Case:
    """A target and the gpucollect that ends at a point."""

    number = 0

    def __init__(self, fault, mode, driver):
        Case.number += 1
        self.fault, self.mode, self.driver = fault, mode, driver
        self.what = f"{mode} {fault} {os.path.basename(os.path.dirname(driver.path))}"
        self.path = os.path.join(L.TMP, f"out-{Case.number}.folded")
        self.stats = os.path.join(L.TMP, f"stats-{Case.number}")
        self.log = open(os.path.join(L.TMP, f"log-{Case.number}"), "w+")
        env = L.environment(os.path.dirname(driver.path), STANDIN_STATS=self.stats,
                            STANDIN_CRASH="1")
        self.target = [f"{L.PROGRAMS}/gpu_until", "2", "500"]
        self.pid = self.child = None
        self.out = b""
        options = ["--metric", "launches", "-d", "1", "-o", self.path]
        if mode == "attached":
            self.child = subprocess.Popen(self.target, env=env, stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE)
            self.stdin, self.stdout = self.child.stdin, self.child.stdout
            self.read_ready()
            self.collector = subprocess.Popen([FAULTY, *options, "-p", str(self.pid)],
                                              env=dict(env, GPUCOLLECT_FAULT=fault),
                                              stdin=subprocess.DEVNULL, stderr=self.log)
            return
        options += ["--no-inject"] if mode == "probes" else []
        self.collector = subprocess.Popen([FAULTY, *options, "--", *self.target],
                                          env=dict(env, GPUCOLLECT_FAULT=fault),
                                          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                          stderr=self.log)
        self.stdin, self.stdout = self.collector.stdin, self.collector.stdout

    def read_ready(self, seconds=20):
        """The target's first line; False: there will be none."""
        fd = self.stdout.fileno()
        end = time.monotonic() + seconds
        while b"\n" not in self.out:
            if not select.select([fd], [], [], max(0, end - time.monotonic()))[0]:
                return check(False, f"{self.what}: the target is not ready")
            some = os.read(fd, 4096)
            if not some:
                return False
            self.out += some
        self.pid = int(re.match(rb"ready (\d+)\n", self.out)[1])
        return True

    def restored(self):
        return self.driver.away(self.pid) == []

    def untouched(self):
        return not any(slots.changed_code(self.pid, path) for path in self.code())

    def code(self):
        yield self.driver.path
        with open(f"/proc/{self.pid}/maps") as f:
            yield from sorted({line.split()[-1] for line in f if SHARED in line})

    def state(self):
        with open(f"/proc/{self.pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0]

    def end(self):
        """Ends the target; its account against what the device says it ran."""
        self.stdin.close()
        rest = b""
        while some := self.stdout.read():
            rest += some
        out = (self.out + rest).decode()
        if self.child:
            status = self.child.wait(20)
        elif self.collector.returncode is None:
            status = self.collector.wait(20)
        else:
            status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        check(status == 0, f"{self.what}: the target ended with {status}")
        stats = L.stats(self.stats)
        total = re.search(r"^total (\d+) (\d+)$", out, re.M)
        if not check(total, f"{self.what}: no account: {out}"):
            return out
        check(int(total[1]) == stats["launches"] and int(total[1]) > 50,
              f"{self.what}: {total[1]} launches, the device ran {stats['launches']}")
        # Attached to, of each of its two kernels one kind of handle is tried in vain.
        for bad in (int(total[2]), stats["stale"], stats["logged"] > 2, stats["after_fork"]):
            check(not bad, f"{self.what}: {total[2]} failures, device {dict(stats)}")
        return out


def said(case):
    case.log.seek(0)
    return case.log.read()


def not_started(case):
    """Killed before the command ran: nothing runs."""
    case.stdin.close()
    check(case.stdout.read() == b"", f"{case.what}: the command ran")
    check(not os.path.exists(case.path), f"{case.what}: a file was written")


def no_child():
    """What was forked for a command that never ran has ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return False
    except ChildProcessError:
        return True


def works_again(case):
    """Another gpucollect, on a process that outlived one."""
    path = os.path.join(L.TMP, "again.folded")
    r = subprocess.run([L.GPUCOLLECT, "--metric", "launches", "--no-inlines", "-d", "0.3", "-y",
                        "-o", path, "-p", str(case.pid)], capture_output=True, text=True, timeout=30)
    check(r.returncode == 0, f"{case.what}: a second run: status {r.returncode}: {r.stderr}")
    paths = {tuple(s.frames[-3:]) for s in L.read(path)} if os.path.exists(path) else set()
    want = {("steady", f"launch_{which}", "cuLaunchKernel") for which in ("even", "odd")}
    check(paths == want, f"{case.what}: a second run sees {paths}")


def wait_killed(cases, then):
    """Waits for the collectors' ends by their own hands; then(case) at once after each."""
    waiting, end = list(cases), time.monotonic() + 60
    while waiting:
        for case in [c for c in waiting if c.collector.poll() is not None]:
            waiting.remove(case)
            check(case.collector.returncode == -signal.SIGKILL,
                  f"{case.what}: not reached: status {case.collector.returncode}: {said(case)}")
            then(case)
        if time.monotonic() > end:
            for case in waiting:
                check(False, f"{case.what}: not reached in 60 s: {said(case)}")
                case.collector.kill()
        time.sleep(0.01)


def batch(faults, mode, drivers, alive=True, swapped=False, again=True):
    def look(case):
        if not alive:
            not_started(case)
            return
        if not case.pid and not case.read_ready():
            check(False, f"{case.what}: the target is gone")
        elif swapped:
            check(case.driver.away(case.pid), f"{case.what}: no slot was swapped")

    cases = [Case(fault, mode, drivers[i % len(drivers)]) for i, fault in enumerate(faults)]
    wait_killed(cases, look)
    cases = [case for case in cases if case.pid]
    for case in cases:
        bounded(f"{case.what}: slots restored", case.restored)
        bounded(f"{case.what}: code as in the files", case.untouched)
        check(case.state() in "RS", f"{case.what}: the target's state is {case.state()}")
    bounded(f"{mode} {faults}: no BPF program left", lambda: not L.bpf_left())
    if cases and again:
        works_again(cases[-1])
        check(cases[-1].restored(), f"{cases[-1].what}: slots after a second run")
    for case in cases:
        case.end()
    bounded(f"{mode} {faults}: no process left", no_child)
    for case in cases:
        check(not os.path.exists(case.path) or L.read(case.path),
              f"{case.what}: half a file was written")


def in_batches(faults, *args, **how):
    for i in range(0, len(faults), TOGETHER):
        batch(faults[i:i + TOGETHER], *args, again=i + TOGETHER >= len(faults), **how)


def stopped(mode, drivers):
    """Stopped for 5 s: the library gives up after 2; the collector then ends as always."""
    cases = [Case(f"{fault}:stop", mode, drivers[i % len(drivers)])
             for i, fault in enumerate(STOPPED)]
    for case in cases:
        pid, status = os.waitpid(case.collector.pid, os.WUNTRACED)
        check(os.WIFSTOPPED(status), f"{case.what}: did not stop: {said(case)}")
        case.read_ready()
    time.sleep(5)	# what this is about: longer than the library's patience
    for case in cases:
        bounded(f"{case.what}: slots restored while it stands", case.restored)
        # Probes are gone before the result is written.
        check(case.fault.startswith("writing") or not case.untouched(),
              f"{case.what}: no probe is seen, so none would be missed")
        check(case.state() in "RS", f"{case.what}: the target's state is {case.state()}")
        os.kill(case.collector.pid, signal.SIGCONT)
    for case in cases:
        bounded(f"{case.what}: it writes", lambda c=case: os.path.exists(c.path), 30)
    for case in cases:
        bounded(f"{case.what}: code as in the files", case.untouched)
        out = case.end()
        check(case.collector.returncode == 0,
              f"{case.what}: status {case.collector.returncode}: {said(case)}")
        made = int(re.search(r"^total (\d+)", out, re.M)[1])
        seen = sum(s.weight for s in L.read(case.path))
        check(0 < seen < made, f"{case.what}: {seen} of {made} launches")
        gave_up = case.fault.split(":")[0] in ("tick@25", "launch@100", "stopping")
        check(("gave up" in said(case)) == gave_up, f"{case.what}: it says {said(case)}")
    bounded("stopped: no BPF program left", lambda: not L.bpf_left())


def own_driver(kind):
    os.makedirs(os.path.join(L.TMP, kind))
    path = os.path.join(L.TMP, kind, "libcuda.so.1")
    shutil.copy(os.path.join(os.environ["B"], kind, "libcuda.so.1"), path)
    return slots.Driver(path)


private_files()
if not os.path.exists(FAULTY):
    print(f"{FAULTY}: not built; make faults")
    sys.exit(L.SKIP)
# Orphans become ours, and their status with them.
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
tried = {re.sub("@.*", "", p) for p in FIRST + BEFORE + COMMAND_RUNS + HELLO + HEARD + TOLD + EARLY +
         ENTERING + ENTERED}
known = points("loader", "loader/base", "loader/output", "loader/profile")
check(tried == known, f"points that no list has, or that are gone: {tried ^ known}")
tracing = sorted(points("loader/tracer") - set(UNDOING))
L.run([f"{L.PROGRAMS}/gpu_chains", "1"])	# ends the test where there can be no probes
both = [own_driver("simcuda"), own_driver("simcuda-relro")]

for name in os.listdir(SHARED):
    os.unlink(os.path.join(SHARED, name))
batch(FIRST, "library", both, alive=False)
in_batches(BEFORE, "library", both, alive=False)
in_batches(COMMAND_RUNS + HELLO + EARLY, "library", both)
in_batches(HEARD, "library", both, swapped=True)
in_batches(TOLD, "library", both)
in_batches(PROBES, "probes", both)
in_batches(ATTACHED + ENTERING, "attached", both)
in_batches(tracing + AGAIN, "attached", both)
in_batches(ENTERED, "attached", both, swapped=True)
stopped("library", both)
sys.exit(check.status())
