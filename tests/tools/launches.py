# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs gpucollect on launch programs and compares what it wrote with their own accounts."""
import collections
import functools
import json
import os
import re
import subprocess
import sys
import time

import slots

B = os.environ.get("B", "build")
TMP = os.environ.get("TEST_TMP", "/tmp")
GPUCOLLECT = os.environ.get("GPUCOLLECT", os.path.join(B, "gpucollect"))
CASES = os.path.join(B, "cases")
PROGRAMS = os.path.join(B, "programs")
SKIP = 77

# What may stand before a program's own first function: the C library's way there.
ROOT = r"(?:_start|__libc_start_main(?:_impl)?|__libc_start_call_main|start_thread|(?:__)?clone3?|" \
       r"libc(?:\.so\.6|-2\.\d+\.so)\+0x[0-9a-f]+)"
GPU = "[GPU] "
GRAPH = "[graph]"
UNKNOWN = "[unknown kernel]"	# what probes in the driver can't tell

# `kernel` is "[graph]" of all that a graph runs; `inside` are the frames below the graph's.
Stack = collections.namedtuple("Stack", "comm pid frames kernel weight inside")
Chain = collections.namedtuple("Chain", "pid path kernel launches ns")


class Checks:
    """Counts what is wrong; a test ends with sys.exit(checks.status())."""

    def __init__(self):
        self.failures = self.done = 0

    def __call__(self, good, text):
        self.done += 1
        if not good:
            print("WRONG", text, flush=True)
        self.failures += not good
        return good

    def soon(self, what, condition, seconds=20):
        """That it comes to hold."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                return self(False, f"{what}: not within {seconds} s")
            time.sleep(0.02)
        return self(True, what)

    def status(self):
        print(f"{self.done} checks, {self.failures} wrong")
        return 1 if self.failures or not self.done else 0


def parse_line(line):
    text, weight = line.rstrip("\n").rsplit(" ", 1)
    process, *frames = text.split(";")
    comm, pid = re.fullmatch(r"(.*) \(pid (\d+)\)", process).groups()
    inside = ()
    if GPU + GRAPH in frames:
        at = frames.index(GPU + GRAPH)
        frames, inside = frames[:at + 1], tuple(frames[at + 1:])
    kernel = frames.pop()[len(GPU):] if frames and frames[-1].startswith(GPU) else None
    return Stack(comm, int(pid), frames, kernel, int(weight), inside)


def read(path):
    with open(path, encoding="utf-8") as f:
        return [parse_line(line) for line in f]


def environment(kind="simcuda", **extra):
    """For a program on the virtual device; `kind` is one of the build's or a folder."""
    env = dict(os.environ, LD_LIBRARY_PATH=kind if "/" in kind else os.path.join(B, kind))
    for name in ("CUDA_INJECTION64_PATH", "GPUCOLLECT_DISABLE", "GPUCOLLECT_FAULT"):
        env.pop(name, None)
    env.update(extra)
    return env


class Run:
    """What a run left: its status, what the command printed, what gpucollect said and wrote."""

    def __init__(self, status, out, err, path, own=None):
        # `own`: gpucollect's status, where `status` is that of a program it was attached to
        self.status, self.out, self.path, self.own = status, out, path, own
        lines = err.splitlines(keepends=True)
        self.said = [s[len("gpucollect: "):].rstrip("\n") for s in lines
                     if s.startswith("gpucollect: ")]
        self.err = "".join(s for s in lines if not s.startswith("gpucollect: "))
        self.written = os.path.exists(path)
        self.stacks = read(path) if self.written else []

    def total(self):
        return sum(s.weight for s in self.stacks)

    def by_kernel(self):
        sums = collections.Counter()
        for s in self.stacks:
            sums[s.kernel] += s.weight
        return sums

    def complaints(self):
        return [s for s in self.said if s.startswith(("error: ", "warning: "))]

    def number(self, pattern):
        """The number in the last closing line that holds `pattern` (with one group), or 0."""
        for line in reversed(self.said):
            m = re.search(pattern, line)
            if m:
                return int(m.group(1).replace(",", ""))
        return 0

    def launches(self):
        return self.number(r"([\d,]+) launches(?: \(|$)")

    def timed(self):
        return self.number(r"launches \(([\d,]+) timed")

    def lost(self):
        return self.number(r"^lost: ([\d,]+) of [\d,]+ launches")

    def untimed(self):
        return self.number(r"^counted, not timed: ([\d,]+) of")

    def show(self):
        print(f"status {self.status}\n{self.out}{self.err}" +
              "".join(f"gpucollect: {s}\n" for s in self.said), flush=True)


