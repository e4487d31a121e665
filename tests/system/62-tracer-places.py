#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
"""
Where a thread may be borrowed and where not, as its stack tells; and what it finds unchanged
afterwards. All threads wait in the same harmless call: only what is above it on the stack differs.
"""
import ctypes
import os
import resource
import signal
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tracing as T  # noqa: E402

PLACES = T.program("trace_places")
WAITING = os.path.join(T.B, "programs/libtrace_wait.so")
TIMES = 30
BORROWED = {"plain", "qsort", "thread", "modest_thread"}
# A word of the reason.
REFUSED = {
    "malloc": "malloc", "iterate": "dl_iterate_phdr", "once": "nameless", "atfork": "ork",
    "exit": "exit", "stdio": "_IO", "dlopen": "dynamic loader", "handler": "signal handler",
    "alternate": "stack", "fiber": "stack", "deep": "followed", "generated": "followed",
    "small_thread": "64 KiB", "key": "nameless", "crowd": "followed",
    "unanswered": "does not answer",
}
CROWD = 200
FEW = 40    # descriptors: less than a table has to begin with (64)
FAR = FEW - 16  # the number that the library's file gets then

THREADS = {"thread", "modest_thread", "small_thread", "key", "crowd", "unanswered"}
PTRACE_SEIZE, PTRACE, EPERM, ETIMEDOUT = 0x4206, 101, 1, 110
LIBC = ctypes.CDLL(None, use_errno=True)

check = T.Checks()


def asleep(task):
    with open(f"{task}/stat", encoding="utf-8") as f:
        return f.read().rsplit(")", 1)[1].split()[0] == "S"


def forbid_ptrace():
    """As a container's system call filter does, or Yama."""
    code = b"".join(struct.pack("HBBI", *c) for c in (
        (0x20, 0, 0, 0), (0x15, 0, 1, PTRACE), (0x06, 0, 0, 0x00050000 | EPERM), (0x06, 0, 0, 0x7fff0000)))
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxQ", 4, ctypes.addressof(buffer))
    LIBC.prctl(38, 1, 0, 0, 0)
    if LIBC.prctl(22, 2, ctypes.create_string_buffer(program)):
        raise OSError(ctypes.get_errno(), "no filter")


def forbidden():
    p = T.start(PLACES, "plain")
    T.wait_until(lambda: T.sleeps_in(p.pid))
    r = subprocess.run([T.TOOL, T.LIBRARY, str(p.pid)], stdin=subprocess.DEVNULL, capture_output=True,
                       text=True, timeout=60, preexec_fn=forbid_ptrace, check=False)
    said = T.Attach(r.stdout.strip())
    check(said.err == -EPERM and said.holds == 0 and "kernel.yama.ptrace_scope" in said.why,
          f"forbidden: {said}")
    p.communicate("x")


def refused(name, **more):
    """What is said is why, not what did not work on the way and had another one."""
    p = T.start(PLACES, "plain", "1", **more)
    T.wait_until(lambda: T.sleeps_in(p.pid))
    said = T.attach(p.pid)[0]
    check(said.err == -121 and said.status == -EPERM and
          said.why == "the library does not start in it: Operation not permitted", f"refused, {name}: {said}")
    links = {os.readlink(f"/proc/{p.pid}/fd/{fd}"): int(fd) for fd in os.listdir(f"/proc/{p.pid}/fd")}
    p.communicate("x")
    return next((fd for link, fd in links.items() if "memfd:" in link), -1)


def few_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, FEW))


