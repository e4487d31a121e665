#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Into a process that runs, out of it, and in again: the library's side, without ptrace.

timeout: 600
The program (gpu_attach) calls the stub or gpucollect_attach itself; timing_collector records a session.
"""
import os
import re
import signal
import struct
import subprocess
import sys
import threading
import time

import timing
from attaching import Program, Session, account
from timing import CONTEXT_GONE, LIBRARY, NO_END, NONE, OTHER_CONTEXT, OUTSTANDING, REASON_STRAGGLER, \
    REFUSED, TMP, wait_for

checks = timing.Checks()
EAGAIN, ECANCELED, ELIBACC, ENOENT, EPERM, EINPROGRESS, EALREADY = 11, 125, 79, 2, 1, 115, 114
STAGE_STUB, STAGE_LOADED, STAGE_FOUND, STAGE_CALLED, STAGE_DONE = range(1, 6)


def stub_offset():
    text = subprocess.run(["readelf", "-sW", LIBRARY], capture_output=True, text=True, check=True).stdout
    symbol = next(w for w in map(str.split, text.splitlines()) if w[-1:] == ["gpucollect_stub"])
    text = subprocess.run(["readelf", "-SW", LIBRARY], capture_output=True, text=True, check=True).stdout
    section = re.search(r"\.gpucollect\.stub\s+PROGBITS\s+(\w+)\s+(\w+)", text)
    return int(symbol[1], 16) - int(section[1], 16) + int(section[2], 16)


OFFSET = stub_offset()


# --- the way in -----------------------------------------------------------------------------------

def stubs():
    target = Program("-p", 0)
    target.ask("start", 2)
    maps = target.flat()[4]
    for how, status, stage, error in (
            ("nofile", ELIBACC, STAGE_STUB, "/proc/self/fd/9999"),
            ("nosymbol", ENOENT, STAGE_LOADED, "undefined symbol: gpucollect_attach"),
            ("cancelled", ECANCELED, STAGE_STUB, ""), ("late", ECANCELED, STAGE_LOADED, ""),
            ("wrong", EINPROGRESS, STAGE_FOUND, ""), ("nothread", EAGAIN, 0, "")):
        got = target.attach("stub", how, OFFSET)
        # the thread takes the page away; where there is none the collector has to
        checks.equal(got[:4], (status, stage, True, how == "nothread"), "stub", how)
        checks(error in got[4], "stub", how, "says", got[4])
        checks.equal(target.sessions, 0, "stub", how, "sessions")
        checks(wait_for(lambda: target.flat()[3] == 3, 10), "stub", how, "threads", target.flat())
    # libm and the library itself stay mapped, with pages of its own for zeroes; the C library keeps a stack and an arena for other threads
    checks(wait_for(lambda: target.flat()[4] <= maps + 5 + 6 + 4, 10), "stub: mappings", maps,
           target.flat())
    got = target.attach("stub", "large", OFFSET)
    checks.equal(got, (0, STAGE_DONE, True, False, "-"), "stub")
    checks.equal(target.sessions, 1, "stub: sessions")
    session = Session(target.pid)
    session.armed(checks, "stub")
    checks.equal(target.number("burst", 300), 600, "stub: made")
    channel = session.end()
    account(checks, channel, 1, "stub")
    checks.equal(channel.count("launched"), 600, "stub: launches")
    target.quit(checks, "stub")


def disabled():
    for value in ("1", ""):
        target = Program(GPUCOLLECT_DISABLE=value)
        before = target.flat()
        got = target.attach()
        checks.equal(got, (EPERM, STAGE_DONE, True, False, "GPUCOLLECT_DISABLE is set"), "disabled")
        after = target.flat()
        checks.equal(after[1:4], before[1:4], "disabled: memory, descriptors, threads")
        target.quit(checks, "disabled")


def nobody_comes():
    """Nothing is touched before a collector has been seen, and all is over if none comes."""
    target = Program("-p", 0)
    target.ask("start", 1)
    began = time.monotonic()
    target.attach()
    threads = target.flat()[3]
    checks.equal(threads, 3, "nobody: threads")
    checks.equal(target.number("burst", 100), 100, "nobody: made")
    checks(wait_for(lambda: target.flat()[3] == 2, 15), "nobody: the thread ends")
    checks(time.monotonic() - began >= 4.9, "nobody: too early")
    # a new one can come as if nothing had been
    target.attach()
    session = Session(target.pid)
    session.armed(checks, "nobody: later")
    checks.equal(target.number("burst", 100), 200, "nobody: made")
    channel = session.end()
    account(checks, channel, 2, "nobody: later")
    checks.equal(channel.count("launched"), 100, "nobody: launches")
    target.quit(checks, "nobody")


# --- in and out -----------------------------------------------------------------------------------

def in_the_middle():
    """Attached again while the session before is at work, or ends: it gives way."""
    target = Program("-p", 100)
    target.ask("start", 2)
    target.ask("run")
    number = 0
    for late in (0, 0, 0.001, 0.005, 0.02, 0.05):
        where = f"again after {late} s"
        target.attach()
        number += 1
        first = Session(target.pid)
        first.armed(checks, where)
        time.sleep(0.01)
        first.process.send_signal(signal.SIGKILL)
        first.process.wait()
        target.attach()
        number += 1
        second = Session(target.pid)
        second.armed(checks, where)
        time.sleep(0.02)
        # and at once behind its stop, whose end the first request must not wait for
        second.process.stdin.close()
        time.sleep(late)
        target.attach()
        number += 1
        checks.equal(target.sessions, number, where, "sessions")
        second.process.wait(timeout=30)
        third = Session(target.pid)
        third.armed(checks, where)
        time.sleep(0.02)
        account(checks, third.end(), number, where, 2)
    made = target.number("pause")
    checks(made > 0, "again: made", made)
    checks(wait_for(lambda: target.flat()[3] == 3, 10), "again: threads", target.flat())
    target.quit(checks, "again")


def collectors_that_die():
    """Killed between any two of its steps: the program is rid of it, and the next one comes in."""
    target = Program("-p", 100)
    target.ask("start", 2)
    target.ask("run")
    for when in ("opened", "claimed", "beaten", "first", "50", "stopped", "passive", "read"):
        where = f"killed when {when}"
        target.attach()
        number = target.sessions
        session = Session(target.pid, "-k", when)
        if when in ("stopped", "passive", "read"):
            session.armed(checks, where)
            session.process.stdin.close()
        checks.equal(session.process.wait(timeout=30), -signal.SIGKILL, where, "its end")
        checks(wait_for(lambda: target.flat()[3] == 3, 15), where, "thread gone", target.flat())
        # what the dead one has claimed is free
        target.attach()
        checks.equal(target.sessions, number + 1, where, "sessions")
        after = Session(target.pid)
        after.armed(checks, where)
        time.sleep(0.02)
        account(checks, after.end(), number + 1, where, 2)
    target.ask("pause")
    target.quit(checks, "killed")


def two():
    """A second collector is told of the first; when that is gone it may."""
    target = Program("-p", 100)
    target.ask("start", 2)
    target.ask("run")
    target.attach()
    first = Session(target.pid)
    first.armed(checks, "two")
    second = Session(target.pid)
    checks.equal(second.said(), ["busy", str(first.process.pid)], "two: the second")
    second.process.stdin.close()
    checks.equal(second.process.wait(timeout=20), 3, "two: its status")
    # one that has fallen silent holds it as long as it lives, whatever the library thinks of it
    time.sleep(0.05)
    account(checks, first.end(), 1, "two: the first", 2)
    target.attach()
    third = Session(target.pid)
    third.armed(checks, "two: the third")
    time.sleep(0.02)
    account(checks, third.end(), 2, "two: the third", 2)
    # a silent one: the library clears the mark, though its holder lives
    target.attach()
    mute = Session(target.pid, "-m", 300)
    mute.armed(checks, "two: mute")
    checks(wait_for(lambda: target.flat()[3] == 3, 10), "two: the thread of a silent one")
    target.attach()
    fourth = Session(target.pid)
    fourth.armed(checks, "two: the fourth")
    time.sleep(0.02)
    account(checks, fourth.end(), 4, "two: the fourth", 2)
    mute.process.kill()
    mute.process.wait()
    target.ask("pause")
    target.quit(checks, "two")


def stragglers(kind):
    """A thread sleeps in a launch while we go and come again; what it brings back is nobody's."""
    where = f"stragglers {kind}"
    target = Program("-p", 100, kind=kind, STANDIN_QUEUE=64, STANDIN_CRASH=1)
    target.ask("start", 2)
    target.attach()
    session = Session(target.pid)
    session.armed(checks, where)
    held = target.number("hold", 200)
    checks(0 < held < 64, where, "held", held)
    target.ask("burst", 100)
    channel = session.end()
    account(checks, channel, 1, where, 1)
    checks.equal(channel.count("launched"), held + 1 + 200, where, "launches")
    checks.equal(channel.by_cause()[NONE], 200, where, "times")
    causes = channel.by_cause()
    checks(causes[NO_END] > 0, where, "without an end", causes)
    checks.equal(causes[NO_END] + causes[OUTSTANDING] + 1, held + 1, where, "without an end, or left out")
    # two more, while it sleeps; then it wakes up inside one
    for number in (2, 3):
        target.attach()
        session = Session(target.pid)
        session.armed(checks, f"{where} {number}")
        target.ask("burst", 100)
        if number == 3:
            checks.equal(target.number("release"), 200, where, "made in the end")
        channel = session.end()
        account(checks, channel, number, f"{where} {number}")
        made = 200 if number == 2 else 200 + 200 - held - 1
        checks.equal(channel.count("launched"), made, where, number, "launches")
        checks.equal(channel.by_cause()[NONE], made, where, number, "times")
    target.attach()
    session = Session(target.pid)
    session.armed(checks, where)
    target.ask("burst", 64)
    channel = session.end()
    account(checks, channel, 4, f"{where} 4")
    checks.equal(channel.by_cause()[NONE], 128, where, "times of the last")
    target.quit(checks, where)


