# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Calls a C function from Python stacks of any depth, as asked on stdin: "run|runs DEPTH TIMES".

run: every function is called by the one before, which one C call of the interpreter may do. runs: every
function is called by C. Below the DEPTH functions, all of them different, is this module's frame.
"""
import ctypes
import sys

site = ctypes.CDLL(sys.argv[1]).calls_spin
FIRST = "def %s0(times):\n    for _ in range(times):\n        site(0)\n"
CALL = {"run": "def run%d(times):\n    run%d(times)\n",
        "runs": "def runs%d(times):\n    next(map(runs%d, (times,)))\n"}
made = {"run": 0, "runs": 0}

print("ready", flush=True)
for line in iter(sys.stdin.readline, ""):
    kind, depth, times = line.split()
    while made[kind] < int(depth):
        n = made[kind]
        exec(CALL[kind] % (n, n - 1) if n else FIRST % kind)
        made[kind] += 1
    globals()["%s%d" % (kind, int(depth) - 1)](int(times))
    print("done", flush=True)
