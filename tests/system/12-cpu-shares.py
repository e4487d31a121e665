#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 100
# alone: shares of CPU time
"""Shares of CPU time agree with the program's own clock, and widths are samples times the period.

Each sample is a draw: of n, a function with the share p gets n p, give or take sqrt(n p (1 - p)).
Three standard errors are exceeded by chance once in 370 draws, but not twice in a row.
"""
import math
import os
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import folded

PROGRAM = os.path.join(folded.PROGRAMS, "cpu_shares")
SECONDS, FREQUENCY = 5, 997


def deviations(rec, own):
    """name -> by how many standard errors its share of the samples is off."""
    got = {name: rec.total(lambda s, n=name: s.user and s.user[-1] == n) for name in own}
    n, total_ns = sum(got.values()), sum(own.values())
    out = {}
    for name, ns in own.items():
        p = ns / total_ns
        out[name] = (got[name] - n * p) / math.sqrt(n * p * (1 - p))
        print(f"      {name}: {got[name]} samples, {n * p:.0f} by its own clock, "
              f"{out[name]:+.1f} standard errors")
    return out


def own_clock(rec):
    return {name: int(ns) for name, ns in (line.split() for line in rec.out.splitlines())}


def main():
    checks = folded.Checks()
    rec = folded.record([PROGRAM, str(SECONDS)], frequency=FREQUENCY)
    checks(rec.status == 0, f"status 0: {rec.status}")
    own = own_clock(rec)
    n, total_ns = rec.total(lambda s: s.user and s.user[-1] in own), sum(own.values())
    # The clock that gives the samples is the one that bounds them: none can be made up.
    checks(n > 0.5 * SECONDS * FREQUENCY, f"{n} samples in {total_ns / 1e9:.2f} s of CPU time")
    checks(n < 1.1 * total_ns / 1e9 * FREQUENCY, "no more samples than the CPU time gives")
    off = {name for name, by in deviations(rec, own).items() if abs(by) > 3}
    if off:
        again = folded.record([PROGRAM, str(SECONDS)], frequency=FREQUENCY)
        off &= {name for name, by in deviations(again, own_clock(again)).items() if abs(by) > 3}
    checks(not off, "shares within three standard errors", off)
    inside = rec.total(lambda s: s.user and s.user[-1] in own and not s.kernel)
    whole = rec.total(lambda s: s.user and s.user[-1] in own and not s.kernel and
                      folded.holds(s, "main", s.user[-1]) and not folded.is_cut(s))
    checks(inside == whole, f"{whole} of {inside} stacks go from the start through main")
    if checks.failures:
        folded.show(rec.stacks)
        print(rec.err)
    return checks.status()


if __name__ == "__main__":
    sys.exit(main())
