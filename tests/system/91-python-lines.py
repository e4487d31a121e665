#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 900
"""Lines and names of Python code are the interpreter's own, for each version at hand: the line of every
instruction of its standard library (of every eighth module; PYTHON_TESTS=all: of all), and the names, read from a running process, of functions that have odd
ones. What is read while code objects come and go is never a mixture of two. Where an interpreter counts code
objects is found, and counts each."""
import ast
import os
import re
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import folded
import pythons

check = folded.Checks()
TOOL = os.path.join(folded.PROGRAMS, "python_lines")
SOURCES = os.path.join(os.environ["TOP"], "tests/programs")
ENOUGH = 100000
# Of head, name, file, table, each in two parts, and the head again, twice; with each head three texts in two parts.
MOST_READS = 27
SHARE = 8               # of the modules every eighth, others for the next interpreter
TORN = 300
TEXT = 65536            # characters of a name that are read


def script(python, name, *args, **kwargs):
    return subprocess.Popen(["nice", python, "-ES", os.path.join(SOURCES, name), *args],
                            stdout=subprocess.PIPE, **kwargs)


def compare(stream):
    """(instructions, differences, text)."""
    r = subprocess.run([TOOL, "compare"], stdin=stream, stdout=subprocess.PIPE, text=True, timeout=300)
    m = re.search(r"^(\d+) compared, (\d+) differ", r.stdout, re.M)
    return (int(m[1]), int(m[2]), r.stdout) if m else (0, -1, f"status {r.returncode}: {r.stdout}")


def differences_are_seen():
    """One code object, two instructions, on line 7 both; told as 7 and 8."""
    path = os.path.join(folded.TMP, "wrong")
    with open(path, "wb") as f:
        f.write(struct.pack("=IIII2s2I", 0, 7, 2, 2, b"\4\0", 7, 8))
    with open(path, "rb") as f:
        compared, differ, text = compare(f)
    check((compared, differ) == (2, 1), "a wrong line is seen", text)


def lines(python, name, turn):
    share = () if os.environ.get("PYTHON_TESTS") == "all" else (str(SHARE), str(turn))
    with script(python, "python_lines.py", *share, stderr=subprocess.PIPE) as p:
        compared, differ, text = compare(p.stdout)
        modules = p.stderr.read().decode()
    check(p.returncode == 0 and differ == 0 and compared > ENOUGH,
          f"{name}: {modules.strip()}, {text.strip()}")


def told(p):
    return ast.literal_eval(p.stdout.readline().decode())


def shown(text):
    """As C and UTF-8 can hold it."""
    if len(text) > TEXT:
        text = text[:TEXT] + "…"
    return re.sub("[\ud800-\udfff]", "\ufffd", text.replace("\0", "\u2400"))


def plain(field):
    """What the tool wrote, which has all but plain characters in octal; `!` ends a missing text."""
    raw = re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]), field)
    return raw.decode()


def compare_names(name, version, codes, out):
    reads, wrong = [], []
    for (_, function, file, first_line, units), line in zip(codes, out.splitlines()):
        field = line.split(b" ")
        if len(field) < 5:
            wrong.append((function[:60], line[:200]))
            continue
        reads.append(int(field[3]))
        if (plain(field[0]), plain(field[1])) != (shown(function), shown(file)):
            wrong.append((function[:60], file[:60], plain(field[0])[:60], plain(field[1])[:60]))
        elif list(map(int, field[4:])) != units + [first_line] or int(field[2]) != first_line:
            wrong.append((function[:60], first_line, units[:60], line[:200]))
    check(len(reads) == len(codes) > 500 and not wrong,
          f"{name}: {len(codes)} names, files and tables, {len(wrong)} wrong", wrong[:5])
    check(reads and max(reads) <= MOST_READS,
          f"{name}: {sum(reads) / max(1, len(reads)):.1f} reads on average, {max(reads, default=0)} at most")


def names(python, name, version):
    with script(python, "python_names.py", stdin=subprocess.PIPE) as p:
        of = told(p)
        codes = list(iter(lambda: told(p), None))
        args = [str(a) for code in codes for a in (code[0], len(code[4]))]
        r = subprocess.run([TOOL, "read", str(p.pid), *map(str, of), *args], capture_output=True,
                           timeout=100)
        p.stdin.close()
    if r.returncode == 77:
        print(name, r.stdout.decode())
        return
    compare_names(name, version, codes, r.stdout)


def torn(python, name):
    with script(python, "python_names.py", "torn") as p:
        try:
            of = told(p)
            addresses = told(p)
            r = subprocess.run([TOOL, "torn", str(p.pid), *map(str, of), str(TORN), *map(str, addresses)],
                               capture_output=True, text=True, timeout=100)
        finally:
            p.kill()
    if r.returncode != 77:
        check(r.returncode == 0, f"{name}: {r.stdout.strip()}")


def versions(python, name, version):
    """Found in the file, and read by the interpreter itself, while it makes code objects of which it knows."""
    with script(python, "python_versions.py", stdin=subprocess.PIPE) as p:
        r = subprocess.run([TOOL, "versions", told(p)], capture_output=True, text=True, timeout=100)
        p.stdin.write(r.stdout.encode())
        p.stdin.close()
        answer = p.stdout.read().decode()
    if version < (3, 12) or pythons.is_free_threaded(python):
        check(r.stdout == "nothing 0\n", f"{name}: has no versions that can be relied on", r.stdout)
    else:
        check(answer == "[100, 1, 200]\n", f"{name}: counts code objects at {r.stdout.strip()}", answer)


def main():
    found = pythons.need()
    differences_are_seen()
    for turn, (path, version) in enumerate(found):
        name = pythons.name(path, version)
        names(path, name, version)
        torn(path, name)
        versions(path, name, version)
        lines(path, name, turn)
    sys.exit(check.status())


main()