def renewed():
    """Between two sessions all is made anew, at the same addresses: nothing of the old is used."""
    target = Program("-p", 0, STANDIN_CRASH=1)
    target.ask("start", 2)
    for number in range(1, 80):
        where = f"renewed {number}"
        target.attach()
        session = Session(target.pid)
        if not session.armed(checks, where):
            break
        target.ask("burst", 20)
        if number % 3 == 0:
            checks.equal(target.ask("renew"), ["renewed"], where)
            target.ask("burst", 20)
        channel = session.end()
        account(checks, channel, number, where)
        made = 80 if number % 3 == 0 else 40
        checks.equal(channel.count("launched"), made, where, "launches")
        causes = channel.by_cause()
        checks.equal(causes[NONE] + causes[CONTEXT_GONE], made, where, "times")
        kernels = {channel.kernel(r) for r in channel.results if not r.flags & timing.F_COPY}
        checks.equal(kernels - {f"spin_{c}" for c in "abcd"}, set(), where, "names")
        if number % 2:
            checks.equal(target.ask("renew"), ["renewed"], where)
    target.quit(checks, "renewed")


def stuck():
    """A thread that does not even come out of the library: its session ends without it, and no other
    begins before it has come out."""
    gate = os.path.join(TMP, "gate")
    target = Program("-p", 0, library=timing.seen_library(), TIMING_WAIT=gate)
    target.ask("start", 1)
    worker = next(t for t in map(int, os.listdir(f"/proc/{target.pid}/task")) if t != target.pid)
    target.attach()
    session = Session(target.pid)
    session.armed(checks, "stuck")
    with open(gate, "w", encoding="utf-8"):
        target.ask("run")
    checks(wait_for(lambda: sleeps_in_nanosleep(target.pid, worker), 10), "stuck: at its site")
    channel = session.end()
    account(checks, channel, 1, "stuck", 1)
    checks.equal(channel.count("launched"), 1, "stuck: launches")
    checks.equal(target.attach()[0], 0, "stuck: attach")
    session = Session(target.pid)
    checks.equal(session.said(), ["ready", str(REFUSED), str(REASON_STRAGGLER)], "stuck: refused")
    channel = session.end()
    checks.equal(channel.detail, worker, "stuck: the thread that it is")
    checks(not channel.broken and not channel.results, "stuck: records")
    os.remove(gate)
    checks(target.number("pause") > 0, "stuck: goes on")
    target.attach()
    session = Session(target.pid)
    session.armed(checks, "stuck: later")
    target.ask("burst", 50)
    channel = session.end()
    account(checks, channel, 3, "stuck: later")
    checks.equal(channel.by_cause()[NONE], 50, "stuck: later, times")
    target.quit(checks, "stuck")


