#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 240
"""Targets that are over or scribble in the shared memory, few descriptors, nonsense in the environment."""
import mmap
import os
import random
import re
import resource
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ.get("TOP", "."), "tests/tools"))
import launches as L  # noqa: E402

check = L.Checks()
UNTIL = os.path.join(L.PROGRAMS, "gpu_until")
SCRIBBLES = 60


def collect(*args, env=None, files=None, end=60):
    """Status and lines of stderr; a run that doesn't end in time is an error of its own."""
    def limit():
        if files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    try:
        r = subprocess.run([L.GPUCOLLECT, *args], stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, env=env or L.environment(), timeout=end, preexec_fn=limit,
                           cwd=L.TMP, errors="replace")
    except subprocess.TimeoutExpired:
        return None, []
    return r.returncode, [s for s in r.stderr.splitlines() if s.startswith("gpucollect: ")]


def errors(said):
    return [s for s in said if s.startswith("gpucollect: error: ")]


def refused(name, result, status, *words):
    got, said = result
    check(got == status, f"{name}: status {got}, not {status}: {said}")
    check(len(errors(said)) == 1, f"{name}: not one error: {said}")
    for word in words:
        check(any(word in s for s in errors(said)), f"{name}: nothing of {word!r}: {said}")


def ended_targets():
    zombie = subprocess.Popen(["true"])
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    refused("ended, not yet waited for", collect("-p", str(zombie.pid), "--no-gpu", end=30), 2,
            f"process {zombie.pid} has ended")
    zombie.wait()

    for duration, status in (("60", 1), (None, 0)):
        busy = subprocess.Popen(["sh", "-c", "while :; do :; done"])
        killer = subprocess.Popen(["sh", "-c", f"sleep 4; kill -9 {busy.pid}"])
        args = ["-d", duration] if duration else []
        got, said = collect("-p", str(busy.pid), "--no-gpu", "-F", "99", *args, end=50)
        early = [s for s in said if "before the time" in s]
        check(got == status, f"target ends, -d {duration}: status {got}: {said}")
        check(len(early) == status, f"target ends, -d {duration}: {said}")
        killer.wait()
        busy.wait()


def surroundings():
    for value in ("", "1"):
        refused(f"GPUCOLLECT_DISABLE={value!r}",
                collect("--", "true", env=L.environment(GPUCOLLECT_DISABLE=value)), 77,
                "GPUCOLLECT_DISABLE")
    for value in ("garbage", "-1", "", "4294967295", "99999999999999999999"):
        refused(f"SUDO_UID={value!r}",
                collect("-a", "-d", "0.1", env=L.environment(SUDO_UID=value)), 125, "SUDO_UID", "unset")
    for files in (8, 20, 40, 63):
        refused(f"{files} descriptors", collect("--", "true", files=files), 125, "ulimit -n")
    got, said = collect("--metric", "launches", "-o", os.path.join(L.TMP, "few.folded"), "--", UNTIL,
                        files=64)
    check(got == 0 and not errors(said), f"64 descriptors: status {got}: {said}")


def own_cost():
    """The time that a short capture needs to start isn't held against it."""
    _, said = collect("--no-gpu", "--metric", "cpu", "--", "true")
    cost = [s for s in said if "own cost" in s]
    check(len(cost) == 1, f"own cost: {said}")
    for share in re.findall(r"([\d.]+) %", " ".join(cost)):
        check(float(share) <= 105, f"own cost: {cost}")


def segment(pid):
    """The shared memory of the library in a process, or None as long as there is none."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        for line in f:
            if "memfd:gpucollect" in line and " rw-s " in line:
                fd = os.open(f"/proc/{pid}/map_files/{line.split()[0]}", os.O_RDWR)
                first, last = (int(x, 16) for x in line.split()[0].split("-"))
                memory = mmap.mmap(fd, last - first)
                os.close(fd)
                return memory
    return None


def counters(memory, rng):
    """A page of the library's, without what the target itself goes by."""
    for offset in (128, 136, 144):
        memory[offset:offset + 8] = rng.choice((b"\xff" * 8, rng.randbytes(8)))


def ring(memory, rng):
    at = rng.randrange(len(memory) - (16 << 20), len(memory) - 4096)
    memory[at:at + 4096] = rng.randbytes(4096)


def head(memory, rng):
    memory[64:72] = rng.randbytes(8)


def target_of(child):
    """The process that launches, below gpucollect."""
    deadline = time.time() + 20
    while time.time() < deadline and child.poll() is None:
        found = subprocess.run(["pgrep", "-P", str(child.pid)], capture_output=True, text=True)
        for pid in found.stdout.split():
            try:
                memory = segment(pid)
            except OSError:
                continue
            if memory:
                return memory
        time.sleep(0.02)
    return None


def scribbled(what):
    """gpucollect goes on, and believes nothing that can't be."""
    rng = random.Random(what.__name__)
    path = os.path.join(L.TMP, what.__name__ + ".folded")
    child = subprocess.Popen([L.GPUCOLLECT, "-o", path, "--", UNTIL, "2", "2000"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, errors="replace", env=L.environment())
    memory = target_of(child)
    check(memory is not None, f"{what.__name__}: no shared memory")
    for _ in range(SCRIBBLES if memory else 0):
        what(memory, rng)
        time.sleep(0.02)
    try:
        out, err = child.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        check(False, f"{what.__name__}: doesn't end")
        return
    made = sum(int(s.split()[-2]) for s in out.splitlines() if s.startswith("chain "))
    check(child.returncode in (0, 2), f"{what.__name__}: status {child.returncode}: {err}")
    check("total " in out, f"{what.__name__}: the program didn't end well: {out} {err}")
    lost = [int(n.replace(",", "")) for s in err.splitlines() if " lost: " in s
            for n in re.findall(r"[\d,]*\d", s.split("lost:", 1)[1])]
    check(all(n <= 2 * made + 2 for n in lost), f"{what.__name__}: of {made} launches: {err}")
    check(what is not counters or lost, f"counters: nothing was lost: {err}")


if os.geteuid():
    print("needs root")
    sys.exit(L.SKIP)
ended_targets()
surroundings()
own_cost()
for how in (counters, ring, head):
    scribbled(how)
sys.exit(check.status())
