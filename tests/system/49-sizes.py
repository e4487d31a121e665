#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 120
"""Registers and static shared memory of each kernel are those that its image was given, and asking for them is harmless."""
import collections
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402
import terminal  # noqa: E402

check = L.Checks()
SIZES = [f"{L.PROGRAMS}/gpu_sizes"]
OUT, TRACE = os.path.join(L.TMP, "o.folded"), os.path.join(L.TMP, "trace")
ASKED = ("cuFuncGetAttribute", "cuKernelGetAttribute")


def account(out):
    """(name, registers, shared memory) -> launches, as the program printed them."""
    want = collections.Counter()
    for name, registers, shared, n in re.findall(r"^size (\S+) (\d+) (\d+) (\d+)$", out, re.M):
        want[name, *((int(registers), int(shared)) if registers != "0" else (None, None))] += int(n)
    check(len(want) == 11, f"the program's account: {out}")
    return want


def summary(err):
    found = [json.loads(s) for s in err.splitlines() if s.startswith('{"gpucollect": "summary"') or
             s.startswith('{"gpucollect":"summary"')]
    check(len(found) == 1, f"no summary: {err}")
    return found[0] if found else {"kernels": []}


def kernels(err):
    got = collections.Counter()
    for k in summary(err)["kernels"]:
        got[k["name"], k["registers"], k["static_shared_bytes"]] += k["launches"]
        check(k["name"] == k["mangled"] and k["gpu_ns"] > 0, f"{k}")
    return got


def trace(path):
    with open(path, encoding="utf-8") as f:
        rows = [line.split() for line in f]
    os.remove(path)
    return [(row[2], row[3]) for row in rows]


def started():
    for how in ("all", "auto"):
        r = subprocess.run([L.GPUCOLLECT, "--json", "--launches", how, "--metric", "gpu", "-y", "-o", OUT, "--", *SIZES],
                           env=L.environment(STANDIN_TRACE=TRACE), capture_output=True, text=True, timeout=60)
        L.skip_without_bpf(r.returncode, r.stderr)
        check(r.returncode == 0, f"{how}: status {r.returncode} {r.stderr}")
        check("the handle is another" not in r.stdout, f"{how}: the handle did not come again")
        want, got = account(r.stdout), kernels(r.stderr)
        check(got == want, f"{how}: {got}\n      instead of {want}")
        # Two a kernel; again where a module was unloaded meanwhile, or another context destroyed.
        calls = trace(TRACE)
        asked = [c for c in calls if c[0] in ASKED]
        check(2 * (len(want) - 1) <= len(asked) <= 4 * len(want) and all(result == "0" for _, result in asked),
              f"{how}: asked {collections.Counter(asked)}")
        capturing = False
        for name, _ in calls:
            capturing = (capturing or name == "cuStreamBeginCapture_v2") and name != "cuStreamEndCapture"
            check(not (capturing and name in ASKED), f"{how}: asked while a stream captures")
    # Folded stacks are by name.
    stacks = collections.Counter()
    for s in L.read(OUT):
        stacks[s.kernel] += 1
    check(stacks["spin_twin"] == 1, f"folded: {stacks}")


def attached():
    """Which context is the primary one was not seen: the first one is taken for it."""
    gate = L.Gate()
    p = subprocess.Popen(SIZES, env=L.environment(**gate.variable), stdout=subprocess.PIPE, text=True)
    L.wait_for(gate.pids, "the gate")
    g = L.Attached([p.pid], "--json", "--launches", "all", "--metric", "gpu", "-y", "-o", OUT)
    L.wait_for(lambda: '"recording' in g.said() or g.process.poll() is not None, "recording")
    L.wait_for(lambda: L.is_entered(p.pid, "simcuda", "library"), "entered", 30)
    gate.let_through()
    out, _ = p.communicate(timeout=60)
    check(g.process.wait(30) == 0 and p.returncode == 0, f"attached: {g.said()}")
    gate.close()
    want = account(out)
    got = kernels(g.said())
    check(got == want, f"attached: {got}\n      instead of {want}")


def refused():
    """A driver that doesn't tell, or hasn't the calls: all is as before, the sizes aren't known."""
    for fault in ("cuFuncGetAttribute:1+:1,cuKernelGetAttribute:1+:1",):
        r = subprocess.run([L.GPUCOLLECT, "--json", "--launches", "all", "--metric", "gpu", "-y", "-o", OUT, "--", *SIZES],
                           env=L.environment(STANDIN_FAULT=fault), capture_output=True, text=True, timeout=60)
        want = collections.Counter()
        for (name, *_), n in account(r.stdout).items():
            want[name, None, None] += n
        check(r.returncode == 0 and kernels(r.stderr) == want, f"refused: {r.returncode} {r.stderr}")


def shown():
    """The table on a terminal has them where there is room."""
    for columns, room in ((120, True), (80, False)):
        gate = L.Gate()
        p = subprocess.Popen(SIZES, env=L.environment(**gate.variable), stdout=subprocess.DEVNULL)
        L.wait_for(gate.pids, "the gate")
        t = terminal.Terminal([L.GPUCOLLECT, "--launches", "all", "--metric", "gpu", "-p", str(p.pid)], columns=columns)
        t.wait_for("recording")
        L.wait_for(lambda pid=p.pid: L.is_entered(pid, "simcuda", "library"), "entered", 30)
        gate.let_through()
        p.wait(60)
        status = t.wait()
        gate.close()
        line = [s for s in t.text.split("\r\n") if s.endswith("  spin_twin")]
        check(status == 0 and len(line) == 1 and ("40-64" in line[0] and "0-1024" in line[0]) == room and
              ("static smem" in t.text) == room, f"{columns} columns: {status} {t.text}")


if os.geteuid():
    print("needs root")
    sys.exit(L.SKIP)
started()
attached()
refused()
shown()
sys.exit(check.status())
