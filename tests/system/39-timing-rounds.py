#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two hundred times in and out under load: exact counts, nothing left behind, and the program sees what
its twin sees to whom nobody has attached.

timeout: 900
alone: it counts what the driver logs and the times that are lost, both matters of pace
"""
import os
import sys
import time

import timing
from attaching import Program, Session, account, twin
from timing import CONTEXT_GONE, NONE, TMP, own_memory, wait_for

checks = timing.Checks()


def quiet(target, threads):
    """When the library's thread has gone."""
    checks(wait_for(lambda: target.flat()[3] == threads + 1, 10), "threads", target.flat())
    return target.flat()


def rounds(kind, nr, threads, *options, **variables):
    """Under load: exact counts where the program rests at the borders, bounds where it doesn't."""
    where = " ".join(("rounds", kind, *options))
    stats = os.path.join(TMP, "rounds.stats")
    # under load the C library may make an arena for a thread of the program's at any time
    target = Program("-p", 300, *options, kind=kind, STANDIN_STATS=stats, STANDIN_CRASH=1,
                     MALLOC_ARENA_MAX=1, **variables)
    target.ask("start", threads)
    first = None
    for i in range(1, nr + 1):
        resting = i % 4 == 0
        at = f"{where} {i}"
        if not resting:
            target.ask("run")
        checks.equal(target.attach()[:3], (0, 5, True), at, "attach")
        session = Session(target.pid)
        if not session.armed(checks, at):
            break
        if resting:
            before = target.number("pause")
            made = target.number("burst", 250) - before
        else:
            time.sleep(0.02)
        channel = session.end()
        account(checks, channel, i, at, threads if not resting else 0)
        if resting:
            checks.equal(channel.count("launched"), made, at, "launches")
            causes = channel.by_cause()
            checks.equal(causes[NONE] + (causes[CONTEXT_GONE] if options else 0), made, at, "times")
        else:
            checks(options or channel.count("launched") > 0, at, "launches")
            target.number("pause")
        if i == 8:
            first, own = quiet(target, threads), own_memory(target.pid)
    last = quiet(target, threads)
    print(where, "flat", first, last, flush=True)
    # ever new handles fill the table of names, which has an end
    limit = 9 << 10 if options else own + 64
    checks(own_memory(target.pid) <= limit, where, "own memory", own, own_memory(target.pid))
    checks(last[1] <= first[1] + 64, where, "shared memory", first, last)
    checks.equal(last[2:4], first[2:4], where, "descriptors, threads")
    if not options:		# the virtual device keeps the events of contexts that are gone
        checks(last[0] <= first[0] + 200, where, "anonymous memory", first, last)
        # the C library keeps the stacks of threads that have ended; where one had not when the next session's
        # began, it keeps two: a stack and its guard
        checks(last[4] <= first[4] + 2, where, "mappings", first, last)
    most = target.number("pause")
    target.ask("upto", most)
    hashes = target.ask("hash")
    target.quit(checks, where)
    counted = timing.stats(stats)
    os.remove(stats)
    checks.equal(counted["launches"], threads * most, where, "launches that the device saw")
    checks.equal(counted["stale"], 0, where, "uses of what is gone")
    # of which kind the first handle is can't be known: every thread may ask the wrong way, once
    checks(counted["logged"] <= threads, where, "errors in the driver's log", counted["logged"])
    checks.equal(hashes, twin(checks, threads, most, *options, kind=kind, **variables), where, "what the program sees")
    if options:		# the events of contexts that are gone are gone
        return
    # pairs of events: what is under way in a stream, not what was ever launched
    checks(counted["events_made"] <= 2 * threads * (100 + 16) + 2 * threads, where, "events",
           counted["events_made"])


rounds("simcuda", 200, 4)
rounds("simcuda-relro", 24, 3)
rounds("simcuda-old", 8, 2)
# contexts, streams and modules come and go meanwhile, always at the same addresses
rounds("simcuda", 60, 3, "-c")
sys.exit(checks.status())
