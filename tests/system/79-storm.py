#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 120
# alone: thousands of processes
"""Thousands of processes that live for less than a millisecond each: seen, and cheap to look at."""
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ.get("TOP", "."), "tests/tools"))
import folded
import running
from running import Attached

if os.geteuid():
    running.skip("needs root")
check = folded.Checks()
RATE, SECONDS = 2000, 6
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1}


def seconds(text, pattern):
    found = re.search(pattern.replace("TIME", r"([\d.,]+) (us|ms|s)"), text)
    return float(found[1].replace(",", "")) * UNITS[found[2]] if found else float("nan")




def storm(**how):
    run = Attached("-a", **how)
    out = subprocess.run([os.path.join(folded.PROGRAMS, "cpu_storm"), str(RATE), str(SECONDS)],
                         capture_output=True, text=True, timeout=100, check=True).stdout
    nr, spent = re.fullmatch(r"(\d+) processes, ([\d.]+) s\n", out).groups()
    return run.end(signal.SIGINT), int(nr), float(spent)


rec, nr, spent = storm()
check(rec.status == 0 and nr >= 500, f"{nr} processes, status {rec.status}", rec.err)

# Nothing is lost silently: what is written adds up to what is said to have been seen.
said = int(re.search(r"([\d,]+) CPU samples", rec.err)[1].replace(",", ""))
check(rec.total() == said, f"{rec.total()} samples are written, {said} were taken", rec.err)
lost = re.findall(r"^gpucollect: .*\blost\b.*$", rec.err, re.M)
# A machine that is busy with others, too, may leave no time to read of all mappings: that is said.
check(all(re.search(r": [\d,]+: mapping events lost \([\d,]+\)$", line) for line in lost),
      "nothing else is lost", lost)

mine = [s for s in rec.settled() if s.comm in ("cpu_storm", "exe")]
n = sum(s.weight for s in mine)
check(n >= 0.3 * spent * running.FREQUENCY, f"{n} samples for {spent:.2f} s of them")
briefly = sum(s.weight for s in mine if "brief" in s.user)
whole = sum(s.weight for s in mine if folded.holds(s, "main", "brief") and not folded.is_cut(s))
check(briefly >= running.FEW and whole >= 0.95 * briefly, f"brief: {whole} of {briefly} are whole", rec.err)
unknown = sum(s.weight for s in mine if s.user and s.user[0] == "[no stack]")
check(unknown <= 0.05 * n, f"{unknown} of {n} are of processes that nothing is known of")
pids = {s.pid for s in mine}
check(len(pids) >= min(100, n // 4), f"they are of {len(pids)} processes")

# At the pace of every day. On a busy machine most of the samples are others'.
rec, nr, spent = storm(frequency=20)
own = seconds(rec.err, r"own cost: TIME of CPU time while capturing") + seconds(rec.err, r"TIME in BPF")
check(own < 0.1 * spent, f"our own {own:.3f} s are little beside {spent:.2f} s of {nr}", rec.err)
sys.exit(check.status())
