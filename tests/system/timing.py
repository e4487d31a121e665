# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The timing library on the virtual device, with a small collector of its own (no BPF): what the
tests of the library share."""
import collections
import os
import re
import subprocess
import sys
import time

TOP = os.environ.get("TOP", os.getcwd())
B = os.path.abspath(os.environ.get("B", "build"))
TMP = os.environ.get("TEST_TMP", "/tmp/timing-tests")
LIBRARY = os.path.join(B, "libgpucollect_timing.so")
PROGRAMS = os.path.join(B, "programs")
CASES = os.path.join(B, "cases")

# The numbers of gpu_timing/channel.h that the tests speak of.
NONE, CAPTURED, PDL, POOL_EMPTY, OUTSTANDING, OTHER_CONTEXT, RECORD_FAILED, LAUNCH_FAILED, \
    CONTEXT_GONE, CONTEXT_ERROR, NO_END, DISTURBED, NO_STREAM, ENTRY, BAD_TIME = range(15)
STARTING, ARMED, RUNNING, PASSIVE, REFUSED = range(5)
REASON_SHAPE, REASON_SLOT_FOREIGN, REASON_STOPPED, REASON_SILENT, REASON_NO_COLLECTOR, \
    REASON_EXIT, REASON_SUPERSEDED, REASON_STRAGGLER = 4, 8, 13, 14, 15, 16, 17, 18
F_CAPTURED, F_PDL, F_GRAPH, F_TIMED, F_COOPERATIVE, F_FAILED, F_PTSZ, F_NO_BLOCK, \
    F_STREAM_UNKNOWN, F_COPY, F_WAIT = (1 << n for n in range(11))
UNKNOWN, BUSY, IDLE = range(3)
ENTRIES = ["", "cuLaunchKernel", "cuLaunchKernel_ptsz", "cuLaunchKernelEx", "cuLaunchKernelEx_ptsz",
           "cuLaunchCooperativeKernel", "cuLaunchCooperativeKernel_ptsz",
           "cuLaunchCooperativeKernelMultiDevice", "cuLaunch", "cuLaunchGrid", "cuLaunchGridAsync",
           "cuGraphLaunch", "cuGraphLaunch_ptsz"]

# Of copies, by their numbers.
KINDS = ["memcpy", "memcpy HtoD", "memcpy DtoH", "memcpy DtoD", "memcpy PtoP", "memcpy HtoH", "memset",
         "memcpy HtoA", "memcpy AtoH", "memcpy AtoD", "memcpy DtoA", "memcpy AtoA"]

Result = collections.namedtuple(
    "Result", "channel id function stream duration name context device launches weight entry flags "
    "cause load error copy bytes waited")
Site = collections.namedtuple(
    "Site", "pid tid kind id function stream grid block shared entry flags weight")
Truth = collections.namedtuple(
    "Truth", "pid tid entry kernel grid block shared stream context start end")


class Checks:
    """Counts what is wrong; a test ends with sys.exit(checks.status())."""

    def __init__(self):
        self.done = self.wrong = 0

    def __call__(self, good, *text):
        self.done += 1
        if not good:
            self.wrong += 1
            print("WRONG:", *text, flush=True)
        return bool(good)

    def equal(self, got, want, *text):
        return self(got == want, *text, "is", got, "not", want)

    def status(self):
        print(f"{self.done} checks, {self.wrong} wrong")
        return 1 if self.wrong or not self.done else 0


class Channel:
    """One library's channel, as the collector wrote it."""

    def __init__(self):
        self.results, self.names, self.devices, self.counts = [], {}, {}, {}
        self.waits = []  # results, too, of what is no work
        self.graphs = collections.defaultdict(list)
        self.more = {}  # id of a run's first launch -> ids of the others
        self.state = self.reason = self.detail = self.slots = None
        self.broken = False

    def count(self, key):
        return self.counts.get(key, 0)

    def by_cause(self):
        """Of launches, not of copies."""
        causes = collections.Counter()
        for r in self.results:
            if not r.flags & F_COPY:
                causes[r.cause] += r.launches
        return causes

    def members(self, result):
        return [result.id] + self.more.get(result.id, [])

    def by_id(self):
        """The result that answers for a launch."""
        return {i: r for r in self.results for i in self.members(r)}

    def kernels_of(self, result):
        """Of a graph: name -> nodes; None: not known."""
        if not result.name:
            return None
        kernels = collections.Counter()
        for name, copy, count in self.graphs[result.name]:
            if not copy:
                kernels[self.names[name][2] if name in self.names else None] += count
        return kernels

    def kernel(self, result):
        return self.names[result.name][2] if result.name in self.names else None


