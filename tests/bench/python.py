#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Rows of what Python frames cost, for an interpreter of each version at hand (tests/bpf/python_cost.c)."""
import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, TOP + "/tests/tools")
import pythons	# noqa: E402

B = os.environ.get("B", "build")
SKIP = 77


def main():
    rounds = os.environ.get("ROUNDS", "5")
    failed = False
    for version, path in {version: path for path, version in pythons.pythons()}.items():
        done = subprocess.run([B + "/tests/python_cost", rounds, "%d.%d" % version, path,
                               TOP + "/tests/bench/python_stack.py", B + "/programs/libpython_calls.so"],
                              timeout=300)
        failed |= done.returncode not in (0, SKIP)
    return failed


if __name__ == "__main__":
    sys.exit(main())