def sleeps_in_nanosleep(pid, tid):
    with open(f"/proc/{pid}/task/{tid}/syscall", encoding="utf-8") as f:
        return f.read().split()[0] in ("35", "230")


def many_contexts():
    """The table holds 64: those of sessions before give way."""
    target = Program("-p", 0)
    target.ask("start", 1)
    for number, contexts, timed in ((1, 60, 60), (2, 30, 30), (3, 70, 63)):
        where = f"contexts {number}"
        target.attach()
        session = Session(target.pid)
        session.armed(checks, where)
        target.ask("burst", 10)
        checks.equal(target.number("contexts", contexts), 2 * contexts, where, "made")
        channel = session.end()
        account(checks, channel, number, where)
        causes = channel.by_cause()
        checks.equal(causes[NONE], 10 + 2 * timed, where, "times", causes)
        checks.equal(causes[OTHER_CONTEXT], 2 * (contexts - timed), where, "without room")
    target.quit(checks, "contexts")


def under_way():
    """What the program has begun before we came: a capture, a graph, a chain of dependent launches."""
    target = Program("-p", 0)
    target.ask("start", 1)
    chain = target.number("chain", 4)
    checks(chain < 350000000, "under way: the chain overlaps", chain)
    target.ask("capture")
    target.attach()
    session = Session(target.pid)
    session.armed(checks, "under way")
    checks.equal(target.ask("captured"), ["graph", "6"], "under way: capture")
    replayed = target.ask("replay", 5)
    channel = session.end()
    account(checks, channel, 1, "under way: capture")
    checks.equal(channel.by_cause(), {timing.CAPTURED: 3, NONE: 5}, "under way: launches")
    checks.equal({r.entry for r in channel.results if not r.cause}, {11}, "under way: graph")
    times = sorted(r.duration for r in channel.results if not r.cause)
    # six kernels of 5 us, one after the other
    checks(times[0] >= 30000, "under way: times of the graph", times, replayed)
    # the graph and the chain are there already
    target.attach()
    session = Session(target.pid)
    session.armed(checks, "under way: again")
    # of each kernel the first two launches have brackets of their own
    for _ in range(2):
        target.number("chain", 4)
    # an event between two of them would make it four times as long as one
    chain = target.number("chain", 4)
    checks(chain < 350000000, "under way: the chain overlaps no more", chain)
    target.ask("replay", 4)
    channel = session.end()
    account(checks, channel, 2, "under way: again")
    checks.equal(channel.by_cause(), {NONE: 16}, "under way: times")
    checks.equal(sorted(r.launches for r in channel.results), [1] * 12 + [4], "under way: the chain is one run")
    target.quit(checks, "under way")