def compiled(name, sources, *flags):
    out = os.path.join(TMP, name)
    if not os.path.exists(out):
        os.makedirs(TMP, exist_ok=True)
        subprocess.run([os.environ.get("CC", "gcc"), "-std=gnu11", "-O2", "-g", "-Wall", "-Wextra",
                        "-D_GNU_SOURCE", f"-I{TOP}", "-o", out, *flags,
                        *(os.path.join(TOP, s) for s in sources), "-lpthread", "-ldl"], check=True)
    return out


def collector():
    return compiled("timing_collector", ["tests/programs/timing_collector.c",
                                         "gpu_timing/reader.c", "gpu_timing/texts.c",
                                         "loader/base/proc.c"])


def seen_library(apart=True):
    """The library with sites that write down what they were given. Without `apart` no launch that may overlap
    others is bracketed by itself to learn its time."""
    folder = os.path.join(TOP, "gpu_timing/library")
    sources = [f"gpu_timing/library/{f}" for f in sorted(os.listdir(folder)) if f.endswith(".c")]
    flags = [] if apart else ["-DAPART_ONE_IN=0", "-DAPART_FIRST=0"]
    return compiled(f"libseen{len(flags)}.so", sources + ["gpu_timing/stub.c", "tests/programs/timing_site.c"],
                    *flags, "-shared", "-fPIC", "-fvisibility=hidden", "-ftls-model=initial-exec",
                    "-Wl,-z,nodelete,-z,now,-z,defs")


def environment(kind, **extra):
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(B, kind))
    for name in list(env):
        if name.startswith("STANDIN_") or name in ("CUDA_INJECTION64_PATH", "GPUCOLLECT_DISABLE"):
            del env[name]
    env.update({k: str(v) for k, v in extra.items()})
    return env


class Run:
    """A command under the collector; everything it left is read."""

    serial = 0

    def __init__(self, command, *options, kind="simcuda", library=LIBRARY, timeout=120, env=None,
                 trace=False, preload=None, **variables):
        Run.serial += 1
        self.out = os.path.join(TMP, f"run{Run.serial}")
        self.truth_file = self.out + ".truth"
        self.trace_file = self.out + ".trace"
        self.graphs_file = self.out + ".graphs"
        variables.setdefault("STANDIN_TRUTH", self.truth_file)
        variables.setdefault("STANDIN_GRAPHS", self.graphs_file)
        variables.setdefault("TIMING_SITES", self.trace_file)
        if trace:  # calls and sites in one file, so in their order
            variables["STANDIN_TRACE"] = self.trace_file
        env = dict(environment(kind, **variables), **(env or {}))
        if preload:  # into the command, not into the collector
            command = ["env", f"LD_PRELOAD={preload}", *command]
        self.process = subprocess.run(
            [collector(), "-l", library, "-o", self.out, *map(str, options), "--",
             *map(str, command)], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=timeout, cwd=TMP)
        self.status, self.stdout, self.stderr = \
            self.process.returncode, self.process.stdout, self.process.stderr
        self.channels = collections.OrderedDict()
        self.refused_files = []
        if os.path.exists(self.out):
            self.read()

    def read(self):
        serial = collections.Counter()
        with open(self.out, encoding="utf-8") as f:
            for line in f:
                word, *rest = line.split()
                if word == "exit":
                    continue
                if word == "refused":
                    self.refused_files.append(rest)
                    continue
                channel = self.channels.setdefault(rest[0], Channel())
                if word == "result":
                    r = Result(int(rest[0]), int(rest[1]), rest[2], rest[3], *map(int, rest[4:]))
                    (channel.waits if r.flags & F_WAIT else channel.results).append(r)
                elif word == "more":
                    channel.more[int(rest[1])] = [int(i) for i in rest[2:]]
                elif word == "name":
                    channel.names[int(rest[1])] = (rest[2], int(rest[3]),
                                                   rest[4] if len(rest) > 4 else "")
                elif word == "device":
                    channel.devices[int(rest[1])] = (int(rest[2]), rest[3])
                elif word == "graph":
                    channel.graphs[int(rest[1])] += [tuple(map(int, m.split(":"))) for m in rest[2:]]
                elif word == "count":
                    channel.counts[rest[1]] = int(rest[2])
                elif word == "broken":
                    channel.broken = True
                elif word == "state":
                    channel.state, channel.reason, channel.detail = map(int, rest[1:4])
                    channel.slots = int(rest[4], 16)
                serial[word] += 1

    @property
    def channel(self):
        assert len(self.channels) == 1, list(self.channels)
        return next(iter(self.channels.values()))

    def truth(self):
        lines = []
        if os.path.exists(self.truth_file):
            with open(self.truth_file, encoding="utf-8") as f:
                for line in f:
                    if "(graph of" in line:
                        head, tail = line.split("(graph of")
                        nodes, tail = tail.split("nodes)")
                        words = head.split() + [f"graph{nodes.strip()}"] + tail.split()
                    else:
                        words = line.split()
                    pid, tid, entry, kernel, grid, block, shared, stream, context, start, end = words
                    lines.append(Truth(int(pid), int(tid), entry, kernel, grid, block, shared,
                                       "0" if stream == "(nil)" else stream[2:], int(context),
                                       None if start == "-" else int(start),
                                       None if end == "-" else int(end)))
        return lines

    def trace(self):
        """(pid, tid, words) of each line, driver calls and sites in their order."""
        with open(self.trace_file, encoding="utf-8") as f:
            return [(int(w[0]), int(w[1]), w[2:]) for w in map(str.split, f)]

    def all_sites(self):
        return [Site(pid, tid, int(w[1]), int(w[2]), w[3], w[4], w[5], w[6], *map(int, w[7:]))
                for pid, tid, w in self.trace() if w[0] == "site"]

    def sites(self):
        """Of launches and copies."""
        return [s for s in self.all_sites() if not s.flags & F_WAIT]


