#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 200
# alone: switches a CPU off
"""The inputs E-01 to E-04: CPUs that are not there, namespaces, rights and parts of the system missing."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ.get("TOP", "."), "tests/tools"))
import folded
import running
from running import FREQUENCY, Attached, Target, capture, nearly_all, wait_for

if os.geteuid():
    running.skip("needs root")
check = folded.Checks()
ENV = os.path.join(os.environ["TOP"], "tests/cases/env")
CHAIN = ("main", "chain_a", "chain_b", "chain_c")


def remarks(rec):
    return [line for line in rec.err.splitlines() if re.match("gpucollect: (warning|error): ", line)]


def cpus():
    """E-01: more possible CPUs than there are; one that is off, and comes back during the capture."""
    chain = os.path.join(folded.CASES, "chain")
    targets = [Target(chain) for _ in range(os.cpu_count())]
    script = os.path.join(ENV, "fake_possible.sh")
    rec = capture("-a", within=[script])
    check(rec.status == 0 and len(remarks(rec)) <= 1, f"E-01: more possible CPUs: {rec.status}", rec.err)
    for target in targets:
        nearly_all(check, "E-01: more possible CPUs", rec, target.pid, *CHAIN)
    last = os.cpu_count() - 1
    switch = f"/sys/devices/system/cpu/cpu{last}/online"
    if last < 1 or not os.access(switch, os.W_OK) or not running.can(f"echo 1 >{switch}"):
        print("no CPU that can be switched off here")
        running.end_all()
        return
    rec = capture("-a", within=[script, "--offline"])
    check(rec.status == 0 and len(remarks(rec)) <= 1, f"E-01: a CPU is off: {rec.status}", rec.err)
    for target in targets:
        nearly_all(check, "E-01: a CPU is off", rec, target.pid, *CHAIN)

    pinned = Target("sh", "-c", f'taskset -c {last} "$@"', "sh", chain)
    run = Attached("-p", str(pinned.pid))
    try:
        running.sh(f"echo 0 >{switch}")
        rest = subprocess.run(["taskset", "-p", str(pinned.pid)], capture_output=True, text=True).stdout
    finally:
        running.sh(f"echo 1 >{switch}")
    subprocess.run(["taskset", "-pc", str(last), str(pinned.pid)], capture_output=True, check=True)
    before = ticks(pinned.pid)
    # The event that was on the CPU is dead for ever: only one that is opened anew sees this.
    wait_for(lambda: ticks(pinned.pid) >= before + 300, "three seconds of work on the CPU that came back")
    rec = run.end(2)
    n = rec.total()
    check(n >= FREQUENCY and rec.status == 0, f"E-01: {n} samples, most of them of a CPU that came back",
          f"{rest} {rec.err}")
    running.end_all()


def ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return int(f.read().rsplit(")", 1)[1].split()[11])


def pid_namespaces():
    """E-02: all in a new one; and the target in a child of gpucollect's."""
    script = os.path.join(ENV, "pidns.sh")
    chain = os.path.join(folded.CASES, "chain")
    path = os.path.join(folded.TMP, "ns.folded")
    argv = folded.command("-d", "2", frequency=FREQUENCY, path=path)
    env = dict(os.environ, SECS="60")
    r = subprocess.run([script, "same", *argv, "--", "env", "SECS=2", chain], capture_output=True,
                       text=True, env=env, stdin=subprocess.DEVNULL, timeout=100)
    rec = folded.Recording(r.returncode, r.stdout, r.stderr, path, FREQUENCY)
    pids = {s.pid for s in rec.stacks}
    check(rec.status == 0 and len(pids) == 1 and max(pids) < 20, f"E-02, same: numbers {pids}", rec.err)
    nearly_all(check, "E-02, same", rec, max(pids), *CHAIN)
    os.remove(path)

    r = subprocess.run([script, "child", *argv, "-p", "%P", "--", chain], capture_output=True, text=True,
                       env=env, stdin=subprocess.DEVNULL, timeout=100)
    seen = re.search(r"target is (\d+) here", r.stderr)
    rec = folded.Recording(r.returncode, r.stdout, r.stderr, path, FREQUENCY)
    nearly_all(check, "E-02, child", rec, int(seen[1]), *CHAIN)
    check({s.pid for s in rec.stacks} == {int(seen[1])}, "E-02, child: the numbers that gpucollect sees")


