# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The Python interpreters of this machine, for the tests of Python frames.

PYTHONS=PATH:PATH in the environment names them instead of a search. With PYTHON_TESTS=all a test does on each
what it otherwise does on some of them.
"""
import functools
import glob
import os
import re
import subprocess
import sys

SKIP = 77
OLDEST = (3, 8)
PLACES = ("~/.pyenv/versions/*/bin", "/usr/bin", "/usr/local/bin", "/opt/python*/bin", "/opt/*/bin")
NAME = re.compile(r"python(?:\d(?:\.\d+)?t?)?")
ASK = "import sys; print(sys.version_info[0], sys.version_info[1], hasattr(sys, 'pypy_version_info'))"


def is_program(path):
    """No script, as the shims of version managers are."""
    try:
        with open(path, "rb") as f:
            return f.read(4) == b"\x7fELF" and os.access(path, os.X_OK)
    except OSError:
        return False


def candidates():
    if os.environ.get("PYTHONS"):
        yield from os.environ["PYTHONS"].split(":")
        return
    folders = os.environ.get("PATH", "").split(":")
    for place in PLACES:
        folders += sorted(glob.glob(os.path.expanduser(place)))
    for folder in folders:
        if os.path.isdir(folder):
            for name in sorted(filter(NAME.fullmatch, os.listdir(folder))):
                yield os.path.join(folder, name)


@functools.lru_cache
def version(path):
    """(3, 11), or None where it is no CPython."""
    try:
        r = subprocess.run([path, "-ES", "-c", ASK], stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    m = re.fullmatch(r"\(?(\d+),? (\d+),? (?:False|'?False'?)\)?\n", r.stdout)
    return (int(m[1]), int(m[2])) if m and r.returncode == 0 else None


@functools.lru_cache
def is_free_threaded(path):
    ask = "import sysconfig; print(sysconfig.get_config_var('Py_GIL_DISABLED'))"
    r = subprocess.run([path, "-ES", "-c", ask], capture_output=True, text=True, check=True)
    return r.stdout.strip() == "1"


@functools.lru_cache
def everything():
    """(path, version) of every CPython, of each file once, in the order of versions."""
    found = {}
    for path in candidates():
        real = os.path.realpath(path)
        if real not in found and is_program(real):
            found[real] = version(real)
    return sorted(((p, v) for p, v in found.items() if v), key=lambda f: (f[1], f[0]))


def pythons(oldest=OLDEST, before=(4, 0)):
    """Those from `oldest` on, as (path, (major, minor))."""
    return [(p, v) for p, v in everything() if oldest <= v < before]


def need(oldest=OLDEST, before=(4, 0)):
    """The same; the test is skipped where there is none."""
    found = pythons(oldest, before)
    if not found:
        print(f"skipped: no CPython from {oldest[0]}.{oldest[1]} on here")
        sys.exit(SKIP)
    return found


def share(items, turn, of=3):
    """Every third of the items, others for the next interpreter, each of them for some; PYTHON_TESTS=all: all."""
    if os.environ.get("PYTHON_TESTS") == "all":
        return list(items)
    return [item for i, item in enumerate(items) if (i + turn) % of == 0]


def name(path, of):
    """What a test calls it: 3.11 (/usr/bin)."""
    return f"{of[0]}.{of[1]} ({os.path.dirname(path)})"


if __name__ == "__main__":
    for found_path, found_version in everything():
        print(name(found_path, found_version), found_path)
