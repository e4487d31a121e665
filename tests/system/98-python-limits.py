#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
"""A process that makes functions for ever has the names of some of them, others have all of theirs, and it is
said once."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402
import python_frames as P  # noqa: E402
import pythons  # noqa: E402

PROGRAM = os.path.join(os.environ["TOP"], "tests/programs/python/many.py")
FREQUENCY, MADE, NAME = 499, 800, 60000
# 32 MiB of names; what an entry takes beside is 256 bytes and some 100 of file and lines
KEPT = (32 << 20) // (NAME + 350)
UNKNOWN = "[unknown Python function]"
NOTE = ("gpucollect: 1 process has more Python functions than are kept (32.0 MiB of one process, 256 MiB of all): "
        f"the others are shown as {UNKNOWN}\n")
check = L.Checks()


def run(what, command):
    """What it says, and by process: the functions made that are named, and samples of such that are not."""
    out = os.path.join(L.TMP, "o.folded")
    r = subprocess.run([L.GPUCOLLECT, "--metric", "cpu", "--no-gpu", "--no-inlines", "-F", str(FREQUENCY), "-y",
                        "-o", out, "--", "sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True,
                       text=True, timeout=120, check=False)
    L.skip_without_bpf(r.returncode, r.stderr)
    check(r.returncode == 0, f"{what}: status {r.returncode}: {r.stderr[-500:]}")
    named, unknown = {}, {}
    with open(out, encoding="utf-8") as f:
        for s in map(L.parse_line, f.read().split("\n")[:-1]):
            last = next((f for f in reversed(s.frames) if f == UNKNOWN or P.PYTHON.match(f)), "")
            made = re.match(r"f(\d+)_x", last)
            if made:
                named.setdefault(s.pid, set()).add(int(made[1]))
            elif last == UNKNOWN:
                unknown[s.pid] = unknown.get(s.pid, 0) + s.weight // (1000000000 // FREQUENCY)
    return r.stderr, named, unknown


def main():
    P.skip_without_product()
    path, version = pythons.need()[-1]
    what = pythons.name(path, version)
    err, named, unknown = run(what, f"{path} -ES {PROGRAM} {MADE} & {path} -ES {PROGRAM} 100; wait")
    print(f"{what}: {[len(n) for n in named.values()]} named, {list(unknown.values())} samples unknown")
    check(len(named) == 2, f"{what}: functions of {len(named)} processes")
    modest, greedy = sorted(named, key=lambda pid: len(named[pid]))
    # the first may have run before its interpreter was known
    check(named[modest] >= set(range(5, 100)), f"{what}: of the other's {len(named[modest])} are named")
    check(unknown.get(modest, 0) == 0, f"{what}: the other has {unknown.get(modest)} samples unknown")
    check(KEPT * 0.98 < len(named[greedy]) <= KEPT * 1.02, f"{what}: {len(named[greedy])} named, not {KEPT}")
    check(unknown.get(greedy, 0) >= (MADE - KEPT) // 2, f"{what}: {unknown.get(greedy)} samples unknown")
    check(err.count(NOTE) == 1, f"{what}: it says {err}")
    err, named, unknown = run(what, f"{path} -ES {PROGRAM} 100")
    check("Python functions" not in err and not unknown, f"{what}: few functions: {unknown}, {err}")
    sys.exit(check.status())


main()
