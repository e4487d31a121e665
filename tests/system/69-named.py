#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 200
"""What -p and --cgroup name, in a run and in a dry run.

Processes that are stopped, of which we may not know, and that are the kernel's; odd names of groups.
"""
import json
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402
import slots  # noqa: E402

check = L.Checks()
DRIVER = slots.Driver(os.path.join(L.B, "simcuda/libcuda.so.1"))
ALL_SLOTS = slots.SWAPPED
EMPTY, NO_PERMISSION = 2, 77
NOBODY = 65534
KERNEL_THREAD = 0x200000	# PF_KTHREAD


def stat(pid):
    """The fields of its stat from the third on: behind a name that may hold anything."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        return f.read().rsplit(")", 1)[1].split()


def become_nobody():
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def dry(*argv, **how):
    return subprocess.run([how.pop("program", L.GPUCOLLECT), "--dry-run", *argv], env=L.environment(),
                          capture_output=True, text=True, errors="replace", timeout=60, **how)


def attached(pids, *argv):
    """gpucollect as far as its recording, or to its end."""
    path = os.path.join(L.TMP, "o.folded")
    if os.path.exists(path):
        os.remove(path)
    g = L.Attached(pids, "--metric", "launches", "--no-inlines", "-o", path, *argv)
    g.wait_recording()
    L.skip_without_bpf(g.process.poll(), g.said())
    return g, path


def end(g, path):
    return L.Run(g.process.wait(60), "", g.said(), path)


def stop(t):
    os.kill(t.process.pid, signal.SIGSTOP)
    L.wait_for(lambda: stat(t.pid)[0] == "T", "stopped")


def stopped():
    """It is said, once; the library gets in when it goes on, and nothing lets it go on but its user."""
    t = L.Launching(check, 2000)
    stop(t)
    r = dry("-p", t.pid)
    check(r.returncode == 0 and f", 3 threads, stopped by a signal: kill -CONT {t.pid} " in r.stdout,
          f"stopped, dry: {r.returncode} {r.stdout}")
    g, path = attached([t.pid], "-d", "0.5")
    r = end(g, path)
    check(r.status == EMPTY and not r.written and stat(t.pid)[0] == "T",
          f"stopped all the time: {r.status} {stat(t.pid)[0]} {r.said}")
    g, path = attached([t.pid])
    check(g.process.poll() is None and DRIVER.away(int(t.pid)) == [], f"stopped: {g.said()}")
    os.kill(t.process.pid, signal.SIGCONT)
    L.wait_for(lambda: len(DRIVER.away(int(t.pid))) == ALL_SLOTS, "it goes on: entered")
    t.at_least(t.made() + 500)
    g.process.send_signal(signal.SIGINT)
    r = end(g, path)
    check(r.status == 0 and r.total() == r.launches() == r.timed() >= 300, f"goes on: {r.status} {r.said}")
    told = [s for s in r.complaints() if "is stopped by a signal" in s and f"kill -CONT {t.pid}" in s]
    check(len(told) == 1 == len(r.complaints()), f"stopped: it says {r.complaints()}")
    check(DRIVER.away(int(t.pid)) == [], "stopped: its slots are not restored")
    t.end("stopped")


def denied():
    """Without the right to look at a process nothing is claimed of it."""
    t = L.Launching(check)
    own = subprocess.Popen(["sleep", "100"], preexec_fn=become_nobody)
    program = os.path.join(L.TMP, "gpucollect")
    subprocess.run(["cp", L.GPUCOLLECT, program], check=True)
    as_nobody = {"program": program, "preexec_fn": become_nobody, "cwd": "/"}
    said = "mappings can't be read: run with sudo\n"
    r = dry("-p", t.pid, **as_nobody)
    check(r.returncode == NO_PERMISSION and not r.stderr and
          r.stdout == f"process {t.pid} (gpu_until), 3 threads\n  {said}", f"denied: {r}")
    r = dry("-a", **as_nobody)
    check(r.returncode == NO_PERMISSION and re.search(r"^\d+ processes: " + said, r.stdout, re.M) and
          f"process {t.pid} " not in r.stdout, f"denied, -a: {r}")
    # Where there is no question about it, no right is missing.
    r = dry("-p", t.pid, "--no-gpu", **as_nobody)
    check(r.returncode == 0 and r.stdout.endswith("\n  CPU samples only\n"), f"denied, --no-gpu: {r}")
    r = dry("-p", str(own.pid), **as_nobody)
    check(r.returncode == 0 and "unless it loads the CUDA driver" in r.stdout, f"denied: its own: {r}")
    own.kill()
    own.wait()
    t.end("denied")


def kernel():
    """Its threads launch nothing: of no use unless it is CPU time that is asked for."""
    mine = next((pid for pid in os.listdir("/proc") if pid.isdigit() and pid != "2" and
                 int(stat(pid)[6]) & KERNEL_THREAD), None)
    if not mine:
        print("note: no thread of the kernel is visible here")
        return
    words = f"process {mine} ("
    for options in ([], ["--metric", "launches"], ["--metric", "gpu", "--dry-run"]):
        r = subprocess.run([L.GPUCOLLECT, *options, "-d", "1", "-p", mine], capture_output=True, text=True,
                           timeout=60)
        check(r.returncode == EMPTY and r.stdout == "" and r.stderr.count("\n") == 1 and words in r.stderr and
              ") is a thread of the kernel, " in r.stderr and "--metric cpu" in r.stderr, f"kernel: {r}")
    r = dry("--metric", "cpu", "-p", mine)
    check(r.returncode == 0 and not r.stderr and words in r.stdout and
          "  CPU samples only: it is a thread of the kernel\n" in r.stdout, f"kernel, cpu: {r}")
    # Beside others it is left out.
    t = L.Launching(check, 1000)
    g, path = attached([t.pid, mine])
    L.wait_for(lambda: len(DRIVER.away(int(t.pid))) == ALL_SLOTS, "entered")
    t.at_least(t.made() + 200)
    g.process.send_signal(signal.SIGINT)
    r = end(g, path)
    check(r.status == 0 and {s.pid for s in r.stacks} == {int(t.pid)} and len(r.complaints()) == 1 and
          words in r.complaints()[0] and "left out" in r.complaints()[0], f"kernel, and one: {r.said}")
    t.end("kernel")


def threads():
    """A thread stands for its process, in a dry run as well."""
    t = L.Launching(check)
    thread = max(os.listdir(f"/proc/{t.pid}/task"), key=int)
    r = dry("-p", thread)
    check(r.returncode == 0 and r.stdout.startswith(f"process {t.pid} (gpu_until), 3 threads\n") and
          f"{thread} is a thread of process {t.pid}" in r.stderr, f"a thread: {r}")
    check(dry("-p", f"{thread},{t.pid}").stdout == r.stdout, "a thread and its process: not once")
    t.end("threads")


def itself():
    """A shell becomes its last command, whose id $$ is then."""
    for options in (["--dry-run"], ["-d", "0.2"]):
        r = subprocess.run(["sh", "-c", 'exec "$@" -p $$', "sh", L.GPUCOLLECT, *options], capture_output=True,
                           text=True, timeout=60, env=L.environment())
        check((r.returncode, r.stdout, r.stderr.count("\n")) == (EMPTY, "", 1) and
              "is this gpucollect itself" in r.stderr, f"itself: {r}")


def as_json():
    """--json is of messages; the list of a dry run is text."""
    t = L.Launching(check)
    r = dry("--json", "-p", t.pid)
    check(r.returncode == 0 and not r.stderr and r.stdout == dry("-p", t.pid).stdout, f"json: {r}")
    t.end("json")
    r = dry("--json", "-p", t.pid)
    said = json.loads(r.stderr)
    check(r.returncode == EMPTY and r.stdout == "" and said["gpucollect"] == "error" and t.pid in said["text"],
          f"json, gone: {r}")


def groups():
    """One line, however odd the name that was given."""
    for name in ("a\nb\033[31mred\u202e", "x" * 5000, "\u20ac" * 300, "/" + "d/" * 3000, "cgroup.procs",
                 b"\xff\xfe/\n"):
        for options in ((), ("--dry-run",)):
            r = subprocess.run([L.GPUCOLLECT, *options, "--no-gpu", "-d", "1", "--cgroup", name],
                               capture_output=True, timeout=60)
            text = r.stderr.decode()	# well-formed, whatever was given
            check(r.returncode in (EMPTY, 64) and text.count("\n") == 1 and "\033" not in text and
                  "\u202e" not in text and len(text) < 700 and "control group" in text,
                  f"group {name[:20]!r}: {r.returncode} {text}")


if os.geteuid():
    print("needs root")
    sys.exit(L.SKIP)
wanted = sys.argv[1:]
for part in (stopped, denied, kernel, threads, itself, as_json, groups):
    if not wanted or part.__name__ in wanted:
        before = check.failures
        part()
        print("ok   " if check.failures == before else "WRONG", part.__name__, flush=True)
sys.exit(check.status())
