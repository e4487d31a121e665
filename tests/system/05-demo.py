#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The demo ends well, and what it shows is what the program itself counted, path by path.

On the virtual device the times agree to the nanosecond per launch; on a real one within 3 %.
"""
import os
import re
import subprocess
import sys

GPU = "[GPU] "


def demo(out):
    """What scripts/demo printed; the folded result is then in `out`."""
    r = subprocess.run([os.path.join(os.environ["TOP"], "scripts/demo"), out],
                       stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240)
    print(r.stdout, r.stderr)
    if r.returncode:
        sys.exit(f"scripts/demo: status {r.returncode}")
    return r.stdout


def counted(text):
    """path;kernel -> (launches, ns), by the program's own account."""
    lines = re.findall(r"^ *(train;\S+) (\d+) launches (\d+) ns$", text, re.M)
    return {path: (int(launches), int(ns)) for path, launches, ns in lines}


def measured(out):
    """path;kernel -> ns, for the folded lines that come from `main` and end in GPU work."""
    sums = {}
    with open(out, encoding="utf-8") as f:
        for line in f:
            stack, weight = line.rstrip("\n").rsplit(" ", 1)
            frames = stack.split(";")
            if not frames[-1].startswith(GPU) or "main" not in frames or "train" not in frames:
                sys.exit(f"an odd stack: {line}")
            if frames.index("train") != frames.index("main") + 1:
                sys.exit(f"something between main and train: {line}")
            named = [f for f in frames[frames.index("train"):-1] if not f.startswith("cu")]
            path = ";".join(named + [frames[-1][len(GPU):]])
            sums[path] = sums.get(path, 0) + int(weight)
    return sums


def main():
    out = os.path.join(os.environ["TEST_TMP"], "demo.folded")
    text = demo(out)
    want, got = counted(text), measured(out)
    virtual = "virtual device" in text
    bad = []
    if len(want) != 10:
        bad.append(f"the program printed {len(want)} paths, not 10")
    for path in sorted(set(want) ^ set(got)):
        bad.append(f"only in {'the account' if path in want else 'the result'}: {path}")
    for path in sorted(set(want) & set(got)):
        launches, ns = want[path]
        allowed = launches if virtual else 0.03 * ns
        if abs(got[path] - ns) > allowed:
            bad.append(f"{path}: {got[path]} ns, the program says {ns} in {launches} launches")
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