def ends(kind):
    """The program ends while we are there, however far we are: as if we were not."""
    for when in ("attached", "armed", "running", "stopped"):
        where = f"end {kind} when {when}"
        target = Program("-p", 0, kind=kind)
        target.ask("start", 2)
        target.attach()
        session = None
        if when != "attached":
            session = Session(target.pid)
            session.armed(checks, where)
        if when == "running":
            target.ask("burst", 100)
        if when == "stopped":
            session.process.stdin.close()
        target.quit(checks, where)
        if session:
            session.process.stdin.close()
            checks.equal(session.process.wait(timeout=30), 0, where, "the collector")
            channel = session.read()
            checks(not channel.broken, where, "the ring")
            if when == "running":
                checks.equal(channel.by_cause()[NONE], 200, where, "times")


# --- other ways to have come ------------------------------------------------------------------------

def children():
    """A child forked after we came has our hooks and not our memory."""
    for after in (False, True):
        where = f"child of a process {'with' if after else 'without'} the driver started"
        target = Program("-u", "-p", 0)
        if after:
            target.ask("init")
            target.ask("start", 1)
            target.ask("burst", 50)
        target.attach()
        parent = Session(target.pid)
        parent.armed(checks, where)
        child = target.number("fork")
        # the parent's segment is not the child's
        inherited = Session(child)
        words = inherited.said()
        checks.equal(words, ["busy", str(parent.process.pid)], where, "with its parent's segment")
        inherited.process.wait(timeout=20)
        got = target.attach()
        checks.equal((got[0], target.sessions), (0, 1), where, "attach")
        channel = own_session(child)
        if not checks(channel is not None, where, "a segment of its own"):
            continue
        channel.armed(checks, where)
        if after:
            # the driver doesn't work in such a child: nothing happens, and nothing breaks
            time.sleep(0.05)
            seen = channel.end()
            checks.equal(seen.count("launched"), 0, where, "launches")
        else:
            target.ask("init")
            target.ask("start", 2)
            target.ask("burst", 100)
            seen = channel.end()
            account(checks, seen, 1, where)
            checks.equal(seen.by_cause()[NONE], 200, where, "times")
        checks.equal(target.ask("quit"), ["bye"], where, "the child")
        # and the parent is none the wiser
        if not after:
            target.ask("init")
            target.ask("start", 1)
        target.ask("burst", 50)
        seen = parent.end()
        account(checks, seen, 1, f"parent of the {where}")
        checks.equal(seen.by_cause()[NONE], 50, where, "times of the parent")
        target.quit(checks, where)


