#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is sampled of a process while gpucollect still attaches to it, and doesn't know its Python yet, is none of
the capture: each stack of a thread that is in Python for ever has Python frames."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402

TIMES = 6
PROGRAM = """
import ctypes, time
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuInit(0)
def inner(x):
    return x + 1
def outer():
    return sum(map(inner, range(100)))
print("ready", flush=True)
while True:
    outer()
"""
check = L.Checks()


def main():
    target = subprocess.Popen([sys.executable, "-c", PROGRAM], env=L.environment(), stdout=subprocess.PIPE, text=True)
    try:
        check(target.stdout.readline() == "ready\n", "the program is ready")
        for i in range(TIMES):
            path = os.path.join(L.TMP, f"{i}.folded")
            r = subprocess.run([L.GPUCOLLECT, "--metric", "cpu", "-F", "4999", "-d", "1s", "-y", "-o", path, "-v",
                                "-p", str(target.pid)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                               timeout=60, check=False)
            L.skip_without_bpf(r.returncode, r.stderr)
            check(r.returncode == 0 and "CPython" in r.stderr, f"status {r.returncode}: {r.stderr[-500:]}")
            stacks = L.read(path)
            bare = [s for s in stacks if not s.frames[0].startswith("[thread ") and
                    not any(f.startswith("<module>") for f in s.frames)]
            print(f"{sum(s.weight for s in stacks)} ns, {len(bare)} of {len(stacks)} stacks without Python", flush=True)
            check(stacks and not bare, f"without Python: {bare[:1]}")
    finally:
        target.kill()
        target.wait()
    return check.status()


sys.exit(main())
