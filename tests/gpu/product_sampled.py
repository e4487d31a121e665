#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What looking at some launches or at all of them costs a PyTorch program on a real GPU: product_sampled.py
GPUCOLLECT attaches to one program again and again, and compares each time with the program alone just before.
Exit status 1 if it could not.
"""
import re
import statistics
import subprocess
import sys
import time

from product_attach import Recording

ALONE, RECORDED, BOTH = 1.2, 2.0, 4.2	# seconds; both with coming and going
WORK = [("relu", ("auto", "all") * 6), ("matmul", ("auto",) * 4), ("layer", ("auto", "all") * 3)]


class Loop:
    """Its pace: (when, us an iteration) of each quarter of a second."""

    def __init__(self):
        argv = ["python3", "product_torch.py", "loop"]
        for name, hows in WORK:
            argv += [str(BOTH * len(hows) + 3), name]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        self.paces = []

    def until(self, when, word=None):
        """Reads lines up to that time, or that word."""
        for line in self.process.stdout:
            m = re.match(r"pace ([\d.]+) ([\d.]+)", line)
            if m:
                self.paces.append((float(m[1]), float(m[2])))
            if (word and line.split()[:2] == ["started", word]) or (not word and m and float(m[1]) > when):
                return
        raise SystemExit("  WRONG: the loop has ended")

    def between(self, begin, end):
        """Quarters that lie in it whole; a pace stands for the quarter before it was told."""
        inside = [us for when, us in self.paces if when - 0.27 > begin and when < end]
        return statistics.median(inside) if inside else float("nan")


def one(loop, gpucollect, name, how, number):
    begin = time.monotonic()
    loop.until(begin + ALONE)
    alone = loop.between(begin, time.monotonic())
    rec = Recording(gpucollect, loop.process.pid, f"sampled-{name}-{number}", "--launches", how, "--metric", "gpu")
    begin = time.monotonic()
    loop.until(begin + RECORDED)
    recorded = loop.between(begin, time.monotonic())
    rec.stop()
    seen = re.search(r"looked at ([\d,]+) of ([\d,]+)", rec.said)
    error = re.search(r"standard error of the sum: (\S+) %", rec.said)
    got = re.search(r"([\d,]+) launches \(.*?, (\S+ \S+) of GPU time", rec.said)
    print(f"  {name:7} {how:5} alone {alone:8.3f} us, recorded {recorded:8.3f} us, ratio {recorded / alone:.4f}; "
          f"looked at {seen[1] + ' of ' + seen[2] if seen else 'all'}; {got[1] if got else '?'} launches, "
          f"{got[2] if got else '?'}, standard error {error[1] if error else '-'} %", flush=True)
    return recorded / alone


def main():
    loop, ratios = Loop(), {}
    for name, hows in WORK:
        loop.until(0, name)
        loop.until(time.monotonic() + 0.5)
        for number, how in enumerate(hows):
            ratios.setdefault((name, how), []).append(one(loop, sys.argv[1], name, how, number))
    loop.process.kill()
    for (name, how), all_of in ratios.items():
        print(f"  {name:7} {how:5} median ratio {statistics.median(all_of):.4f} of {len(all_of)}: "
              f"{', '.join(f'{x:.4f}' for x in sorted(all_of))}", flush=True)


main()
