#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
"""
The library is loaded by a thread of its own: who has the dynamic loader's lock, and waits for just the
thread that is borrowed, gets its answer. And what another user's process may do to the file on its way.
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tracing as T  # noqa: E402

LOADER = T.program("trace_loader")
WAITING = os.path.join(T.B, "programs/libtrace_wait.so")
READ = 0
PAGE = 4096

check = T.Checks()


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def is_free(pid):
    return all("TracerPid:\t0\n" in open(f"/proc/{pid}/task/{tid}/status", encoding="ascii").read()
               for tid in os.listdir(f"/proc/{pid}/task"))


def ours(pid):
    """Sizes of what is mapped of the library's file, and executable."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as f:
        found = re.findall(r"^(\w+)-(\w+) r-xp .*/memfd:gpucollect ", f.read(), re.M)
    return [int(end, 16) - int(start, 16) for start, end in found]


def begin():
    """It is in the constructor, and the other thread sleeps."""
    p = T.start(LOADER, WAITING)
    check(T.wait_until(lambda: T.sleeps_in(p.pid, READ) and threads(p.pid) == 2), "not begun")
    return p


def go_on(p):
    p.stdin.write("x")
    p.stdin.flush()


def end(p, name, wanted):
    """What it says, and that it ends at all."""
    try:
        rest = p.communicate(timeout=60)[0].split("\n")[:-1]
    except subprocess.TimeoutExpired:
        p.kill()
        rest = p.communicate()[0], "does not end"
    check(p.returncode == 0 and rest == wanted, f"{name}: status {p.returncode}, {rest}")


def start_tool(pid):
    return subprocess.Popen([T.TOOL, T.LIBRARY, str(pid)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, text=True)


def alone():
    p = begin()
    go_on(p)
    end(p, "alone", ["answered", "loaded", "calls 0"])


def in_time():
    p = begin()
    tool = start_tool(p.pid)
    # the one that loads is there, and the one that it was started by is home
    check(T.wait_until(lambda: threads(p.pid) == 3 and is_free(p.pid), 20), "in time: not free")
    go_on(p)
    said = T.Attach(tool.communicate()[0].strip())
    # the machine may have been too slow for the tool's patience
    check(said.err in (0, -110), "in time:", said)
    end(p, "in time", ["answered", "loaded", f"calls {int(said.err == 0)}"])


def too_late():
    """Not while it lasts; and later as if nothing had been."""
    p = begin()
    said = T.attach(p.pid)[0]
    check(said.err == -110 and is_free(p.pid), "too late:", said)
    check(ours(p.pid) == [PAGE] and threads(p.pid) == 3, "too late:", ours(p.pid), threads(p.pid))
    go_on(p)
    # that thread and the sleeper end
    check(T.wait_until(lambda: threads(p.pid) == 1, 20), "too late: threads", threads(p.pid))
    check(PAGE not in ours(p.pid), "too late: the stub is left", ours(p.pid))
    said = T.attach(p.pid)[0]
    check(said.err == 0 and PAGE not in ours(p.pid), "too late, again:", said, ours(p.pid))
    end(p, "too late", ["answered", "loaded", "calls 1"])


def no_thread():
    p = T.start(LOADER, "-t")
    check(T.wait_until(lambda: T.sleeps_in(p.pid, READ)), "no thread: not begun")
    descriptors = os.listdir(f"/proc/{p.pid}/fd")
    said = T.attach(p.pid)[0]
    check(said.err == -121 and said.stage == 0 and "thread" in said.why, "no thread:", said)
    check(not ours(p.pid), "no thread: the stub is left")
    check(os.listdir(f"/proc/{p.pid}/fd") == descriptors, "no thread: descriptors")
    end(p, "no thread", ["calls 0"])


def swapped(point):
    """Another user's process puts a file of root's where the library is to be written."""
    path = os.path.join(T.TMP, "roots-" + point)
    with open(path, "w", encoding="ascii") as f:
        f.write("root's\n")
    before = os.stat(path)
    p = T.start(LOADER, "-s", path)
    tool = subprocess.Popen([T.FAULT_TOOL, T.LIBRARY, str(p.pid)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, text=True,
                            env={**os.environ, "GPUCOLLECT_FAULT": point + ":stop"})
    check(T.wait_until(lambda: T.status(tool.pid, "State").startswith("T")), f"{point}: not reached")
    check(p.stdout.readline().startswith("swapped"), f"{point}: not swapped")
    tool.send_signal(18)
    said = T.Attach(tool.communicate()[0].strip())
    check(said.err == -95 and "another file" in said.why, f"{point}:", said)
    after = os.stat(path)
    with open(path, encoding="ascii", errors="replace") as f:
        check(f.read() == "root's\n" and after.st_mtime_ns == before.st_mtime_ns, f"{point}: it was written")
    check(p.poll() is None, f"{point}: status {p.returncode}")
    p.kill()
    p.wait()


T.need_root()
alone()
in_time()
too_late()
no_thread()
swapped("trace-memfd")
swapped("trace-moved")
sys.exit(check.end())