def forgotten(kind):
    """The program closes the library's descriptors, or uses their numbers: sessions go on, others begin."""
    where = f"forgotten {kind}"
    target = Program("-p", 0, kind=kind)
    target.ask("start", 2)
    first = None
    for number, how in enumerate(("close", "reuse", "close", "close", "close"), 1):
        checks.equal(target.attach()[:2], (0, STAGE_DONE), where, "attached")
        session = Session(target.pid)
        session.armed(checks, f"{where} {number}")
        target.ask("burst", 50)
        checks(target.number("forget", how) > 0, where, "nothing to forget")
        # who records can't be seen from outside any more: nobody else gets in
        checks.equal(target.attach()[:2], (EALREADY, STAGE_DONE), where, "a second one")
        target.ask("burst", 50)
        channel = session.end()
        account(checks, channel, number, f"{where} {number}")
        checks.equal(channel.count("launched"), 200, where, number, "launches")
        checks.equal(channel.by_cause()[NONE], 200, where, number, "times")
        checks(wait_for(lambda: target.flat()[3] == 3, 10), where, "threads", target.flat())
        first = first or target.flat()
    last = target.flat()
    checks(last[0] + last[1] <= first[0] + first[1] + 256 and last[4] <= first[4], where, "memory, mappings",
           first, last)
    # whoever records dies: the next one comes in as soon as the library has noticed
    target.attach()
    session = Session(target.pid)
    session.armed(checks, where)
    target.ask("forget", "close")
    session.process.kill()
    session.process.wait()
    checks(wait_for(lambda: target.attach()[0] == 0, 15), where, "no way in after its end")
    session = Session(target.pid)
    session.armed(checks, where)
    target.ask("burst", 100)
    account(checks, session.end(), target.sessions, where)
    target.quit(checks, where)


def settled():
    """The library's thread is an ordinary one of the program, whoever it comes from."""
    target = Program("-p", 0)
    os.setpriority(os.PRIO_PROCESS, target.pid, 5)
    for policy, wanted in ((os.SCHED_IDLE, os.SCHED_IDLE), (os.SCHED_RR, os.SCHED_OTHER)):
        try:
            os.sched_setscheduler(target.pid, policy, os.sched_param(int(policy == os.SCHED_RR)))
        except PermissionError:
            print("no such policy here:", policy)
            continue
        target.attach()
        tids = [int(tid) for tid in os.listdir(f"/proc/{target.pid}/task") if tid != str(target.pid)]
        checks(tids and wait_for(lambda: [os.sched_getscheduler(t) for t in tids] == [wanted], 5),
               "settled: policy", policy, [os.sched_getscheduler(t) for t in tids])
        checks.equal([os.getpriority(os.PRIO_PROCESS, t) for t in tids], [5], "settled: nice")
        checks.equal(os.sched_getscheduler(target.pid), policy, "settled: the program's own")
        Session(target.pid).end()
        checks(wait_for(lambda: target.flat()[3] == 1, 10), "settled: its end")
    target.quit(checks, "settled")


