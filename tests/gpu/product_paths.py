# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Reads folded stacks of Python programs for product_python.py: how much stands below complete paths, and
whether the lines of the programs are those that their source marks."""
import collections
import re

GPU = "[GPU] "
GRAPH = "[GPU] [graph]"
PROCESS = re.compile(r".* \(pid (\d+)\)")
PYTHON = re.compile(r"(?P<function>.+) \((?P<file>[^()]*?|.*\.py)(?::(?P<line>\d+))?\)")
UNKNOWN = "[unknown Python function]"
THREAD = re.compile(r"\[thread .+\]")
# With a thread that has Python in some of its stacks the others begin in the C library, or with what
# calls a function's backward half.
MARK = re.compile(r"\[.+\]")
# What a thread with Python begins with: the script, or threading's way into its function.
ROOT = re.compile(r"<module> \(|Thread\._bootstrap \(")
# Of the interpreter's own, which should have been left out.
INTERNAL = re.compile(r"_?PyEval_.*|_PyFunction_Vectorcall.*|_?PyObject_(Call|Vectorcall|MakeTpCall|Fast).*|"
                      r"_?PyVectorcall_.*|method_vectorcall.*|_TAIL_CALL_.*|python\d(\.\d+)?\+0x[0-9a-f]+|"
                      r"libpython\S+\+0x[0-9a-f]+|Py_(Run|Bytes)Main")


def folded(path):
    """All but copies and sets: the marks are of lines that launch."""
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            stack, _, weight = line.rstrip("\n").rpartition(" ")
            frames = stack.split(";")
            if GRAPH in frames:		# with all that it runs one piece of work
                frames = frames[:frames.index(GRAPH) + 1]
            if not re.match(r"\[GPU\] (memcpy|memset)\b", frames[-1]):
                yield frames, int(weight)


def python_frame(frame):
    """(function, file, line or 0), or None where it is a native one."""
    m = PYTHON.fullmatch(frame)
    return (m["function"], m["file"], int(m["line"] or 0)) if m else None


def marks_of(frames):
    return [f for f in frames if MARK.fullmatch(f)]


def brief(frames, most=12):
    if len(frames) > 2 * most:
        frames = frames[:most] + [f"… {len(frames) - 2 * most} more …"] + frames[-most:]
    return ";".join(f[-90:] for f in frames)


class Found:
    """What a capture of GPU time shows of a program; weights in ns."""

    def __init__(self, path, account, variant):
        self.total = self.whole = self.unknown = self.own_thread = self.internal = 0
        self.pids, self.roots, self.faults, self.strangers = (collections.Counter() for _ in range(4))
        self.examples = {}
        self.marks = account["marks"]
        self.by_mark = collections.Counter()
        for frames, weight in folded(path):
            self.add(frames, weight)
        required = [i for i, m in enumerate(self.marks) if not m["words"] or variant in m["words"]]
        lost = [self.marks[i] for i in required if not self.by_mark[i]]
        self.required, self.met = len(required), len(required) - len(lost)
        self.missing = [f"{m['function']} ({m['file'].rsplit('/', 1)[-1]}:{m['first']})" for m in lost]

    def share(self, weight):
        return 100 * weight / self.total if self.total else 0

    def fault_of(self, inner, kernel):
        """Why the path is not complete, or None."""
        if kernel is None:
            return "no kernel at the end"
        if not inner:
            return "nothing but a kernel"
        rest = inner[1:] if THREAD.fullmatch(inner[0]) else inner
        marks = marks_of(rest)
        if marks:
            return f"mark {marks[0]}"
        if inner[0].startswith("<module> (") or re.fullmatch(r"\[thread pt_autograd_\d+\]", inner[0]):
            return None
        return f"begins with {inner[0]}"

    def add(self, frames, weight):
        process, *inner = frames
        kernel = inner.pop()[len(GPU):] if inner and inner[-1].startswith(GPU) else None
        self.total += weight
        self.pids[int(PROCESS.fullmatch(process)[1])] += weight
        self.roots[inner[0] if inner else "(none)"] += weight
        self.unknown += weight * (kernel == "[unknown kernel]")
        self.own_thread += weight * (not inner or not inner[0].startswith("<module> ("))
        self.internal += weight * any(INTERNAL.fullmatch(f) for f in inner)
        fault = self.fault_of(inner, kernel)
        if fault:
            self.faults[fault] += weight
            self.examples.setdefault(fault, inner + [GPU + str(kernel)])
        else:
            self.whole += weight
        for frame in set(inner):
            self.add_line(frame, weight)

    def add_line(self, frame, weight):
        found = python_frame(frame)
        files = {m["file"].rsplit("/", 1)[-1]: m["file"] for m in self.marks}
        if not found or found[1].rsplit("/", 1)[-1] not in files:
            return
        function, file, line = found
        at = [i for i, m in enumerate(self.marks) if (m["function"], m["file"]) == (function, file) and
              (m["first"] <= line <= m["last"] or (not line and m["first"] < m["last"]))]
        for i in at:
            self.by_mark[i] += weight
        if not at:
            self.strangers[frame] += weight

    def tell(self):
        """For the log: what the paths begin with, and what is wrong with them."""
        print("  begin with: " + ", ".join(f"{k} {self.share(v):.3f} %" for k, v in self.roots.most_common(6)))
        if self.internal:
            print(f"  with functions of the interpreter: {self.share(self.internal):.3f} %")
        for fault, weight in self.faults.most_common(5):
            print(f"  {self.share(weight):.4f} %: {fault}: {brief(self.examples[fault])}")
        for frame, weight in self.strangers.most_common(5):
            print(f"  {self.share(weight):.4f} %: {frame} launches nothing")


class Sampled:
    """CPU samples of the threads that have Python frames in some stack (--per-thread)."""

    def __init__(self, path, frequency):
        self.samples = self.whole = 0
        self.faults, self.examples = collections.Counter(), {}
        threads = collections.defaultdict(list)
        for frames, weight in folded(path):
            threads[tuple(frames[:2])].append((frames[2:], round(weight * frequency / 1e9)))
        self.others = 0
        self.threads = []
        for thread, stacks in threads.items():
            if not any(python_frame(f) or f == UNKNOWN for frames, _ in stacks for f in frames):
                self.others += sum(n for _, n in stacks)
                continue
            self.threads.append(thread[1])
            for frames, n in stacks:
                self.add(frames, n)

    def add(self, frames, n):
        marks = marks_of(frames)
        self.samples += n
        if frames and ROOT.match(frames[0]) and not marks:
            self.whole += n
            return
        fault = f"mark {marks[0]}" if marks else f"begins with {frames[0] if frames else '(none)'}"
        self.faults[fault] += n
        self.examples.setdefault(fault, frames)

    def tell(self):
        print(f"  CPU: {self.samples} samples of {len(self.threads)} threads with Python ({', '.join(self.threads)}), "
              f"{self.whole} complete ({100 * self.whole / max(self.samples, 1):.3f} %); {self.others} samples of others")
        for fault, n in self.faults.most_common(6):
            print(f"  {n}: {fault}: {brief(self.examples[fault])}")
