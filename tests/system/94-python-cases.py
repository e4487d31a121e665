#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 900
"""The inputs P-01 to P-09, L-01, L-02 and O-02 show the Python frames that tests/cases/README.md demands,
under every interpreter that is here."""
import collections
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402
import python_frames as P  # noqa: E402
import pythons  # noqa: E402

CASES = os.path.join(os.environ["TOP"], "tests/cases")
FREQUENCY, FEW = 499, 15
check = L.Checks()
Sample = collections.namedtuple("Sample", "comm tid frames python natives n marked")
PyFrame = collections.namedtuple("PyFrame", "function file line text")


def parse(text):
    m = re.fullmatch(r"(.*?) \((.*?)(?::(\d+))?\)", text) or P.PYTHON.match(text)
    line = m[3] if m.lastindex and m.re.groups == 3 else None
    return PyFrame(m[1].rsplit(".", 1)[-1], m[2], int(line or 0), text)


def sample(s, threads):
    frames, tid = list(s.frames), None
    if threads:
        tid = frames.pop(0)
    natives, python = P.split(frames)
    return Sample(s.comm, tid, frames, [parse(f) for f in python], natives,
                  s.weight // (1000000000 // FREQUENCY), any(P.MARK.match(f) for f in frames))


class Run:
    """Samples of a command; `of`: only those with frames of this file, or natives alone."""

    def __init__(self, what, target, *options, **extra):
        self.what, path = what, os.path.join(L.TMP, "o.folded")
        if os.path.exists(path):
            os.remove(path)
        r = subprocess.run([L.GPUCOLLECT, "--metric", "cpu", "--no-gpu", "--no-inlines", "-F", str(FREQUENCY), "-y",
                            "-o", path, *options, "--", *target], env=dict(os.environ, **extra), timeout=120,
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
        L.skip_without_bpf(r.returncode, r.stderr)
        self.out, self.err, self.status = r.stdout, r.stderr, r.returncode
        with open(path, encoding="utf-8", errors="strict") as f:
            self.text = f.read()
        self.samples = [sample(L.parse_line(s), "--per-thread" in options)
                        for s in self.text.split("\n")[:-1]]
        check(r.returncode == 0, f"{what}: status {r.returncode}: {r.stderr[-500:]}")
        for s in self.samples:
            left = [f for b in s.natives for f in b if P.INTERNAL.fullmatch(f)]
            if s.python and not check(not left, f"{what}: the interpreter's own {left} in {';'.join(s.frames)[:999]}"):
                break
        check(not re.search(r":(-\d+|0|4294967295|18446744073709551615)\)", self.text), f"{what}: a line that is none")

    def within(self, file):
        """Those that have frames of a file."""
        return [s for s in self.samples if any(f.file == file for f in s.python)]

    def expect(self, samples, good, demand, share=1.0):
        """At least `share` of some samples are `good`; the others are marked."""
        total = sum(s.n for s in samples)
        bad = [s for s in samples if not good(s)]
        wrong = [s for s in bad if not s.marked]
        ok = check(total >= FEW, f"{self.what}: {demand}: only {total} samples")
        if not check(sum(s.n for s in bad) <= (1 - share) * total and (not wrong or share < 1),
                     f"{self.what}: {demand}: not so {sum(s.n for s in bad)} of {total}, not marked "
                     f"{sum(s.n for s in wrong)}"):
            for s in sorted(bad, key=lambda s: -s.n)[:2]:
                print(f"      | {s.n} {';'.join(s.frames)[:1500]}")
        return ok


def program(name, folder="python"):
    return os.path.join(CASES, folder, name)


def functions(s, file=None):
    return [f.function for f in s.python if file is None or f.file == file]


def reentry(path, what, _):
    """P-01: all Python frames in order, through C."""
    file = program("reentry.py")
    r = Run(what, [path, file, "2"])
    ways = {
        "by_sorted": ["by_sorted", "key_of", "burn"],
        "by_reduce": ["by_reduce", "add_two", "burn"],
        "by_re_sub": ["by_re_sub", "on_match", "burn"],
        "nested_map": ["nested_map", "<lambda>"] * 60 + ["nested_map", "burn"],
    }
    burning = [s for s in r.within(file) if s.python[-1].function == "burn"]
    for way, chain in ways.items():
        mine = [s for s in burning if way in functions(s)]
        r.expect(mine, lambda s, c=chain: functions(s, file) == ["<module>", "main"] + c, way)
    r.expect(burning, lambda s: any(way in functions(s) for way in ways), "one of the four")


def pure_loop(path, what, _):
    """P-02: cold parts, with symbols and without."""
    file = program("pure_loop.py")
    r = Run(what, [path, file, "2"])
    chain = ["<module>", "outer", "middle", "inner"]
    r.expect(r.within(file), lambda s: functions(s) == chain[:len(s.python)], "outer;middle;inner")
    r.expect(r.samples, lambda s: functions(s) == chain, "outer;middle;inner nearly always", 0.9)


def regenerate(path, what, _):
    """P-03: other functions at the same addresses."""
    file, rounds = program("regenerate.py"), 50
    r = Run(what, [path, file, str(rounds)])
    made = [s for s in r.samples if any(f.function.startswith("made_") or f.file.startswith("<made") and
                                        f.function != "<module>" for f in s.python)]

    def good(s):
        f = s.python[3]
        m = re.fullmatch(r"made_(\d+) \(<made (\d+)>:[2-7]\)", f.text)
        return functions(s)[:3] == ["<module>", "main", "one_round"] and len(s.python) == 4 and m and m[1] == m[2]

    r.expect(made, good, "each with its own file")
    # None runs longer than 60 ms: who seems to has another's samples.
    longest = collections.Counter()
    for s in made:
        longest[s.python[-1].function] += s.n
    name, n = longest.most_common(1)[0] if longest else ("", 0)
    check(n <= 0.060 * FREQUENCY * 1.5, f"{what}: {name} has {n} samples")
    seen = {s.python[3].function for s in made if len(s.python) > 3}
    check(len(seen) >= rounds * 0.9, f"{what}: {len(seen)} of {rounds} functions")
    r.expect([s for s in r.samples if "one_round" in functions(s)], lambda s: s in made or s.marked or
             functions(s)[-1] in ("one_round", "<module>"), "functions made")


def names(path, what, _):
    """P-04: names of all kinds, exactly."""
    file = program("names.py")
    with open(file, encoding="utf-8") as f:
        source = f.read()
    scope = {}
    exec(compile(re.search(r"SOURCE = .*?\n\]\n", source, re.S)[0], "<names>", "exec"), scope)
    r = Run(what, [path, file, "3"])
    busy = [s for s in r.within(file) if len(s.python) > 2]
    below = ["mix_𐎠𐎡", "plain_ascii", "計算する", "größe", "заметная"]
    heads, wanted = ([P.shown("generated", name, line) for name in scope["FILES"]] for line in (1, 2))

    def good(s):
        return (functions(s)[:2] == ["<module>", "main"] and functions(s)[3:] == below[:len(s.python) - 3] and
                any(P.is_same(s.python[2].text, w) for w in wanted + heads))

    r.expect([s for s in busy if s.python[2].function == "generated"], good, "names exact")
    for w in wanted:
        check(any(len(s.python) > 2 and P.is_same(s.python[2].text, w) for s in busy), f"{what}: {w[:60]} is missing")


def threads(path, what, _):
    """P-05: eight of Python's threads, and C's that enter for a moment."""
    file = program("threads.py")
    r = Run(what, [path, file, "3"], "--per-thread")
    kinds = collections.defaultdict(set)
    mine = r.within(file)
    for s in mine:
        first = next(f.function for f in s.python if f.file == file)
        kinds[s.tid].add(first)
    mixed = {tid: k for tid, k in kinds.items() if len(k) > 1}
    check(not mixed, f"{what}: threads with frames of several: {mixed}")
    workers = [tid for tid, k in kinds.items() if k == {"worker"}]
    check(len(workers) == 8, f"{what}: {len(workers)} workers: {dict(kinds)}")
    begin = ["_bootstrap", "_bootstrap_inner", "run"]
    r.expect([s for s in mine if "worker" in functions(s)], lambda s: functions(s) in
             (begin + ["worker", "spin_in_thread"], begin + ["worker"]), "workers")
    r.expect([s for s in mine if "burst" in functions(s)], lambda s: functions(s) == ["one_entry", "burst"],
             "threads made by C")


def short_chain(path, what, _):
    """P-06: a whole piece of the chain, with the line of each call."""
    file = program("short_chain.py")
    r = Run(what, [path, file, "2"])

    def good(s):
        if functions(s) == ["<module>", "<module>"]:	# they are being made
            return [(f.file, f.line) for f in s.python[:1]] == [(file, 10)] and s.python[1].file == "chain_of_40.py"
        if functions(s)[:2] != ["<module>", "run"][:len(s.python)]:
            return False
        for i, f in enumerate(s.python[2:]):
            k = 40 - i
            lines = {2 * k + 2} if i + 3 < len(s.python) else {2 * k + 1, 2 * k + 2}
            if (f.function, f.file) != (f"f{k}", "chain_of_40.py") or f.line not in lines:
                return False
        return True

    r.expect([s for s in r.samples if any(f.file in (file, "chain_of_40.py") for f in s.python)], good,
             "a piece of the chain")


def lines(path, what, _):
    """P-07: lines lie in their functions."""
    file = program("lines.py")
    r = Run(what, [path, file, "2"])
    ranges = {m[1]: (int(m[2]), int(m[3])) for m in re.finditer(r"(\S+) (\d+)\.\.(\d+)", r.out)}
    with open(file, encoding="utf-8") as f:
        last = len(f.readlines())

    def good(s):
        for f in s.python:
            first, end = ranges.get(f.function, (1, last))
            # Before 3.10 no range is known: only the first line is printed.
            if f.file == file and f.line and not (first <= f.line <= (end if end > first else last)):
                return False
        return True

    r.expect(r.within(file), good, "lines in range")
    check(set(ranges) >= {"sums", "cleanup", "guarded"}, f"{what}: ranges {ranges}")
    check({"sums", "cleanup", "guarded", "body"} <= {f.function for s in r.samples for f in s.python},
          f"{what}: all functions are met")


def renamed(path, what, _):
    """P-08: stripped, under a name that says nothing."""
    folder = os.path.join(L.TMP, "renamed")
    r = Run(what, ["sh", program("renamed.sh"), path, folder, "2"])
    mine = [s for s in r.samples if s.comm == "report-worker"]
    r.expect([s for s in mine if s.python and s.python[-1].file.endswith("pure_loop.py")],
             lambda s: functions(s) == ["<module>", "outer", "middle", "inner"][:len(s.python)], "in order")
    r.expect(mine, lambda s: functions(s) == ["<module>", "outer", "middle", "inner"], "nearly always", 0.85)
    subprocess.run(["rm", "-r", folder], check=True)


def leader_exit(path, what, _):
    """L-01: the first thread ends, the worker's names go on."""
    file = program("leader_exit.py", "life")
    r = Run(what, [path, file, "3"])
    r.expect([s for s in r.within(file) if "python_worker_hot" in functions(s)],
             lambda s: functions(s) == ["_bootstrap", "_bootstrap_inner", "run", "python_worker_hot"], "named")
    r.expect(r.samples, lambda s: "python_worker_hot" in functions(s), "to the end", 0.85)


def launcher(path, what, _):
    """L-02: Python frames before, none behind."""
    file = program("launcher.py", "life")
    r = Run(what, [path, file, os.path.join(L.CASES, "chain")], SECS="1")
    r.expect([s for s in r.within(file) if s.python[-1].function == "prepare"],
             lambda s: functions(s) == ["<module>", "prepare"], "before")
    r.expect([s for s in r.samples if s.comm == "chain"], lambda s: not s.python, "behind")


def deep(path, what, _):
    """O-02: thousands of frames: whole, or marked where they are cut."""
    file = program("deep_python.py", "output")
    r = Run(what, [path, file, "2000", "2"])

    def good(s):
        middle = [f for f in functions(s, file) if f != "main"]
        if middle and middle[-1] == "bottom":
            middle.pop()
        return set(middle) <= {"go_down"} and (s.marked or functions(s)[0] == "_bootstrap" and len(middle) <= 2001)

    mine = [s for s in r.within(file) if "go_down" in functions(s)]
    r.expect(mine, good, "nothing but go_down")
    r.expect([s for s in mine if functions(s)[-1] == "bottom"],
             lambda s: s.marked or functions(s).count("go_down") == 2001, "as deep as it is")


def look_alikes():
    """P-09: older ones natively, with one warning; others not at all."""
    for path, version in pythons.pythons((2, 0), pythons.OLDEST):
        what = f"P-09 {pythons.name(path, version)}"
        r = Run(what, [path, program("oldstyle.py"), "1"])
        check(not any(s.python for s in r.samples), f"{what}: Python frames")
        check(sum(s.n for s in r.samples) >= FEW, f"{what}: few samples")
        told = [s for s in r.err.splitlines() if re.search(rf"[Pp]ython {version[0]}\.{version[1]}\b", s)]
        check(len(told) == 1, f"{what}: it says {r.err}")
    r = Run("looks_like", [os.path.join(L.CASES, "looks_like")], SECS="1")
    r.expect(r.samples, lambda s: ";main;plain_c_loop" in ";".join(s.frames) or "main" not in s.frames,
             "main;plain_c_loop")
    check(not any(s.python for s in r.samples), "looks_like: Python frames")
    said = [s for s in r.err.splitlines() if re.search(r"error|warning|[Pp]ython", s.replace(L.TMP, ""))]
    check(not said, f"looks_like: it says {said}")


ALL = (reentry, pure_loop, regenerate, names, threads, short_chain, lines, renamed, leader_exit, launcher, deep)
P.skip_without_product()
wanted_cases = [c for c in ALL if c.__name__ in sys.argv[1:]]
for turn, (interpreter, its_version) in enumerate(pythons.need()):
    for case in wanted_cases or pythons.share(ALL, turn):
        before = check.failures
        case(interpreter, f"{case.__doc__.split(':')[0]} {pythons.name(interpreter, its_version)}", its_version)
        print("ok   " if check.failures == before else "WRONG", pythons.name(interpreter, its_version),
              case.__doc__, flush=True)
if len(sys.argv) == 1 or "look_alikes" in sys.argv:
    look_alikes()
sys.exit(check.status())
