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

# "native": with the interpreter's own frames; "embedded": in a program that loads a libpython late.
L_MODES = ("library", "probes", "attached", "attached-probes")
MODES = (*L_MODES, "native", "embedded")
PROGRAM = os.path.join(os.environ["TOP"], "tests/programs/python/launches.py")
CALLS = os.path.join(os.path.abspath(L.PROGRAMS), "libpython_calls.so")
DRIVER = python_launches.own_driver()
check = L.Checks()


def embedding(path, version):
    """A command line that runs this interpreter's library in another program, and its environment."""
    prefix = os.path.dirname(os.path.dirname(path))
    library = os.path.join(prefix, f"lib/libpython{version[0]}.{version[1]}.so.1.0")
    if not os.path.exists(library):
        return None, {}
    return [os.path.join(L.PROGRAMS, "python_embed"), library], {"PYTHONHOME": prefix}


def one(path, version, mode):
    what, native = f"{pythons.name(path, version)} {mode}", mode == "native"
    target, env = embedding(path, version) if mode == "embedded" else ([path], {})
    if not target:
        return
    mode = mode if mode in L_MODES else "library"
    truth = os.path.join(L.TMP, "truth")
    if os.path.exists(truth):
        os.remove(truth)
    r = L.run([*target, PROGRAM], *(["--native-python"] if native else []), mode=mode, metric="launches",
              kind=DRIVER, TRUTH=truth, CALLS=CALLS, TEST_TMP=L.TMP, **env)
    check(r.status == 1 and r.out == "done\n", f"{what}: status {r.status}, it printed {r.out!r} {r.err}")
    python_launches.compare(check, what, r, (path, version), mode, truth, 450, native)


P.skip_without_product()
for interpreter, its_version in pythons.need():
    for one_mode in sys.argv[1:] or MODES:
        one(interpreter, its_version, one_mode)
sys.exit(check.status())
