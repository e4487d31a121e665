#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 200
"""Programs on a file system whose server may fall silent: named while it speaks, and never waited for."""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ.get("TOP", "."), "tests/tools"))
import folded
import running
from running import Attached, Target, capture, nearly_all, wait_for

running.own_mounts()
check = folded.Checks()
CHAIN = ("main", "chain_a", "chain_b", "chain_c")
STEADY = ("main", "steady_work")


class Far:
    """Mounts a file system with one program."""

    def __init__(self, name, program):
        self.folder = os.path.join(folded.TMP, name)
        os.mkdir(self.folder)
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(os.environ["TOP"], "tests/tools/fuse_file.py"), self.folder,
             os.path.join(folded.CASES, program)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "mounted\n":
            running.skip("no FUSE here: " + self.process.stderr.read())
        self.prog = self.folder + "/prog"

    def silent(self):
        self.process.send_signal(signal.SIGUSR1)
        time.sleep(0.2)

    def end(self):
        """Whoever waits for it is released."""
        self.process.kill()
        self.process.wait()
        subprocess.run(["umount", "-l", self.folder], check=False)


def helpers():
    """Of this test: others may record at the same time."""
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and comm(pid) == "gpucollect-far" and
            is_ours(pid)]


def is_ours(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as f:
            return f"TEST_TMP={folded.TMP}".encode() in f.read().split(b"\0")
    except OSError:
        return False


def comm(pid):
    try:
        return running.text_of(f"/proc/{pid}/comm").strip()
    except OSError:
        return None


def speaking():
    far = Far("speaking", "chain")
    target = Target(far.prog)
    nearly_all(check, "a server that answers, -p", capture("-p", str(target.pid)), target.pid, *CHAIN)
    nearly_all(check, "a server that answers, -a", capture("-a"), target.pid, *CHAIN)
    wait_for(lambda: not helpers(), "nobody is left")
    running.end_all()
    far.end()


def silent(when):
    """It falls silent before the capture, or during it."""
    far, near = Far(f"silent-{when}", "chain"), Target(os.path.join(folded.CASES, "steady"))
    target = Target(far.prog)
    if when == "before":
        far.silent()
    # Status and profile come although somebody waits in the kernel for ever.
    run = Attached("-p", f"{target.pid},{near.pid}")
    if when == "during":
        far.silent()
    time.sleep(2)
    check(bool(helpers()), f"silent {when}: read by a process of its own")
    rec = run.end(signal.SIGINT, secs=30)
    check(rec.status == 0, f"silent {when}: status {rec.status}", rec.err)
    nearly_all(check, f"silent {when}: others", rec, near.pid, *STEADY)
    n = rec.total(lambda s: s.pid == target.pid)
    # With no unwind information the frame pointer may lead astray, but the leaf is known by its module.
    marked = rec.total(lambda s: s.pid == target.pid and s.user and
                       (s.user[-1].startswith("prog+0x") or folded.holds(s, *CHAIN)))
    check(n >= running.FEW and marked >= 0.95 * n, f"silent {when}: {marked} of {n} are marked or named")
    far.process.send_signal(signal.SIGUSR2)
    wait_for(lambda: not helpers(), "nobody is left")
    running.end_all()
    far.end()


def gone():
    """The server is killed: the kernel answers in its place."""
    far = Far("gone", "chain")
    target = Target(far.prog)
    far.end()
    rec = capture("-p", str(target.pid))
    n = rec.total(lambda s: s.pid == target.pid)
    check(rec.status == 0 and n >= running.FEW, f"a server that is gone: {n} samples", rec.err)
    running.end_all()


try:
    for case in (speaking, lambda: silent("before"), lambda: silent("during"), gone):
        case()
finally:
    running.end_all()
sys.exit(check.status())
