#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
"""
Processes that can't be borrowed from are left as they are, with one clear reason; and those that can
be, many times, lose nothing by it.
"""
import ctypes
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tracing as T  # noqa: E402

PLACES = T.program("trace_places")
ENOTSUP, EAGAIN, EBUSY, ESRCH, EREMOTEIO = -95, -11, -16, -3, -121
TIMES = 200

check = T.Checks()


def maps(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as f:
        return f.read()


def descriptors(pid):
    return sorted(os.listdir(f"/proc/{pid}/fd"))


def refused(name, pid, err, *words):
    """Nothing of it changes: neither mappings nor descriptors, nor is it held."""
    before = maps(pid), descriptors(pid)
    said = T.attach(pid)[0]
    check(said.err == err and said.stage == 0 and all(w in said.why for w in words), f"{name}: {said}")
    check((maps(pid), descriptors(pid)) == before, f"{name}: something of it has changed")
    return said


def end(p):
    p.stdin.write("x")
    p.stdin.close()
    rest = p.stdout.read()
    return p.wait(), rest


def by_prctl(*calls):
    """Of a child, before it executes."""
    def do():
        libc = ctypes.CDLL(None, use_errno=True)
        for call in calls:
            if libc.prctl(*call):
                os._exit(99)
    return do


def filtered():
    # PR_SET_NO_NEW_PRIVS, then PR_SET_SECCOMP with a filter that allows all.
    program = struct.pack("HBBI", 0x06, 0, 0, 0x7fff0000)
    code = ctypes.create_string_buffer(program)
    fprog = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(code)))
    p = T.start(PLACES, "plain", preexec_fn=by_prctl((38, 1, 0, 0, 0),
                                                     (22, 2, ctypes.c_void_p(ctypes.addressof(fprog)))))
    check(T.status(p.pid, "Seccomp") == "2", "no filter:", T.status(p.pid, "Seccomp"))
    said = refused("filter", p.pid, ENOTSUP, "seccomp")
    check(said.holds == 0, "filter: it was stopped")
    check(end(p) == (0, "calls 0\n"), "filter: not as it was")


def plain_rights():
    """No new rights; nothing for others to see, as after a change of users: root may, and does."""
    secret = os.path.join(T.TMP, "secret")
    shutil.copy(PLACES, secret)
    os.chmod(secret, 0o711)    # who may not read the file becomes a process that isn't dumpable
    for name, command, prepare in (("no new rights", PLACES, by_prctl((38, 1, 0, 0, 0))),
                                   ("not dumpable", secret, lambda: os.setresuid(65534, 65534, 65534))):
        p = T.start(command, "plain", preexec_fn=prepare)
        if command == secret:
            # What isn't dumpable has files of root's in /proc.
            check(os.stat(f"/proc/{p.pid}/environ").st_uid == 0, "it is dumpable")
        said = T.attach(p.pid)[0]
        check(said.err == 0 and end(p) == (0, "calls 1\n"), f"{name}: {said}")


def traced():
    for tool in (["gdb", "-q", "-batch", "-ex", "shell sleep 5", "-p"],
                 ["strace", "-qq", "-o", "/dev/null", "-p"]):
        if not shutil.which(tool[0]):
            print(f"no {tool[0]} here")
            continue
        p = T.start(PLACES, "plain")
        other = subprocess.Popen([*tool, str(p.pid)], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if T.wait_until(lambda: T.status(p.pid, "TracerPid") != "0", 30):
            said = refused(tool[0], p.pid, EBUSY, "traced by process", str(other.pid))
            check(said.holds == 0, f"{tool[0]}: it was stopped")
        other.terminate()
        other.wait()
        T.wait_until(lambda: T.status(p.pid, "TracerPid") == "0", 30)
        p.send_signal(signal.SIGCONT)
        check(end(p) == (0, "calls 0\n"), f"{tool[0]}: not as it was")


def stopped():
    p = T.start(PLACES, "plain")
    p.send_signal(signal.SIGSTOP)
    T.wait_until(lambda: T.status(p.pid, "State").startswith("T"))
    refused("stopped", p.pid, EAGAIN, "stopped by a signal")
    check(T.status(p.pid, "State").startswith("T"), "stopped: not any more")
    p.send_signal(signal.SIGCONT)
    check(end(p) == (0, "calls 0\n"), "stopped: not as it was")


def other_libraries():
    """Without the C library that has dlopen: static, and (where it is to be had) musl."""
    source = os.path.join(T.TMP, "sleeper.c")
    with open(source, "w", encoding="ascii") as f:
        f.write('#include <unistd.h>\n#include <stdio.h>\nint main(void) { char c;'
                ' puts("ready"); fflush(stdout); return read(0, &c, 1) != 1; }\n')
    for name, command, words in (("static", ["gcc", "-static"], ["static"]),
                                 ("32-bit", ["gcc", "-m32"], ["64-bit"]),
                                 ("musl", ["musl-gcc"], ["musl"])):
        out = os.path.join(T.TMP, name)
        if not shutil.which(command[0]) or subprocess.run([*command, "-o", out, source], check=False,
                                                          capture_output=True).returncode:
            print(f"{name}: can't be built here")
            continue
        p = T.start(out)
        said = refused(name, p.pid, ENOTSUP, *words)
        check(said.holds == 0, f"{name}: it was stopped")
        check(end(p)[0] == 0, f"{name}: not as it was")


def gone():
    p = subprocess.Popen(["true"])
    os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOWAIT)
    check(T.attach(p.pid)[0].err == ESRCH, "a zombie")
    p.wait()
    check(T.attach(p.pid)[0].err == ESRCH, "nobody")


