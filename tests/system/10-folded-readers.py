#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Folded files read the same in flamegraph.pl, inferno and speedscope, and as docs/output.md says.

Without arguments: the golden files, which the program's output equals byte for byte in the unit
tests, and a list of lines that must be found wrong. With arguments: these files.
"""
import os
import re
import sys

TOP = os.environ.get("TOP", ".")
NUMBER = re.compile(rb"^(.*)\s+?(\d+(?:\.\d*)?)$", re.DOTALL)
# A dot of JavaScript does not match these; the line would vanish.
SPEEDSCOPE = re.compile("^([^\n\r\u2028\u2029]*) (\\d+)$", re.ASCII)


def flamegraph(line):
    m = NUMBER.match(line)
    if not m:
        return "flamegraph.pl ignores it"
    if NUMBER.match(m[1]):
        return "flamegraph.pl takes it for a difference of two counts"
    return m[1], m[2]


def inferno(line):
    stack, _, count = line.rpartition(b" ")
    if line.startswith(b"#"):
        return "inferno takes it for a comment"
    if not re.fullmatch(rb"\d+(\.\d*)?", count):
        return "inferno ignores it"
    if re.fullmatch(rb"\d+(\.\d*)?", stack.rpartition(b" ")[2]) and b" " in stack:
        return "inferno takes it for a difference of two counts"
    return stack, count


def speedscope(line):
    m = SPEEDSCOPE.match(line.decode("utf-8", "replace"))
    if not m:
        return "speedscope skips it"
    if not int(m[2]):
        return "speedscope drops a weight of 0"
    return m[1].encode(), m[2].encode()


def wrong_in_line(line):
    """What is wrong with it, or None."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return "not UTF-8"
    if re.search("[\x00-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]", text):
        return "a control character"
    want = tuple(line.rsplit(b" ", 1))
    for reader in flamegraph, inferno, speedscope:
        got = reader(line)
        if got != want:
            return got if isinstance(got, str) else "%s reads %r" % (reader.__name__, got)
    stack, weight = want
    if not re.fullmatch(rb"[1-9][0-9]*", weight):
        return "the weight is no plain positive integer"
    for frame in stack.split(b";"):
        if not frame:
            return "a frame without a name"
        if frame != frame.strip(b" "):
            return "a frame with blanks at an end"
    if not re.search(rb"^[^;]* \(pid \d+\)(;|$)", stack):
        return "the first frame is no process"
    return None


def wrong_in_file(data):
    if data and not data.endswith(b"\n"):
        yield 0, "the last line has no end"
    last = None
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        what = wrong_in_line(line)
        if what:
            yield number, what
            continue
        stack = line.rsplit(b" ", 1)[0]
        if last is not None and stack <= last:
            yield number, "not sorted, or twice"
        last = stack


BAD = [
    b"a (pid 1);f 0", b"a (pid 1);f 1.5", b"a (pid 1);f -1", b"a (pid 1);f", b"a (pid 1);;f 1",
    b"a (pid 1);f; 1", b"a (pid 1);f\t1", b"a (pid 1);stream 7 1", b"a (pid 1);stream 7. 1",
    b"a (pid 1);x 1.5 1", b"#a (pid 1);f 1", b"a (pid 1);\xff 1", b"a (pid 1);\x1b[m 1",
    b"a (pid 1);a\rb 1", b"a (pid 1);x\xe2\x80\xa8y 1", b"a (pid 1);x\xc2\x85y 1", b"a (pid 1);x\xe2\x80\xaey 1", b"a (pid 1);\xef\xbb\xbfx 1", b"",
    b"main;f 1", b"a (pid 1);f  1", b" a (pid 1);f 1", b"a (pid 1);f 01",
]


def main():
    files = sys.argv[1:]
    bad = 0
    if not files:
        golden = os.path.join(TOP, "tests", "golden")
        files = [os.path.join(golden, n) for n in sorted(os.listdir(golden))
                 if n.endswith(".folded")]
        for line in BAD:
            if wrong_in_line(line) is None:
                print("not found wrong: %r" % line)
                bad += 1
        for data in b"a (pid 1) 1\na (pid 1) 1\n", b"b (pid 1) 1\na (pid 1) 1\n", b"a (pid 1) 1":
            if not list(wrong_in_file(data)):
                print("not found wrong: %r" % data)
                bad += 1
    for path in files:
        with open(path, "rb") as f:
            data = f.read()
        for number, what in wrong_in_file(data):
            print("%s:%d: %s" % (path, number, what))
            bad += 1
    if not files:
        print("no file to check")
        bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