def own_session(pid):
    """The child has two memfds of ours: the collector takes the one that isn't held."""
    for _ in range(100):
        session = Session(pid, "-f")
        if session.process.poll() is None:
            return session
        time.sleep(0.05)
    return None


def injected(kind):
    """Started with the library in the environment; attached to later, by the same file."""
    where = f"injected {kind}"
    target = Program("-p", 0, kind=kind, CUDA_INJECTION64_PATH=LIBRARY)
    target.ask("start", 2)
    session = Session(target.pid)
    session.armed(checks, where)
    target.ask("burst", 100)
    channel = session.end()
    account(checks, channel, 1, where)
    checks.equal(channel.by_cause()[NONE], 200, where, "times")
    copies = target.mappings(LIBRARY)
    got = target.attach()
    checks.equal((got[0], target.sessions), (0, 2), where, "attach")
    session = Session(target.pid)
    session.armed(checks, where)
    target.ask("burst", 100)
    channel = session.end()
    account(checks, channel, 2, where + " and attached")
    checks.equal(channel.by_cause()[NONE], 200, where, "times after it")
    checks.equal(target.mappings(LIBRARY), copies, where, "one library")
    target.quit(checks, where)
    # no collector had come: the library's own session is still at work when we do
    target = Program("-p", 0, kind=kind, CUDA_INJECTION64_PATH=LIBRARY)
    target.ask("start", 2)
    target.ask("burst", 100)
    got = target.attach()
    checks.equal((got[0], target.sessions), (0, 2), where, "attach over")
    session = Session(target.pid)
    session.armed(checks, where)
    target.ask("burst", 100)
    channel = session.end()
    account(checks, channel, 2, where + " over")
    checks.equal(channel.count("launched"), 200, where, "launches over")
    target.quit(checks, where)


def identity():
    """What a collector reads in the memory of a process, with nothing but the file's symbols."""
    text = subprocess.run(["nm", "-D", LIBRARY], capture_output=True, text=True, check=True).stdout
    at = int(next(w[0] for w in map(str.split, text.splitlines()) if w[-1] == "gpucollect_identity"), 16)
    target = Program("-u")

    def read():
        with open(f"/proc/{target.pid}/maps", encoding="utf-8") as f:
            base = next(int(line.split("-")[0], 16) for line in f if "libgpucollect_timing" in line)
        with open(f"/proc/{target.pid}/mem", "rb", buffering=0) as mem:
            mem.seek(base + at)
            magic, abi, size, owner, fd, sessions = struct.unpack("<QIIQiI", mem.read(32))
            checks.equal((magic, abi, size), (0x7974746e65646963, 10, 32), "identity")
            mem.seek(owner)
            return struct.unpack("<I", mem.read(4))[0], fd, sessions

    target.attach()
    owner, fd, sessions = read()
    checks.equal((owner, sessions), (1, 1), "identity: of the process")
    checks(os.readlink(f"/proc/{target.pid}/fd/{fd}").startswith("/memfd:gpucollect"), "identity: its memfd")
    parent, target.pid = target.pid, target.number("fork")
    checks.equal(read()[0], 0, "identity: of a child")
    target.ask("quit")
    target.pid = parent
    target.quit(checks, "identity")


def together(*parts):
    """They mostly wait."""
    threads = [threading.Thread(target=part[0], args=part[1:]) for part in parts]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


together((stubs,), (disabled,), (settled,), (nobody_comes,), (identity,), (collectors_that_die,), (two,))
together((in_the_middle,), (stragglers, "simcuda"), (stragglers, "simcuda-relro"),
         (injected, "simcuda"), (injected, "simcuda-relro"), (children,), (forgotten, "simcuda"),
         (forgotten, "simcuda-relro"))
together((renewed,), (stuck,), (many_contexts,), (under_way,), (ends, "simcuda"), (ends, "simcuda-relro"))
sys.exit(checks.status())
