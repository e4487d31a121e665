#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 120
"""A command under gpucollect starts as if its caller had started it, and waiting for it costs nothing."""
import os
import resource
import signal
import subprocess
import sys
import time

GPUCOLLECT = os.environ["GPUCOLLECT"]
os.chdir(os.environ["TEST_TMP"])
failures = 0

# What a process has from the one that started it, without what differs from process to process.
SHOW = r"""
import os, resource, signal
for name in ("NOFILE", "MEMLOCK", "CORE", "NPROC", "STACK"):
    print(name, resource.getrlimit(getattr(resource, "RLIMIT_" + name)))
print("descriptors", [fd for fd in range(0, 4096) if os.path.exists(f"/proc/self/fd/{fd}")][:-1])
with open("/proc/self/status") as f:
    print(*(line for line in f if line.startswith(("SigP", "SigB", "SigI", "SigC", "Cap", "NoNew", "Seccomp", "Umask"))))
print("group", os.getpgrp(), os.getsid(0), "nice", os.nice(0), "timer", signal.getitimer(0))
print("directory", os.getcwd(), sorted(set(os.environ) - {"CUDA_INJECTION64_PATH"}))
while sum(os.times()[:2]) < 0.5:
    pass
"""


def check(good, text):
    global failures
    if not good:
        print("WRONG", text, flush=True)
    failures += not good


def collect(*args, **extra):
    return [GPUCOLLECT, "-q", "--no-gpu", *args], dict(stderr=subprocess.STDOUT, **extra)


def odd_state():
    """A caller that a command could tell from the usual one."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, 5000))
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (1 << 16, 1 << 20))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2, signal.SIGINT})
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGQUIT, signal.SIG_IGN)
    os.umask(0o027)
    os.setsid()


def shown(command, prepare, **extra):
    r = subprocess.run(command, preexec_fn=prepare, restore_signals=False, text=True,
                       stdout=subprocess.PIPE, **extra)
    check(r.returncode == 0, f"status {r.returncode}: {r.stdout}")
    return [line for line in r.stdout.splitlines() if not line.startswith("group")]


def inherits(what, prepare):
    plain = [sys.executable, "-c", SHOW]
    want = shown(plain, prepare)
    under, extra = collect("-F", "99", "-o", f"{what}.folded", "--", *plain)
    got = shown(under, prepare, **extra)
    check(got == want, f"{what}: a command alone\n{want}\nunder gpucollect\n{got}")


def hangup_of_nohup():
    """A hangup that was ignored when it started stays so."""
    command, extra = collect("-F", "99", "-a", "-d", "2", "-o", "nohup.folded")
    p = subprocess.Popen(command, restore_signals=False, stdout=subprocess.PIPE, text=True,
                         preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN), **extra)
    start = time.monotonic()
    while p.poll() is None:
        p.send_signal(signal.SIGHUP)
        time.sleep(0.1)
    check(p.returncode == 0, f"hangup: status {p.returncode}: {p.stdout.read()}")
    check(time.monotonic() - start >= 2, "a hangup that is ignored ended the capture")


def signals_of_writes():
    """What ends a command that writes too much, or to nobody, ends it under gpucollect, too."""
    script = ("(ulimit -f 1; exec head -c 100000 /dev/zero >large); echo $?; "
              "(yes; echo $? >&2) | true; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")
    command, extra = collect("-F", "99", "-y", "-o", "writes.folded", "--", "sh", "-c", script)
    for signals in (signal.SIG_DFL, signal.SIG_IGN):
        def prepare(how=signals):
            signal.signal(signal.SIGXFSZ, how)
            signal.signal(signal.SIGPIPE, how)
        want, got = (shown(c, prepare, stderr=subprocess.STDOUT)
                     for c in (["sh", "-c", script], command))
        check(got == want, f"{signals!r}: a command alone\n{want}\nunder gpucollect\n{got}")


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def waiting_is_free():
    """A command that outlives the capture is waited for, asleep; a first Ctrl-C is the command's."""
    command, extra = collect("-F", "99", "-d", "0.3", "-o", "outlived.folded", "--", "sh", "-c",
                             "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; sleep 60; exit 5")
    p = subprocess.Popen(command, start_new_session=True, **extra)
    while not os.path.exists("outlived.folded"):
        check(p.poll() is None, f"ended early: status {p.returncode}")
        time.sleep(0.05)
    time.sleep(1)
    before = cpu_ticks(p.pid)
    time.sleep(2)
    used = cpu_ticks(p.pid) - before
    check(used <= 20, f"{used} ticks of CPU time while waiting for two seconds")
    p.send_signal(signal.SIGINT)
    time.sleep(0.5)
    check(p.poll() is None, f"left the command at its first Ctrl-C: status {p.returncode}")
    os.killpg(p.pid, signal.SIGINT)
    check(p.wait() == 130, f"status {p.returncode} after a second one")


def closed_output():
    command, extra = collect("-F", "99", "-a", "-d", "0.3")
    del extra["stderr"]
    r = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *command], stderr=subprocess.PIPE,
                       text=True)
    check(r.returncode == 125, f"standard output closed: status {r.returncode}: {r.stderr}")
    check("standard output" in r.stderr, f"standard output closed: {r.stderr}")


inherits("usual", None)
inherits("odd", odd_state)
hangup_of_nohup()
signals_of_writes()
waiting_is_free()
closed_output()
sys.exit(1 if failures else 0)
