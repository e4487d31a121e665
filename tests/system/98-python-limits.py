#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
"""A process that makes functions for ever has the names of some of them, others have all of theirs, and it is
said once. More interpreters or threads than are looked through are said, too."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402
import python_frames as P  # noqa: E402
import pythons  # noqa: E402

PROGRAM = os.path.join(os.environ["TOP"], "tests/programs/python/many.py")
STATES = os.path.join(os.environ["TOP"], "tests/programs/python/states.py")
FREQUENCY, MADE, NAME = 499, 800, 60000
# 32 MiB of names; what an entry takes beside is 256 bytes and some 100 of file and lines
KEPT = (32 << 20) // (NAME + 350)
UNKNOWN = "[unknown Python function]"
NOTE = ("gpucollect: 1 process has more Python functions than are kept (32.0 MiB of one process, 256 MiB of all): "
        f"the others are shown as {UNKNOWN}\n")
check = L.Checks()


def collect(what, *command):
    """What is said, and the stacks; None where the program has no other interpreters."""
    out = os.path.join(L.TMP, "o.folded")
    r = subprocess.run([L.GPUCOLLECT, "--metric", "cpu", "--no-gpu", "--no-inlines", "-F", str(FREQUENCY), "-y",
                        "-o", out, "--", *command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                       timeout=120, check=False)
    L.skip_without_bpf(r.returncode, r.stderr)
    if r.returncode and "ModuleNotFoundError" in r.stderr:
        return None
    check(r.returncode == 0, f"{what}: status {r.returncode}: {r.stderr[-500:]}")
    return r.stderr, L.read(out)


def count(what, command):
    """What is said, and by process: the functions made that are named, and samples of such that are not."""
    err, stacks = collect(what, "sh", "-c", command)
    named, unknown = {}, {}
    for s in stacks:
        last = next((f for f in reversed(s.frames) if f == UNKNOWN or P.PYTHON.match(f)), "")
        made = re.match(r"f(\d+)_x", last)
        if made:
            named.setdefault(s.pid, set()).add(int(made[1]))
        elif last == UNKNOWN:
            unknown[s.pid] = unknown.get(s.pid, 0) + s.weight // (1000000000 // FREQUENCY)
    return err, named, unknown


def functions(path, what):
    err, named, unknown = count(what, f"{path} -ES {PROGRAM} {MADE} & {path} -ES {PROGRAM} 100; wait")
    print(f"{what}: {[len(n) for n in named.values()]} named, {list(unknown.values())} samples unknown", flush=True)
    check(len(named) == 2, f"{what}: functions of {len(named)} processes")
    modest, greedy = sorted(named, key=lambda pid: len(named[pid]))
    # a few may have run before the interpreter was known, or be gone when their record was lost
    check(len(named[modest]) >= 90, f"{what}: of the other's {len(named[modest])} are named")
    check(unknown.get(modest, 0) <= 30, f"{what}: the other has {unknown.get(modest)} samples unknown")
    check(KEPT * 0.98 < len(named[greedy]) <= KEPT * 1.02, f"{what}: {len(named[greedy])} named, not {KEPT}")
    check(unknown.get(greedy, 0) >= (MADE - KEPT) // 2, f"{what}: {unknown.get(greedy)} samples unknown")
    check(err.count(NOTE) == 1, f"{what}: it says {err}")
    err, named, unknown = count(what, f"{path} -ES {PROGRAM} 100")
    check("more Python functions" not in err, f"{what}: few functions: {err}")


def states(path, what, threads, depth, told):
    """So many threads, beside one in so many interpreters: what can't all be found is counted."""
    what = f"{what}, {threads} threads, {depth} interpreters"
    found = collect(what, path, "-ES", STATES, str(threads), str(depth))
    if not found:
        print(f"{what}: no other interpreters here")
        return
    said = re.search(r"([\d,]+): stacks that may lack Python frames, over 1,024 thread states or 4 of a thread",
                     found[0])
    n = int(said[1].replace(",", "")) if said else 0
    deepest = max(sum(f.startswith("within (") for f in s.frames) for s in found[1])
    print(f"{what}: {n} stacks told of, {deepest} interpreters found", flush=True)
    check(n >= FREQUENCY // 2 if told else not said, f"{what}: it says {found[0]}")
    check(deepest == depth or (told and 1 <= deepest <= min(depth, 4)), f"{what}: {deepest} found")


def main():
    P.skip_without_product()
    path, version = pythons.need()[-1]
    functions(path, pythons.name(path, version))
    for path, version in sorted({pythons.need()[0], pythons.need()[-1]}):
        what = pythons.name(path, version)
        states(path, what, 1100, 1, False)
        states(path, what, 900, 2, False)
        states(path, what, 1100, 2, True)
        states(path, what, 0, 4, False)
        states(path, what, 0, 5, True)
    sys.exit(check.status())


main()
