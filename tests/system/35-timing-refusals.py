#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where the driver is not as expected nothing is touched, and the segment says why.

What is refused: entries of an unknown shape, slots that another tool has taken, two drivers. A driver
without the calls that came later is used as far as it goes.
"""
import os
import shutil
import sys

import timing
from timing import ARMED, REFUSED, REASON_EXIT, REASON_SHAPE, REASON_SLOT_FOREIGN, RUNNING, Run, \
    case, program

checks = timing.Checks()
TOOL = timing.compiled("tool.so", ["tests/programs/timing_tool.c"], "-shared", "-fPIC")
REASON_TWO_DRIVERS = 2
# long enough to be found by a collector that only looks now and then
STEADY = program("gpu_hazards", "steady", 60, 5)
LAUNCHES = 60
plain = Run(STEADY, library="/nonexistent")


def refused(where, run, reason, detail=None):
    channel = run.channel
    checks.equal((channel.state, channel.reason), (REFUSED, reason), where)
    if detail is not None:
        checks.equal(channel.detail, detail, where, "detail")
    checks.equal((channel.slots, channel.count("launched"), channel.results), (0, 0, []), where)
    checks.equal((run.status, run.stdout), (plain.status, plain.stdout), where, "the program")
    checks.equal(len(run.truth()), LAUNCHES, where, "launches")


refused("odd", Run(STEADY, kind="simcuda-odd"), REASON_SHAPE, 1)

run = Run(STEADY, preload=TOOL, TIMING_TOOL="foreign")
refused("foreign", run, REASON_SLOT_FOREIGN, 1)
checks("tool saw 60\n" in run.stderr, "foreign: the tool goes on", run.stderr)

copy = os.path.join(timing.TMP, "copy")
os.makedirs(copy, exist_ok=True)
shutil.copy(os.path.join(timing.B, "simcuda-old/libcuda.so.1"), copy)
run = Run(STEADY, preload=TOOL, TIMING_TOOL="two",
          TIMING_COPY=os.path.join(copy, "libcuda.so.1"))
refused("two drivers", run, REASON_TWO_DRIVERS)

# No descriptor for the segment: nobody can be told, nothing is touched.
run = Run(case("launches", 100), preload=TOOL, TIMING_TOOL="full",
          STANDIN_TRUTH="")
checks.equal((run.status, run.stdout, len(run.channels)), (0, "launched 100, last error 0\n", 0), "full")

# Loaded, but the program never calls the driver again.
run = Run([sys.executable, "-c", "import ctypes, time; ctypes.CDLL('libcuda.so.1').cuInit(0); "
           "time.sleep(0.3)"])
checks.equal((run.channel.state, run.channel.count("launched")), (ARMED, 0), "no launch")

# Slots in read-only pages, jumps instead of calls: all the same to it.
for kind in ("simcuda", "simcuda-relro", "simcuda-old", "simcuda-high"):
    run = Run(STEADY, kind=kind)
    checks.equal((run.channel.state, run.channel.reason), (RUNNING, REASON_EXIT), kind)
    checks.equal(run.channel.count("launched"), LAUNCHES, kind)
    checks.equal(run.stdout, plain.stdout, kind, "output")
    # every launch entry that there is, and the upkeep
    checks(run.channel.slots & 0x1ffe == 0x1ffe and bin(run.channel.slots).count("1") >= 25, kind,
           f"slots {run.channel.slots:x}")

# A driver of before 12.3: no names, no cheap question about events, no libraries.
old = os.path.join(timing.TMP, "old")
os.makedirs(old, exist_ok=True)
with open(os.path.join(timing.B, "simcuda/libcuda.so.1"), "rb") as f:
    image = f.read()
for name in (b"cuEventElapsedTime_v2", b"cuFuncGetName", b"cuKernelGetName", b"cuLibraryUnload",
             b"cuKernelGetFunction"):
    checks(b"\0" + name + b"\0" in image, "old driver: has", name)
    image = image.replace(b"\0" + name + b"\0", b"\0xx" + name[2:] + b"\0")
with open(os.path.join(old, "libcuda.so.1"), "wb") as f:
    f.write(image)
run = Run(case("launches", 300, 20000), env={"LD_LIBRARY_PATH": old})
timing.account(checks, run.channel, "old driver")
checks.equal((run.status, run.stdout), (0, "launched 300, last error 0\n"), "old driver")
# It doesn't look for ends all the time there, so some of those that run ahead are left out.
causes = run.channel.by_cause()
checks(causes[timing.NONE] + causes[timing.OUTSTANDING] == 300 and causes[timing.NONE] > 100, "old driver: timed", causes)
checks.equal({r.load for r in run.channel.results}, {timing.UNKNOWN}, "old driver: load")
checks(all(abs(r.duration - 20000) < 2 for r in run.channel.results if not r.cause), "old driver: times")
checks.equal([n[1:] for n in run.channel.names.values()], [(2, "")], "old driver: names")

# Only counted: neither a probe nor a time.
run = Run(program("gpu_hazards", "steady", 300, 3), "-s", 0)
counts = run.channel
checks.equal(counts.count("launched"), 300, "only counted")
checks(counts.count("probes") < 60, "only counted: probes", counts.count("probes"))
sys.exit(checks.status())