def mount_namespaces():
    """E-03: the target sees another driver than gpucollect under the same name."""
    inner, outer = (os.path.join(folded.B, kind, "libcuda.so.1") for kind in ("simcuda", "simcuda-high"))
    wait = f'while [ ! -e {folded.TMP}/go ]; do sleep 0.05; done; exec "$@"'
    target = Target(os.path.join(ENV, "mountns.sh"), os.path.join(folded.TMP, "driver"), inner, outer,
                    "libcuda.so.1", "sh", "-c", wait, "sh", os.path.join(folded.CASES, "launches"),
                    "3000", "100000", "1", "1000", works=False)
    line = target.process.stdout.readline()
    pid = int(re.fullmatch(r"target (\d+)\n", line)[1])
    path = os.path.join(folded.TMP, "launches.folded")
    said = os.path.join(folded.TMP, "launches.err")
    with open(said, "wb") as err:
        run = subprocess.Popen([folded.GPUCOLLECT, "-y", "-p", str(pid), "--no-inject", "--no-cpu",
                                "--metric", "launches", "-o", path], stdin=subprocess.DEVNULL, stderr=err)
    wait_for(lambda: "recording" in running.text_of(said), "recording")
    running.sh("touch go")
    out = target.process.communicate(timeout=100)[0]
    status = run.wait(timeout=60)
    with open(path, encoding="utf-8") as f:
        lines = f.read().splitlines()
    n = sum(int(s.rsplit(" ", 1)[1]) for s in lines)
    # The driver is known when it has been mapped: what is launched in that moment is not counted.
    check("launched 3000, last error 0" in out and status == 0 and 1500 <= n <= 3000,
          f"E-03: {n} launches of 3000, status {status}", out + running.text_of(said))
    check(all(";worker;do_launch;" in s and ";cuLaunchKernel;[GPU] " in s for s in lines),
          "E-03: names are those of the driver that the target has", lines[:3])
    running.end_all()


def rights():
    """E-04: one thing missing: said in one sentence and nothing started, or recorded all the same."""
    started = os.path.join(folded.TMP, "started")
    command = ["sh", "-c", f'touch {started}; exec "$@"', "sh", os.path.join(folded.CASES, "chain")]
    folder = os.path.join(folded.TMP, "anybody")
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    missing = {
        "nobody": "CAP_BPF", "bpfonly": "CAP_SYS_PTRACE", "noptrace": "CAP_SYS_PTRACE",
        "nobtf": "/sys/kernel/btf", "noproc": "CAP_BPF", "lockedmem": None, "notracefs": None,
    }
    for way, what in missing.items():
        path = os.path.join(folder, way)
        if os.path.exists(started):
            os.remove(started)
        r = subprocess.run([os.path.join(ENV, "rights.sh"), way,
                            *folded.command(frequency=FREQUENCY, path=path), "--", *command],
                           capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=100,
                           env=dict(os.environ, SECS="1"))
        rec = folded.Recording(r.returncode, r.stdout, r.stderr, path, FREQUENCY)
        if what:
            said = remarks(rec)
            check(rec.status == folded.NO_PERMISSION and len(said) == 1 and what in said[0],
                  f"E-04, {way}: refused, since {what} is missing: {rec.status}", rec.err)
            check(not os.path.exists(started), f"E-04, {way}: nothing was started")
        else:
            good = rec.total(lambda s: folded.holds(s, *CHAIN))
            check(rec.status == 0 and good >= running.FEW, f"E-04, {way}: {good} samples of chain_c",
                  f"{rec.status} {rec.err}")


try:
    for case in (cpus, pid_namespaces, mount_namespaces, rights):
        case()
finally:
    running.end_all()
sys.exit(check.status())