def by_probes(mode):
    return mode.endswith("probes")


def options(mode="library", metric=None):
    """`mode` is how launches are seen: by the library, or by probes in the driver; "attached" and
    "attached-probes": the same of a process that has started before. All launches are looked at: what is
    compared is exact."""
    metric = metric or ("launches" if by_probes(mode) else "gpu")
    return ["--metric", metric, "--no-inlines",
            *(["--no-inject"] if by_probes(mode) else ["--launches", "all"])]


def skip_without_bpf(status, err):
    m = re.search(r"^gpucollect: error: (.*(?:BPF|perf_event|CAP_|BTF).*)$", err, re.M)
    if status == 77 and m:
        print(err)
        print("skipped: no probes here: " + m[1])
        sys.exit(SKIP)


class Gate:
    """Where a program waits until gpucollect has been attached (STANDIN_GATE)."""

    serial = 0

    def __init__(self, entry="cuStreamCreate"):
        Gate.serial += 1
        self.path = os.path.join(TMP, f"gate-{os.getpid()}-{Gate.serial}")
        os.mkfifo(self.path)
        # Open for writing as long as this lives, so that whoever comes late does not wait for us.
        self.fd = os.open(self.path, os.O_RDWR)
        self.variable = {"STANDIN_GATE": f"{entry}:{self.path}"}

    def pids(self):
        """Of those that have come to it."""
        if not os.path.exists(self.path + ".ready"):
            return []
        with open(self.path + ".ready", encoding="utf-8") as f:
            return [int(line) for line in f if line.endswith("\n")]

    def let_through(self, number=1):
        os.write(self.fd, b"x" * number)

    def close(self):
        os.close(self.fd)


