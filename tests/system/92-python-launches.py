#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
"""Each launch of a Python program has the Python frames that the interpreter itself had.

tests/programs/python/launches.py launches from everywhere in Python and writes down its own stack at
each launch. All are compared, frame by frame: function, file, line and order, and the native functions
that are known to stand between. Started and attached to, with the library and by probes, under every
interpreter that is here.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402
import python_frames as P  # noqa: E402
import python_launches  # noqa: E402
import pythons  # noqa: E402

# "native": with the library, and with the interpreter's own frames.
MODES = ("library", "probes", "attached", "attached-probes", "native")
PROGRAM = os.path.join(os.environ["TOP"], "tests/programs/python/launches.py")
CALLS = os.path.join(os.path.abspath(L.PROGRAMS), "libpython_calls.so")
check = L.Checks()


def one(path, version, mode):
    what = f"{pythons.name(path, version)} {mode}"
    truth = os.path.join(L.TMP, "truth")
    if os.path.exists(truth):
        os.remove(truth)
    native = mode == "native"
    mode = "library" if native else mode
    r = L.run([path, PROGRAM], *(["--native-python"] if native else []), mode=mode, metric="launches", TRUTH=truth, CALLS=CALLS, TEST_TMP=L.TMP)
    check(r.status == 1 and r.out == "done\n", f"{what}: status {r.status}, it printed {r.out!r} {r.err}")
    python_launches.compare(check, what, r, (path, version), mode, truth, 450, native)


P.skip_without_product()
for interpreter, its_version in pythons.need():
    for one_mode in sys.argv[1:] or MODES:
        one(interpreter, its_version, one_mode)
sys.exit(check.status())
