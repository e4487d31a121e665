# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs gpucollect and reads folded stacks; for the system tests.

A test collects its findings in a Checks and ends with sys.exit(checks.status()).
"""
import collections
import os
import re
import subprocess
import sys

B = os.environ.get("B", "build")
TMP = os.environ.get("TEST_TMP", "/tmp")
GPUCOLLECT = os.environ.get("GPUCOLLECT", os.path.join(B, "gpucollect"))
CASES = os.path.join(B, "cases")
PROGRAMS = os.path.join(B, "programs")

SKIP = 77
NO_PERMISSION = 77		# of gpucollect itself

KERNEL = "_[k]"
# Marks that say why a stack does not reach its thread's first frame (docs/design.md).
CUT = re.compile(r"^\[(truncated|no unwind info|unusable unwind info|stack unreadable|stack loops|"
                 r"return address is not code|generated code without frame pointer|no stack|"
                 r"unknown\])")
# Kernel functions during which a process's memory is half made or half gone.
CHANGING = re.compile(r"^(do_exit|make_task_dead|begin_new_exec|exec_mmap|bprm_execve|"
                      r"load_elf_binary|do_execveat_common.*|(__)?do_sys_execve|"
                      r"__x64_sys_execve(at)?|dup_mm.*|dup_mmap|copy_process.*|kernel_clone|"
                      r"ret_from_fork.*|schedule_tail)$")

Stack = collections.namedtuple("Stack", "comm pid user kernel weight")


def parse_line(line):
    """One folded line, written with --annotate."""
    text, weight = line.rstrip("\n").rsplit(" ", 1)
    process, *frames = text.split(";")
    comm, pid = re.fullmatch(r"(.*) \(pid (\d+)\)", process).groups()
    user = [f for f in frames if not f.endswith(KERNEL)]
    kernel = [f[:-len(KERNEL)] for f in frames if f.endswith(KERNEL)]
    if frames[len(user):] != [f + KERNEL for f in kernel]:
        raise ValueError(f"a kernel frame below a user frame: {line}")
    return Stack(comm, int(pid), [re.sub(r"_\[[ij]\]$", "", f) for f in user], kernel, int(weight))


def read(path):
    with open(path, encoding="utf-8") as f:
        return [parse_line(line) for line in f]


def holds(stack, *names):
    """The user frames `names` follow each other directly, outermost first."""
    n = len(names)
    return any(stack.user[i:i + n] == list(names) for i in range(len(stack.user) - n + 1))


def is_cut(stack):
    return not stack.user or bool(CUT.match(stack.user[0]))


def is_changing(stack):
    return any(CHANGING.match(f) for f in stack.kernel)


class Recording:
    """What a run of gpucollect left: status, what it said, stacks with samples as their weight."""

    def __init__(self, status, out, err, path, frequency):
        self.status, self.out, self.err, self.path = status, out, err, path
        self.stacks = []
        if path and os.path.exists(path):
            # Weights are samples times the period, which is rounded down to whole ns.
            period = 1000000000 // frequency
            for s in read(path):
                if s.weight % period:
                    raise ValueError(f"{s.weight} is no multiple of {period} ns")
                self.stacks.append(s._replace(weight=s.weight // period))

    def total(self, wanted=lambda s: True):
        return sum(s.weight for s in self.stacks if wanted(s))

    def settled(self):
        """The stacks that were not taken in the middle of exec, fork or exit."""
        return [s for s in self.stacks if not is_changing(s)]


def command(*options, frequency=997, path=None, inlines=False):
    """The beginning of a command line for CPU samples into `path`."""
    return [GPUCOLLECT, "--metric", "cpu", "--no-gpu", "--annotate", "-y", "-F", str(frequency),
            *([] if inlines else ["--no-inlines"]), *(["-o", path] if path else []), *options]


def skip_without_bpf(status, err):
    """Ends the test as skipped where the kernel or the container forbids what it needs."""
    if status == NO_PERMISSION and re.search(r"BPF|perf_event|capabilit|CAP_", err):
        print(err)
        print("skipped: no CPU samples here: " + err.strip().splitlines()[0])
        sys.exit(SKIP)


def record(target, *options, frequency=997, secs=None, timeout=100, name="o.folded", inlines=False,
           **extra):
    """gpucollect on a command; `secs` limits the programs of tests/cases."""
    path = os.path.join(TMP, name)
    if os.path.exists(path):
        os.remove(path)
    env = dict(os.environ, **extra)
    if secs:
        env["SECS"] = str(secs)
    argv = command(*options, frequency=frequency, path=path, inlines=inlines) + ["--", *target]
    r = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                       errors="replace", timeout=timeout)
    skip_without_bpf(r.returncode, r.stderr)
    return Recording(r.returncode, r.stdout, r.stderr, path, frequency)


class Checks:
    def __init__(self):
        self.failures = 0

    def __call__(self, good, text, detail=""):
        print("ok   " if good else "WRONG", text, flush=True)
        if not good and detail:
            print(f"      | {detail}")
        self.failures += not good
        return good

    def status(self):
        return 1 if self.failures else 0


def show(stacks, n=20):
    """The heaviest of some stacks, for the reader of a failure."""
    for s in sorted(stacks, key=lambda s: -s.weight)[:n]:
        frames = s.user + [f + KERNEL for f in s.kernel]
        if len(frames) > 24:
            frames = frames[:12] + [f"… {len(frames) - 24} more …"] + frames[-12:]
        print(f"      | {s.weight:6} {s.comm} {';'.join(frames)}")