def stats(path):
    """The device's own counters: name -> sum over all processes."""
    sums = collections.Counter()
    with open(path, encoding="utf-8") as f:
        for line in f:
            _, name, count = line.split()
            sums[name] += int(count)
    return sums


def entries():
    """The names of all entries by number, those of launches first."""
    with open(os.path.join(TOP, "gpu_timing/channel_slots.h"), encoding="utf-8") as f:
        return [""] + re.findall(r'X\(\w+, "(\w+)"\)', f.read())


def wait_for(what, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if what():
                return True
        except (OSError, ValueError, AttributeError):
            pass
        time.sleep(0.05)
    return False


def own_memory(pid):
    """KiB of the library's private mapping: the one that is wiped in forked children."""
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as f:
        for line in f:
            if line.startswith("Rss:"):
                rss = int(line.split()[1])
            elif line.startswith("VmFlags:") and " wf" in line:
                return rss
    return 0


def program(name, *args):
    return [os.path.join(PROGRAMS, name), *map(str, args)]


def case(name, *args):
    return [os.path.join(CASES, name), *map(str, args)]


def exact(ns, duration):
    """The driver gives a float of milliseconds; that is all that may be lost."""
    return abs(ns - duration) <= 1 + duration / 2**23


def account(checks, channel, where):
    """What must hold for every channel whose process has ended in an orderly way."""
    checks(not channel.broken, where, "the ring holds nonsense")
    for lost in ("lost_results", "lost_names", "lost_devices", "names_lost"):
        checks.equal(channel.count(lost), 0, where, lost)
    made = sum(v for k, v in channel.counts.items() if k.startswith("results["))
    checks.equal(channel.count("probes"), made, where, "probes against results made")
    read = channel.results + channel.waits
    ids = [i for r in read for i in channel.members(r)]
    checks.equal(len(ids), made, where, "results read against results made")
    checks.equal(sum(r.launches for r in read), made, where, "launches that results answer for")
    checks.equal(len(set(ids)), len(ids), where, "distinct launch ids")
    for r in channel.results:
        if r.cause == NONE:
            if not checks(r.duration > 0 or r.flags & F_GRAPH, where, "a time of 0:", r):
                break
        elif not checks(r.duration == 0, where, "a cause and a time:", r):
            break


def need(*paths):
    missing = [p for p in paths if not os.path.exists(p)]
    if missing:
        print("not built:", *missing)
        sys.exit(1)
