#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 600
"""CPU samples of Python programs have stacks that can be, and whole ones.

tests/programs/python/samples.py says in its comments which function may be called from which line, and
prints the lines that each function has. No sample may show anything else; nearly all have to be whole,
and the others have to say that they aren't. It is attached to while it does one thing over and over, so
that nothing else is met.
"""
import collections
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402
import python_frames as P  # noqa: E402
import pythons  # noqa: E402

PROGRAM = os.path.join(os.environ["TOP"], "tests/programs/python/samples.py")
CALLS = os.path.join(os.path.abspath(L.PROGRAMS), "libpython_calls.so")
PARTS = ("short", "generators", "deep", "ladder", "through_c", "handed", "come_and_go", "asynchronous",
         "edges", "dropped", "beside")
# Where a thread of Python's begins, behind the frames of the library, and where one that C has made.
THREADS = {"work_0", "work_1", "work_2", "work_3", "down", "until_told"}
FOREIGN = {"from_c", "called_beside"}
FREQUENCY, SECONDS, FEW = 997, 1, 100
WHOLE = 0.999
check = L.Checks()


def arrows():
    with open(PROGRAM, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            m = re.search(r"# -> (.*)", line)
            if m:
                yield number, set(m[1].split(", "))


class Possible:
    """Which stacks there can be, under one interpreter."""

    def __init__(self, lines, qualified):
        self.lines = {name: set(numbers) for name, numbers in lines.items()}
        short = (lambda name: name) if qualified else (lambda name: name.rsplit(".", 1)[-1])
        self.arrows = {number: {short(n) for n in names} for number, names in arrows()}

    def wrong(self, python):
        """What can't be in these frames, or None."""
        allowed, library, no_line = {"<module>"} | FOREIGN, True, None
        for i, text in enumerate(python):
            if text == P.UNKNOWN:
                return f"{text} in {python[max(0, i - 2):i + 1]}"
            m = re.fullmatch(r"(.*?) \((.*?)(?::(\d+))?\)", text)
            function, file, line = m[1], m[2], int(m[3] or 0)
            if no_line:
                return f"{no_line} calls, but has no line"
            if file != PROGRAM:
                if not library:
                    return f"{text} in {python[max(0, i - 2):i + 1]}"
                if not i:
                    allowed = THREADS
                continue
            if function not in allowed:
                return f"{function} called by {python[max(0, i - 2):i]}"
            if line and line not in self.lines[function]:
                return f"{text} is no line of {function}: {sorted(self.lines[function])}"
            no_line = None if line else text
            allowed = self.arrows.get(line, set())
            library = "library" in allowed
        return None


def is_marked(frames):
    return any(P.MARK.match(f) for f in frames)


def judge(what, part, stacks, possible):
    total = whole = marked = bare = called = 0
    wrong, marks = collections.Counter(), collections.Counter()
    for s in stacks:
        n = s.weight // (1000000000 // FREQUENCY)
        natives, python = P.split(s.frames)
        total += n
        text = None
        if not python:
            # A thread that begins or ends has none yet, or none any more; its natives are shown whole.
            loops = [i for i, f in enumerate(s.frames) if f.startswith("_PyEval_EvalFrameDefault")]
            begun = len(loops) > 1 or any(f.startswith("_Py") for i in loops for f in s.frames[i + 1:])
            text = None if part == "come_and_go" and not begun else "none"
            if part == "beside" and s.frames[0] == "[thread spin beside]" and "calls_beside_run" in s.frames:
                text = None
            bare += 0 if text else n
        elif part == "beside" and "calls_beside_run" in s.frames:
            text = None if s.frames[0] == "[thread spin beside]" else f"it begins with {s.frames[0]}"
            called += 0 if text else n
        elif python[0].split(" ")[0] != "<module>" and part not in ("handed", "come_and_go"):
            text = f"it begins with {python[0]}"
        text = text or possible.wrong(python)
        left = [f for f in natives[0] if P.INTERNAL.fullmatch(f)]
        if not text and left and python:
            text = f"the interpreter's own {left}"
        if not text:
            whole += n
        elif is_marked(s.frames):
            marked += n
            marks[f"{text}\n  in {P.path(s.frames)}"] += n
        else:
            wrong[f"{text}\n  in {P.path(s.frames)}"] += n
    for kind, texts in ("wrong", wrong), ("marked", marks):
        for text, n in texts.most_common(3):
            print(f"{what}: {n} {kind}: {text}")
    check(bare and called or part != "beside",
          f"{what}: of the thread that is no Python's {bare} samples without Python, {called} with it")
    # Threads that come and go wait for each other most of the time.
    check(total >= (FEW // 4 if part == "come_and_go" else FEW), f"{what}: only {total} samples")
    check(not wrong, f"{what}: {sum(wrong.values())} of {total} samples are wrong")
    print(f"{what}: {total} samples, {whole} whole, {marked} marked, {bare} without Python", flush=True)
    return total, whole


def one(path, version, part):
    what = f"{pythons.name(path, version)} {part}"
    out = os.path.join(L.TMP, "o.folded")
    p = subprocess.Popen([path, PROGRAM, part], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                         env=dict(os.environ, CALLS=CALLS))
    try:
        possible = Possible(json.loads(p.stdout.readline()), version >= (3, 11))
        a = L.Attached([p.pid], "--metric", "cpu", "--no-gpu", "--no-inlines", "-F", str(FREQUENCY), "-d",
                       f"{SECONDS}s", "-y", "-o", out)
        status = a.process.wait(timeout=60)
        L.skip_without_bpf(status, a.said())
        check(status == 0, f"{what}: status {status}: {a.said()}")
        counts = judge(what, part, L.read(out), possible)
        p.stdin.close()
        check(p.wait(timeout=60) == 0, f"{what}: the program's status {p.returncode}")
        return counts
    finally:
        p.kill()
        p.wait()


P.skip_without_product()
for turn, (interpreter, its_version) in enumerate(pythons.need()):
    counted = [one(interpreter, its_version, one_part)
               for one_part in sys.argv[1:] or pythons.share(PARTS, turn)]
    samples, complete = map(sum, zip(*counted))
    check(complete >= WHOLE * samples,
          f"{pythons.name(interpreter, its_version)}: {complete} of {samples} are whole")
sys.exit(check.status())
