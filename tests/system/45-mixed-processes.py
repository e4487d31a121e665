#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 180
"""A command of several processes, some with a driver that the timing library knows, some without.

Whose launches the library sees is not counted again by the probes on the driver, and a process that
is counted by probes is counted once, however many others are.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402

check = L.Checks()
CHAINS = f"{L.PROGRAMS}/gpu_chains"


def start(name, kind, rounds):
    """A process of the command, its account in a file of its own."""
    driver = os.path.join(L.B, kind)
    return (f"LD_LIBRARY_PATH={driver} sh -c 'echo pid $$; exec {CHAINS} {rounds} 1000' "
            f">{os.path.join(L.TMP, name)} &")


def account(name):
    with open(os.path.join(L.TMP, name), encoding="utf-8") as f:
        chains = L.account(f.read())
    return chains[0].pid, sum(c.launches for c in chains)


# The first two are refused and then probed, which the third meets in its file, and so does the last.
names = {"odd-1": "simcuda-odd", "odd-2": "simcuda-odd", "odd-3": "simcuda-odd", "usual": "simcuda"}
script = " ".join(start(name, kind, 10000) for name, kind in names.items())
late = start("late", "simcuda-odd", 10000)
r = L.run(["sh", "-c", f"{script} wait; {late} wait"], metric="launches", timeout=150)
check(r.status == 0, f"status {r.status}")
counted = {}
for s in r.stacks:
    counted[s.pid] = counted.get(s.pid, 0) + s.weight
for name, kind in {**names, "late": "simcuda-odd"}.items():
    pid, made = account(name)
    got = counted.get(pid, 0)
    if kind == "simcuda":
        check(got == made, f"{name}: {got} launches instead of {made}")
        check(r.timed() == made, f"{name}: {r.timed()} timed instead of {made}")
    else:
        # From the moment on when the library has said that it can't.
        check(made / 10 < got <= made, f"{name}: {got} launches, it made {made}")
if check.failures:
    r.show()
sys.exit(check.status())
