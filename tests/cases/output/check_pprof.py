#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""O-04: structure of a pprof file (gzipped or plain). usage: check_pprof.py FILE
Checks: first string empty and only once; every string valid UTF-8; ids of mappings, locations and functions
not 0 and not used twice; every reference resolves; as many values in each sample as sample types; addresses
inside their mapping. Prints the counts."""
import gzip
import sys


def varint(b, i):
    x = s = 0
    while True:
        c = b[i]
        i += 1
        x |= (c & 127) << s
        s += 7
        if c < 128:
            return x, i


def fields(b):
    i = 0
    while i < len(b):
        key, i = varint(b, i)
        kind = key & 7
        if kind == 0:
            v, i = varint(b, i)
        elif kind == 2:
            n, i = varint(b, i)
            v = b[i:i + n]
            if len(v) != n:
                raise ValueError("cut off")
            i += n
        elif kind == 1:
            v, i = b[i:i + 8], i + 8
        elif kind == 5:
            v, i = b[i:i + 4], i + 4
        else:
            raise ValueError("wire type %d" % kind)
        yield key >> 3, v


def one(b):
    d = {}
    for f, v in fields(b):
        d.setdefault(f, []).append(v)
    return d


def numbers(values):
    out = []
    for v in values:
        if isinstance(v, int):
            out.append(v)
        else:
            i = 0
            while i < len(v):
                x, i = varint(v, i)
                out.append(x)
    return out


def num(d, f):
    return numbers(d.get(f, [0]))[-1]


bad = []
raw = open(sys.argv[1], "rb").read()
p = one(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
strings = p.get(6, [])
if not strings or strings[0] != b"":
    bad.append("the first string is not the empty one")
if sum(1 for s in strings if s == b"") > 1:
    bad.append("more than one empty string")
for i, s in enumerate(strings):
    try:
        s.decode("utf-8")
    except UnicodeDecodeError:
        bad.append("string %d is not UTF-8: %r" % (i, s[:60]))


def table(field, what):
    out = {}
    for b in p.get(field, []):
        d = one(b)
        ident = num(d, 1)
        if ident == 0:
            bad.append("%s with id 0" % what)
        if ident in out:
            bad.append("%s id %d twice" % (what, ident))
        out[ident] = d
    return out


mappings, locations, functions = table(3, "mapping"), table(4, "location"), table(5, "function")


def text(d, f, what, needed=False):
    i = num(d, f)
    if i >= len(strings):
        bad.append("%s: string %d does not exist" % (what, i))
    elif needed and not strings[i]:
        bad.append("%s without a name" % what)


types = p.get(1, [])
if not types:
    bad.append("no sample type")
for t in types:
    text(one(t), 1, "sample type", True)
for i, f in functions.items():
    text(f, 2, "function %d" % i, True)
    text(f, 3, "function %d" % i)
    text(f, 4, "function %d" % i)
for i, m in mappings.items():
    text(m, 5, "mapping %d" % i)
    name = strings[num(m, 5)] if num(m, 5) < len(strings) else b""
    if name.endswith(b" (deleted) (deleted)"):
        bad.append("mapping %d keeps the kernel's suffix" % i)
for i, loc in locations.items():
    m, at = num(loc, 2), num(loc, 3)
    if m and m not in mappings:
        bad.append("location %d: mapping %d does not exist" % (i, m))
    elif m and at and num(mappings[m], 3) and not num(mappings[m], 2) <= at < num(mappings[m], 3):
        bad.append("location %d lies outside its mapping" % i)
    for line in loc.get(4, []):
        line = one(line)
        if num(line, 1) not in functions:
            bad.append("location %d: function %d does not exist" % (i, num(line, 1)))
        if not 0 <= num(line, 2) < 1 << 31:
            bad.append("location %d: line %d" % (i, num(line, 2)))
samples = p.get(2, [])
for n, s in enumerate(samples):
    s = one(s)
    for ident in numbers(s.get(1, [])):
        if ident not in locations:
            bad.append("sample %d: location %d does not exist" % (n, ident))
    if len(numbers(s.get(2, []))) != len(types):
        bad.append("sample %d: %d values for %d types" % (n, len(numbers(s.get(2, []))), len(types)))
print("%d samples, %d locations, %d functions, %d mappings, %d strings" %
      (len(samples), len(locations), len(functions), len(mappings), len(strings)))
for b in bad[:40]:
    print("WRONG: " + b)
sys.exit(1 if bad else 0)
