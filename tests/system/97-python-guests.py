#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
"""Greenlets, another event loop and perf's trampolines (-X perf) among Python frames: each stack is one that
the program can have, or it is marked. And memory that doesn't answer."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402
import python_frames as P  # noqa: E402
import pythons  # noqa: E402

PROGRAM = os.path.join(os.environ["TOP"], "tests/programs/python/guests.py")
FREQUENCY, SECONDS, FEW = 499, 1, 100
check = L.Checks()

# How the frames of the program can follow each other, from its own first one to `spin`.
CHAINS = {
    # each has a stack of its own, which begins where it was made
    "greenlets": {("run_a", "leaf_a", "spin"), ("run_b", "leaf_b", "spin")},
    # tasks are begun by the loop, which <module> runs
    "uvloop": {("<module>", "uvloop", "answer", "spin")},
    "calls": {("<module>", "calls", "middle", "leaf", "spin")},
}


def functions(stack):
    """Those of the program, outermost first."""
    return tuple(f.split(" (")[0] for f in stack.frames if f" ({PROGRAM}:" in f)


def one(what, path, part, *options, trampolines=False):
    out = os.path.join(L.TMP, "o.folded")
    r = subprocess.run([L.GPUCOLLECT, "--metric", "cpu", "--no-gpu", "--no-inlines", "-F", str(FREQUENCY), "-y",
                        "-o", out, "--", path, "-E", *options, PROGRAM, part, str(SECONDS)],
                       stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100, check=False)
    L.skip_without_bpf(r.returncode, r.stderr)
    if not check(r.returncode == 0 and r.stdout == "ready\n", f"{what}: status {r.returncode}: {r.stderr[-500:]}"):
        return
    total, marked, wrong = 0, 0, []
    with open(out, encoding="utf-8") as f:
        stacks = [L.parse_line(line) for line in f.read().split("\n")[:-1]]
    for s in stacks:
        chain, n = functions(s), s.weight // (1000000000 // FREQUENCY)
        if not chain or chain[-1] != "spin":
            continue
        total += n
        marked += n if any(P.MARK.match(f) for f in s.frames) else 0
        if chain not in CHAINS[part]:
            wrong.append(P.path(s.frames))
    print(f"{what}: {total} samples, {marked} marked", flush=True)
    check(total >= FEW, f"{what}: only {total} samples")
    check(not wrong, f"{what}: {wrong[:3]}")
    # a stack that user space unwinds ends at a trampoline, with a mark: at the start, code is met for the first time
    check(marked <= (total // 20 if trampolines else total // 1000), f"{what}: {marked} of {total} are marked")
    left = [P.path(s.frames) for s in stacks if functions(s) and
            any(f.startswith(("py::", "py_trampoline")) for f in s.frames)]
    check(not left, f"{what}: {left[:3]}")


def unanswered(what, path):
    """Memory that nobody answers for holds nobody up: gpucollect ends while it is so, and has the other names."""
    out = os.path.join(L.TMP, "o.folded")
    program = os.path.join(os.path.dirname(PROGRAM), "unanswered.py")
    p = subprocess.Popen([path, "-E", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    first = p.stdout.readline()
    if first == "ready\n":
        r = subprocess.run([L.GPUCOLLECT, "--metric", "cpu", "--no-gpu", "-F", str(FREQUENCY), "-y", "-o", out,
                            "-d", "2", "-p", str(p.pid)], stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, timeout=60, check=False)
        with open(out, encoding="utf-8") as f:
            text = f.read()
        check(r.returncode == 0 and "<module> (" in text, f"{what}: {r.stderr[-500:]}{text[-500:]}")
    else:
        print(f"{what}: {first}")
    rest = p.communicate()[0]
    check(rest == ("right\n" if first == "ready\n" else ""), f"{what}: the program says {rest!r}")


def has(path, module):
    return subprocess.run([path, "-E", "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


def main():
    P.skip_without_product()
    ran = 0
    for path, version in pythons.need():
        name = pythons.name(path, version)
        for part, module in (("greenlets", "greenlet"), ("uvloop", "uvloop")):
            if has(path, module):
                one(f"{name} {part}", path, part)
                ran += 1
        if (3, 11) <= version < (3, 14) and not pythons.is_free_threaded(path):
            unanswered(f"{name} unanswered", path)
            ran += 1
        if version >= (3, 12):
            one(f"{name} trampolines", path, "calls", "-X", "perf", trampolines=True)
            ran += 1
    if not ran:
        print("skipped: no interpreter here has greenlet or uvloop, or is 3.12 or later")
        sys.exit(77)
    sys.exit(check.status())


main()