def few_descriptors():
    p = T.start(PLACES, "plain")
    resource.prlimit(p.pid, resource.RLIMIT_NOFILE, (3, 3))
    said = T.attach(p.pid)[0]
    check(said.err == -24 and "memfd_create" in said.why, "no descriptors:", said)
    check(end(p) == (0, "calls 0\n"), "no descriptors: not as it was")


def little_memory():
    """Too little for the tracer itself, in many ways: it says so, and the process stays as it is."""
    tool = os.path.join(T.TMP, "limited")
    p = T.start(PLACES, "plain")
    before, poor = (maps(p.pid), descriptors(p.pid)), 0
    # The last two: there is no room for the rules of unwinding, so that a stack ends where they would be needed, or
    # for the C library's symbols.
    reasons = ("gpucollect is out of memory", "gpucollect can't start a thread", "its stack can't be followed",
               "nameless function of the C library")
    for mib in range(8, 256, 2):
        with open(tool, "w", encoding="ascii") as f:
            f.write(f'#!/bin/sh\nulimit -v {mib << 10} && exec {T.TOOL} "$@"\n')
        os.chmod(tool, 0o755)
        said = T.attach(p.pid, tool=tool)
        if said and not said[0].err:
            break
        if said:	# else not even the tool could begin
            poor += "gpucollect" in said[0].why
            check(any(reason in said[0].why for reason in reasons), f"{mib} MiB: {said}")
            check((maps(p.pid), descriptors(p.pid)) == before, f"{mib} MiB: something of it has changed")
    check(poor, "little memory: there was always enough")
    check(end(p) == (0, "calls 1\n"), "little memory: not as it was")


def unloadable():
    """A file that is no library: everything is taken away again."""
    wrong = os.path.join(T.TMP, "wrong.so")
    with open(T.LIBRARY, "rb") as f:
        image = bytearray(f.read())
    image[18:20] = b"\x28\x00"    # for another machine; the stub stays what it is
    with open(wrong, "wb") as f:
        f.write(image)
    p = T.start(PLACES, "plain")
    before = descriptors(p.pid)
    said = T.attach(p.pid, library=wrong)[0]
    check(said.err == EREMOTEIO and said.status == -79 and "/fd/" in said.why, "unloadable:", said)
    # The thread that tried takes its own code away at its end.
    check(T.wait_until(lambda: "memfd:gpucollect" not in maps(p.pid), 20) and descriptors(p.pid) == before,
          "unloadable: left there:", descriptors(p.pid), maps(p.pid))
    check(T.attach(p.pid)[0].err == 0, "unloadable: not attached after that")
    check(end(p) == (0, "calls 1\n"), "unloadable: not as it was")


def flat():
    """Memory, descriptors and threads of the process after the first times."""
    def kilobytes(pid, field):
        return int(T.status(pid, field).split()[0])

    def others(pid):
        return T.status(pid, "Threads"), descriptors(pid)
    p = T.start(T.program("trace_life"))
    first = T.attach(p.pid, 20)
    T.wait_until(lambda: T.status(p.pid, "Threads") == "3", 20)
    before, rss, size = others(p.pid), kilobytes(p.pid, "VmRSS"), kilobytes(p.pid, "VmSize")
    said = T.attach(p.pid, TIMES)
    T.wait_until(lambda: others(p.pid) == before, 20)
    check(others(p.pid) == before, f"flat: {before}, then {others(p.pid)}")
    # A page each time would be 800 kB; the C library keeps up to 40 MiB of stacks for new threads.
    check(kilobytes(p.pid, "VmRSS") < rss + 600, f"flat: {rss} kB, then {T.status(p.pid, 'VmRSS')}")
    check(kilobytes(p.pid, "VmSize") < size + (41 << 10),
          f"flat: {size} kB, then {T.status(p.pid, 'VmSize')} of addresses")
    p.send_signal(signal.SIGTERM)
    made = sum(a.err == 0 for a in first + said)
    check(made == TIMES + 20, "flat:", [a for a in first + said if a.err])
    check(p.stdout.read() == f"computed right, calls {made}\n" and p.wait() == 0, "flat: not the same")
    held = sorted(a.held_us for a in said)
    print(f"held: median {held[len(held) // 2]} us, longest {held[-1]} us")


T.need_root()
filtered()
plain_rights()
traced()
stopped()
other_libraries()
gone()
few_descriptors()
little_memory()
unloadable()
flat()
sys.exit(check.end())
