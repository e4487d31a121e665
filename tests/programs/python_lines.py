# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Compiles the standard library of the Python that runs this, and writes to stdout for each code object
what tests/programs/python_lines.c compares: how its lines are told, and the interpreter's own account
of the line of every two bytes of code, 0 where there is none."""
import array
import dis
import os
import struct
import sys
import sysconfig
import types
import warnings

LNOTAB, LINES_310, LINES_311 = range(3)
KIND = LNOTAB if sys.version_info < (3, 10) else LINES_310 if sys.version_info < (3, 11) else LINES_311


def ranges(code):
    """(start, end, line or None) in order."""
    if KIND != LNOTAB:
        yield from code.co_lines()
        return
    starts = list(dis.findlinestarts(code)) + [(len(code.co_code), None)]
    for (start, line), (end, _) in zip(starts, starts[1:]):
        yield start, end, line


def account(code):
    lines = array.array("I")
    for start, end, line in ranges(code):
        if start != 2 * len(lines) or end % 2:
            sys.exit(f"{code}: a range from {start} to {end} behind {len(lines)} units")
        lines.extend([line or 0] * ((end - start) // 2))
    if 2 * len(lines) != len(code.co_code):
        sys.exit(f"{code}: {len(code.co_code)} bytes of code, {2 * len(lines)} with lines")
    return lines


def write(code, out):
    table = code.co_lnotab if KIND == LNOTAB else code.co_linetable
    lines = account(code)
    out.write(struct.pack("=IIII", KIND, code.co_firstlineno, len(table), len(lines)))
    out.write(table)
    out.write(lines.tobytes())
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            write(const, out)


def sources():
    top = sysconfig.get_paths()["stdlib"]
    for folder, folders, files in os.walk(top):
        folders[:] = sorted(d for d in folders if d not in ("site-packages", "dist-packages"))
        for name in sorted(files):
            if name.endswith(".py"):
                yield os.path.join(folder, name)


def main():
    modules, number = 0, -1
    share, turn = map(int, sys.argv[1:3] or (1, 0))
    for path in sources():
        number += 1
        if number % share != turn % share:
            continue
        try:
            with open(path, "rb") as f:
                code = compile(f.read(), path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError):
            continue        # some of the library's own tests are meant to be like that
        write(code, sys.stdout.buffer)
        modules += 1
    sys.stdout.buffer.flush()
    print(modules, "modules", file=sys.stderr)


warnings.simplefilter("ignore")
main()
