# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Targets that run already, wherever they live, and gpucollect attached to them; for the system tests.

A test that mounts calls own_mounts() first: what it mounts is gone with it, however it ends.
"""
import os
import shutil
import signal
import subprocess
import sys
import time

import folded

FREQUENCY = 499
FEW = 20


def own_mounts():
    """Goes on in a mount namespace of its own; the test is skipped where there is none to be had."""
    if os.geteuid():
        skip("needs root")
    if os.environ.get("OWN_MOUNTS"):
        return
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        skip("no mount namespaces here")
    os.environ["OWN_MOUNTS"] = "1"
    os.execvp("unshare", ["unshare", "-m", "--propagation", "private", sys.executable, *sys.argv])


def skip(why):
    print("skipped: " + why)
    sys.exit(folded.SKIP)


def sh(script, **variables):
    """Runs a piece of shell in TEST_TMP; its status is 0, or the test ends."""
    r = subprocess.run(["sh", "-ec", script], cwd=folded.TMP, env=dict(os.environ, **variables),
                       stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if r.returncode:
        print(f"{script}\nended with {r.returncode}:\n{r.stdout}{r.stderr}")
        sys.exit(1)
    return r.stdout


def can(script):
    return not subprocess.run(["sh", "-ec", script], cwd=folded.TMP, capture_output=True,
                              stdin=subprocess.DEVNULL).returncode


def wait_for(condition, what, secs=60):
    deadline = time.monotonic() + secs
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    print(f"waited {secs} s in vain: {what}")
    sys.exit(1)


def text_of(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


class Target:
    """A command whose last process is the one to attach to: `pid` as this test sees it."""
    all = []

    def __init__(self, *argv, works=True, comm=None, **env):
        self.comm = comm	# of the one that is wanted, where others work before it
        self.name = f"{os.getpid()}-{len(Target.all)}"
        self.process = subprocess.Popen(argv, cwd=folded.TMP, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        errors="replace", start_new_session=True,
                                        env=dict({"SECS": "120"}, **os.environ, TARGET=self.name,
                                                 **env))
        Target.all.append(self)
        # A wrapper sleeps; what is wanted burns CPU time.
        self.pid = wait_for(self.busy, f"{argv} works") if works else self.process.pid

    def members(self):
        """All processes of the command: they have inherited its mark."""
        mark = f"\0TARGET={self.name}\0".encode()
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open(f"/proc/{entry}/environ", "rb") as f:
                    if mark in b"\0" + f.read():
                        yield int(entry)
            except OSError:
                continue

    def busy(self):
        """The last of those that started each other, when it burns CPU time, as wrappers may have, too."""
        fields = {}
        for pid in self.members():
            try:
                comm, rest = text_of(f"/proc/{pid}/stat").split("(", 1)[1].rsplit(")", 1)
                fields[pid] = [comm, *rest.split()]
            except OSError:
                continue
        parents = {int(f[2]) for f in fields.values()}
        for pid, f in fields.items():
            if pid not in parents and f[1] != "Z" and int(f[12]) >= 10 and self.comm in (None, f[0]):
                return pid	# 10 ticks: 0.1 s
        return None

    def end(self):
        """Kills what is left of it."""
        for pid in self.members():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=30)
        self.process.stdout.close()


def end_all():
    for target in Target.all:
        target.end()
    Target.all.clear()


def capture(*options, within=(), name="running.folded", secs="1"):
    """gpucollect for a second, perhaps started by another command."""
    path = os.path.join(folded.TMP, name)
    if os.path.exists(path):
        os.remove(path)
    argv = [*within, *folded.command(*options, "-d", secs, frequency=FREQUENCY, path=path)]
    r = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                       errors="replace", timeout=200)
    folded.skip_without_bpf(r.returncode, r.stderr)
    return folded.Recording(r.returncode, r.stdout, r.stderr, path, FREQUENCY)


class Attached:
    """gpucollect at work: what it says stands in a file, since it may say much."""

    def __init__(self, *options, name="attached", within=(), frequency=FREQUENCY):
        self.frequency = frequency
        self.path = os.path.join(folded.TMP, name + ".folded")
        self.said = os.path.join(folded.TMP, name + ".err")
        if os.path.exists(self.path):
            os.remove(self.path)
        with open(self.said, "wb") as err:
            self.process = subprocess.Popen(
                [*within, *folded.command(*options, frequency=frequency, path=self.path)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)
        wait_for(lambda: "recording" in self.err() or self.process.poll() is not None, "recording")

    def err(self):
        return text_of(self.said)

    def end(self, number=None, secs=100):
        """Waits for its end, perhaps after a signal."""
        if number:
            self.process.send_signal(number)
        try:
            status = self.process.wait(timeout=secs)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            status = f"no end in {secs} s"
        folded.skip_without_bpf(status, self.err())
        return folded.Recording(status, "", self.err(), self.path, self.frequency)


def nearly_all(check, what, rec, pid, *names, least=0.99):
    """The process has samples, and all but a few of its stacks hold these frames and reach their root."""
    mine = [s for s in rec.settled() if s.pid == pid]
    n = sum(s.weight for s in mine)
    good = sum(s.weight for s in mine if folded.holds(s, *names) and not folded.is_cut(s))
    # One or two may be of the moments between what the program does all the time.
    if not check(n >= FEW and good >= least * n - 2, f"{what}: {';'.join(names)} in {good} of {n}",
                 f"status {rec.status}: {rec.err}"):
        folded.show(mine)


def copy(program, to):
    os.makedirs(os.path.dirname(os.path.join(folded.TMP, to)) or ".", exist_ok=True)
    shutil.copy2(os.path.join(folded.CASES, program), os.path.join(folded.TMP, to))
    return os.path.join(folded.TMP, to)
