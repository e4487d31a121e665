# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""L-02: a Python entry script that replaces itself by a native program.
usage: launcher.py PROGRAM [args]"""
import os
import sys


def prepare():
    x = 0
    for i in range(3000000):
        x += i
    return x


prepare()
os.execvp(sys.argv[1], sys.argv[1:])