def no_far_descriptor():
    few_descriptors()
    for fd in range(FEW // 2, FEW):
        os.dup2(0, fd)


def by_loader():
    """Programs that are an argument of the dynamic loader, which the kernel takes for the program then."""
    env = {**os.environ, "TRACE_WAITING_LIBRARY": WAITING}
    for program, name, err, why in ((PLACES, "dlopen", -11, "it is in the dynamic loader"),
                                    (T.program("trace_calls"), "read_pipe", 0, "")):
        p = T.start("/lib64/ld-linux-x86-64.so.2", program, name, env=env)
        T.wait_until(lambda: T.sleeps_in(p.pid))
        said = T.attach(p.pid)[0]
        if said.err == -ETIMEDOUT:  # it got no processor
            said = T.attach(p.pid)[0]
        check(said.err == err and said.why == why, f"by the loader, {name}: {said}")
        p.communicate("x")
        check(p.returncode == 0, f"by the loader, {name}: status {p.returncode}")


def traced():
    """The only thread that could be borrowed has a tracer: who that is."""
    p = T.start(PLACES, "thread")
    T.wait_until(lambda: len(os.listdir(f"/proc/{p.pid}/task")) > 1)
    thread = max(map(int, os.listdir(f"/proc/{p.pid}/task")))
    T.wait_until(lambda: asleep(f"/proc/{p.pid}/task/{thread}"))
    tracer = subprocess.Popen([sys.executable, "-c",
                               "import ctypes, sys, time\n"
                               f"print(ctypes.CDLL(None).ptrace({PTRACE_SEIZE}, {thread}, None, None), flush=True)\n"
                               "sys.stdin.read()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    check(tracer.stdout.readline() == "0\n", "traced: no tracer")
    said = T.attach(p.pid)[0]
    check(said.err == -11 and said.holds == 0 and
          said.why == f"its thread {thread} is traced by process {tracer.pid}", f"traced: {said}")
    tracer.communicate("")
    said = T.attach(p.pid)[0]
    check(said.err == 0, f"traced no more: {said}")
    p.communicate("x")


def one(name):
    p = T.start(PLACES, name, env={**os.environ, "TRACE_WAITING_LIBRARY": WAITING})
    main = f"/proc/{p.pid}/task"
    threads = {"crowd": CROWD + 1}.get(name, 2 if name in THREADS else 1)
    T.wait_until(lambda: T.sleeps_in(p.pid) and len(os.listdir(main)) >= threads and
                 all(asleep(f"{main}/{tid}") for tid in os.listdir(main)))
    said = T.attach(p.pid)[0]
    alive = p.poll() is None
    p.stdin.write("x")
    p.stdin.close()
    rest = p.stdout.read().splitlines()
    status = p.wait()
    check(alive and status == 0, f"{name}: alive {alive}, status {status}, {rest}")
    if "no userfaultfd" in rest:
        print(f"{name}: not tried, there is no userfaultfd(2) here")
    elif name in BORROWED:
        check(said.err == 0 and rest == ["calls 1"], f"{name}: {said}, {rest}")
    else:
        check(said.err == -11 and said.stage == 0 and REFUSED[name] in said.why, f"{name}: {said}")
        check("calls 1" not in rest, f"{name}: the library came in")
    # A thread that stays where it is isn't stopped again and again.
    check(name != "crowd" or CROWD // 2 <= said.holds < 2 * CROWD, f"{name}: {said.holds} stops")


def spin():
    """Registers, vector and floating point state, red zone, errno, mask: many times over."""
    p = T.start(T.program("trace_spin"))
    said = T.attach(p.pid, TIMES)
    os.kill(p.pid, signal.SIGUSR1)
    rest = p.stdout.read().splitlines()
    status = p.wait()
    check(status == 0 and rest == ["same", f"calls {TIMES}"], f"spin: status {status}, {rest}")
    check(len(said) == TIMES and all(a.err == 0 for a in said), "spin:", said)


T.need_root()
names = subprocess.run([PLACES, "-l"], capture_output=True, text=True, check=True).stdout.split()
check(set(names) == BORROWED | set(REFUSED), "names:", names)
spin()
forbidden()
traced()
by_loader()
near, far = refused("none far", preexec_fn=no_far_descriptor, close_fds=False), \
    refused("few descriptors", preexec_fn=few_descriptors)
check(near < FEW // 2 and far == FAR, f"descriptors: {near} {far}")
with ThreadPoolExecutor(4) as pool:
    for done in [pool.submit(one, name) for name in names]:
        done.result()
sys.exit(check.end())