def wait_for(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(0.005)


class Attached:
    """gpucollect on processes that run; what it says goes into a file."""

    serial = 0

    def __init__(self, pids, *argv, program=None, name=None):
        Attached.serial += 1
        self.log = os.path.join(TMP, name or f"attached-{os.getpid()}-{Attached.serial}.log")
        with open(self.log, "w", encoding="utf-8") as f:
            self.process = subprocess.Popen(
                [program or GPUCOLLECT, *argv, "-p", ",".join(map(str, pids))],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=f)

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def is_recording(self):
        """Or has ended, which it should not have."""
        return "gpucollect: recording" in self.said() or self.process.poll() is not None

    def wait_recording(self):
        wait_for(self.is_recording, "recording")


class Counted:
    """Whoever has a gpu_until's ends in `process`: how many launches it has made."""

    def made(self):
        self.process.stdin.write("?")
        self.process.stdin.flush()
        return int(self.process.stdout.readline().split()[1])

    def at_least(self, launches):
        while self.made() < launches:
            time.sleep(0.02)


class Launching(Counted):
    """A process that launches until it is told to end, and then has to have noticed nothing."""

    def __init__(self, check, pace=500):
        self.check = check
        self.process = subprocess.Popen([f"{PROGRAMS}/gpu_until", "2", str(pace)], env=environment(),
                                        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        check(self.process.stdout.readline().startswith("ready"), "gpu_until: not ready")
        self.pid = str(self.process.pid)

    def end(self, what):
        out, _ = self.process.communicate(timeout=30)
        self.check(self.process.returncode == 0 and re.search(r"^total \d+ 0$", out, re.M),
                   f"{what}: the target: {self.process.returncode} {out}")


def path_of(kind):
    return os.path.join(kind if "/" in kind else os.path.join(B, kind), "libcuda.so.1")


@functools.lru_cache
def driver_of(kind):
    return slots.Driver(path_of(kind))


def is_entered(pid, kind, mode):
    """Slots are swapped, or probes in the driver's code."""
    try:
        # Of an odd driver's entries nobody knows the slots.
        if by_probes(mode):
            return bool(slots.changed_code(pid, path_of(kind)))
        return bool(driver_of(kind).away(pid))
    except (OSError, ValueError):
        return True	# gone


def keep_gate(gate, done, kind, mode, timeout):
    """Lets those through that come to the gate, each when gpucollect has entered it."""
    passed, end = 0, time.monotonic() + timeout
    while not done():
        for pid in gate.pids()[passed:]:
            wait_for(lambda p=pid: is_entered(p, kind, mode), f"process {pid} entered", 30)
            gate.let_through()
            passed += 1
        if time.monotonic() > end:
            raise TimeoutError(f"no end in {timeout} s")
        time.sleep(0.005)


def run_attached(target, *argv, kind, mode, timeout, path, program, gate, **extra):
    """The target as far as its gate, gpucollect on it, then both to their end."""
    gate = Gate(gate)
    out, err = (open(path + end, "w+", encoding="utf-8", errors="replace") for end in (".out", ".err"))
    p = subprocess.Popen(target, env=environment(kind, **extra, **gate.variable), stdout=out,
                         stderr=err, stdin=subprocess.DEVNULL)
    g = None
    try:
        wait_for(lambda: gate.pids() or p.poll() is not None, "the gate", timeout)
        g = Attached([p.pid], *argv, program=program)
        g.wait_recording()
        keep_gate(gate, lambda: p.poll() is not None and g.process.poll() is not None, kind, mode,
                  timeout)
    finally:
        p.kill()
        if g:
            g.process.kill()
            g.process.wait()
        gate.close()
    skip_without_bpf(g.process.returncode, g.said())
    for f in out, err:
        f.seek(0)
    status = p.wait() if p.returncode >= 0 else 128 - p.returncode
    with out, err:
        return Run(status, out.read(), err.read() + g.said(), path, own=g.process.returncode)


def run(target, *more, mode="library", metric=None, kind="simcuda", timeout=60, name="o.folded",
        program=None, gate="cuStreamCreate", **extra):
    """gpucollect on a command, to its end; or attached to it at the first call of `gate`."""
    path = os.path.join(TMP, name)
    if os.path.exists(path):
        os.remove(path)
    if mode.startswith("attached"):
        return run_attached(target, *options(mode, metric), "-y", "-o", path, *more, kind=kind,
                            mode=mode, timeout=timeout, path=path, program=program, gate=gate, **extra)
    argv = [program or GPUCOLLECT, *options(mode, metric), "-y", "-o", path, *more, "--", *target]
    r = subprocess.run(argv, env=environment(kind, **extra), stdin=subprocess.DEVNULL,
                       capture_output=True, text=True, errors="replace", timeout=timeout)
    skip_without_bpf(r.returncode, r.stderr)
    return Run(r.returncode, r.stdout, r.stderr, path)


def plain(target, kind="simcuda", timeout=60, **extra):
    """The same program alone: status, output, errors."""
    r = subprocess.run(target, env=environment(kind, **extra), stdin=subprocess.DEVNULL,
                       capture_output=True, text=True, errors="replace", timeout=timeout)
    return r.returncode, r.stdout, r.stderr


def account(out):
    """The chains that a program printed (tests/programs/gpu_app.h)."""
    chains, pid = [], None
    for line in out.splitlines():
        words = line.split(" ")
        if words[0] == "pid":
            pid = int(words[1])
        elif words[0] == "chain":
            chains.append(Chain(pid, words[1], words[2], int(words[3]), int(words[4])))
        elif words[0] == "graph":
            chains.append(Chain(pid, words[1], "[graph]", int(words[2]), int(words[4])))
    return merge(chains)


def merge(chains):
    sums = collections.OrderedDict()
    for c in chains:
        have = sums.get(c[:3], (0, 0))
        sums[c[:3]] = (have[0] + c.launches, have[1] + c.ns)
    return [Chain(*key, *value) for key, value in sums.items()]


def pattern(path):
    """A chain's path as an expression for frames joined by ';'. '*' is frames of other files."""
    steps = [r"[^;]+(?:;[^;]+)*" if step == "*" else re.escape(step) for step in path.split(";")]
    return re.compile(rf"(?:{ROOT};)*" + ";".join(steps) + r"(;cu[A-Z]\w*)?")


class Attribution:
    """Which stack belongs to which chain; what belongs to none, or to several, is kept apart."""

    def __init__(self, stacks, chains):
        patterns = [(c, pattern(c.path)) for c in chains]
        self.weight = collections.Counter()
        self.entries = collections.Counter()	# by the driver's function at the end, None: there is none
        self.strange = []
        for s in stacks:
            text = ";".join(s.frames)
            found = [(c, m) for c, p in patterns
                     if c.kernel == s.kernel and c.pid in (None, s.pid) and (m := p.fullmatch(text))]
            if len(found) == 1:
                self.weight[found[0][0]] += s.weight
                self.entries[(found[0][1][1] or ";")[1:] or None] += s.weight
            else:
                self.strange.append(s)


def compare(check, what, r, metric, chains=None, named=True, entry=True):
    """Each chain has exactly its weight, and there is nothing else."""
    chains = account(r.out) if chains is None else chains
    if not named:
        chains = merge(c._replace(kernel=c.kernel if c.kernel == "[graph]" else UNKNOWN)
                       for c in chains)
    check(chains, f"{what}: the program printed no account")
    got = Attribution(r.stacks, chains)
    for c in chains:
        want = c.ns if metric == "gpu" else c.launches
        check(got.weight[c] == want,
              f"{what}: {c.path} {c.kernel}: {got.weight[c]} instead of {want}")
    check(not got.strange, f"{what}: stacks of no chain: " +
          "\n".join(f"{s.comm} {s.pid} {';'.join(s.frames)} {s.kernel} {s.weight}"
                    for s in got.strange[:5]))
    check(entry == (None not in got.entries) or not got.weight,
          f"{what}: the driver's functions are {dict(got.entries)}")
    check(not r.complaints(), f"{what}: it complains: {r.complaints()}")
    check(r.own in (None, 0), f"{what}: gpucollect's own status is {r.own}")
    return got


def stats(path):
    """The device's counters (STANDIN_STATS), summed over processes."""
    sums = collections.Counter()
    if os.path.exists(path):
        with open(path) as f:
            for line in f:
                _, name, n = line.split()
                sums[name] += int(n)
        os.remove(path)
    return sums


def bpf_left():
    """Programs of ours that the kernel still has although no living process holds them. It lets go of
    them some time after the process is gone."""
    left = {}
    for _ in range(100):
        left = bpf_without_holder()
        if not left:
            break
        time.sleep(0.1)
    return left


def bpf_without_holder():
    r = subprocess.run([os.environ.get("BPFTOOL", "bpftool"), "-j", "prog", "show"],
                       capture_output=True, text=True, check=True)
    ours = {p["id"]: p.get("name", "") for p in json.loads(r.stdout)
            if p.get("name", "").startswith("gpucollect")}
    held = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            for fd in os.listdir(f"/proc/{pid}/fdinfo"):
                with open(f"/proc/{pid}/fdinfo/{fd}") as f:
                    held.update(map(int, re.findall(r"^prog_id:\s*(\d+)", f.read(), re.M)))
        except OSError:
            continue
    return {i: name for i, name in ours.items() if i not in held}
