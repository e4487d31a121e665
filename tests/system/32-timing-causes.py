#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A launch without a time says why, and nothing that befalls it is lost or changes the program.

timeout: 300
Each cause of gpu_timing/channel.h is brought about on purpose; how often is known beforehand from
the program or the fault, never from the library.
"""
import os
import sys

import timing
from timing import CONTEXT_ERROR, CONTEXT_GONE, DISTURBED, ENTRY, F_FAILED, F_TIMED, LAUNCH_FAILED, \
    NONE, NO_END, NO_STREAM, OTHER_CONTEXT, OUTSTANDING, POOL_EMPTY, RECORD_FAILED, BAD_TIME, Run, \
    case, program

checks = timing.Checks()
SEEN = timing.seen_library()


def hazard(*args, jumps=0, **variables):
    """Runs it with and without the library; what it prints must not differ."""
    where = " ".join(map(str, args))
    run = Run(program("gpu_hazards", *args), library=SEEN, **variables)
    checks.equal(run.status, 0, where, "status", run.stdout, run.stderr)
    checks(run.stdout.endswith("wrong 0\n"), where, run.stdout)
    timing.account(checks, run.channel, where)
    truths = len(run.truth())
    failed = sum(bool(r.flags & F_FAILED) for r in run.channel.results)
    nested = run.channel.count("nested")
    checks.equal(run.channel.count("launched") - failed + nested - jumps, truths, where, "launches")
    return run.channel.by_cause(), run


def faults():
    """The driver refuses single calls; the program must not notice those that are ours."""
    def run_with(fault, *args):
        run = Run(case("launches", *args), STANDIN_FAULT=fault)
        timing.account(checks, run.channel, fault)
        return run, run.channel.by_cause()

    run, causes = run_with("cuLaunchKernel:5:719", 100, 1000)
    checks.equal(run.status, 3, "failed launch: the program's own status")
    checks("launched 99, last error 719" in run.stdout, "failed launch:", run.stdout)
    checks.equal(causes, {LAUNCH_FAILED: 1, NONE: 99}, "failed launch")
    failed = [r for r in run.channel.results if r.cause == LAUNCH_FAILED][0]
    checks.equal((failed.error, failed.flags & (F_FAILED | F_TIMED)), (719, F_FAILED),
                 "failed launch: error and flags")
    # the third record is the begin of the second bracket, the fourth its end
    for nth in (3, 4):
        run, causes = run_with(f"cuEventRecord:{nth}:999", 100, 1000)
        checks.equal((run.status, run.stdout), (0, "launched 100, last error 0\n"), "record", nth)
        checks.equal(causes, {RECORD_FAILED: 1, NONE: 99}, "record", nth)
    run, causes = run_with("cuEventRecord:1+:999", 50, 1000)
    checks.equal((run.status, causes), (0, {RECORD_FAILED: 50}), "every record")
    run, causes = run_with("cuEventCreate:1+:2", 50, 1000)
    checks.equal((run.status, causes), (0, {POOL_EMPTY: 50}), "no events")
    run, causes = run_with("cuStreamIsCapturing:1+:999", 50, 1000)
    checks.equal((run.status, causes), (0, {timing.CAPTURED: 50}), "would not say")
    run, causes = run_with("cuStreamGetCtx:1+:999", 50, 1000)
    checks.equal((run.status, causes), (0, {OTHER_CONTEXT: 50}), "no context")
    run, causes = run_with("cuKernelGetName:1+:999,cuFuncGetName:1+:999", 50, 1000)
    checks.equal((run.status, causes), (0, {NONE: 50}), "no names")
    checks.equal([n[1:] for n in run.channel.names.values()], [(2, "")], "no names: said so")
    run = Run(case("launches", 50, 1000), STANDIN_BRACKET_NS="-9000000:-9000000")
    checks.equal(run.channel.by_cause(), {BAD_TIME: 50}, "negative times")
    # the context is broken from the 50th launch on
    for error in (700, 719, 4, 201):
        run = Run(case("launches", 1000), STANDIN_QUERY_ERROR=f"{error}:50")
        timing.account(checks, run.channel, f"error {error}")
        causes = run.channel.by_cause()
        expected = {700: CONTEXT_ERROR, 719: CONTEXT_ERROR, 4: NO_END, 201: CONTEXT_GONE}[error]
        checks.equal(run.status, 3, f"error {error}: status")
        checks.equal(run.stdout, f"launched 64, last error {error}\n", f"error {error}: output")
        checks(set(causes) <= {NONE, expected, CONTEXT_ERROR, OUTSTANDING}, f"error {error}:", causes)
        checks(causes[expected] >= 14, f"error {error}:", causes)


def limits():
    # behind a wait that the program itself ends: 95 % of the queue, in each of a hundred rounds
    rounds = 100
    run = Run(program("gpu_hold", 969, rounds), STANDIN_QUEUE=1022)
    checks.equal(run.status, 0, "hold: ", run.stderr)
    causes = run.channel.by_cause()
    checks.equal(causes[NONE] + causes[OUTSTANDING], 969 * rounds, "hold")
    checks(12 * rounds <= causes[NONE] <= 24 * rounds, "hold: timed", causes[NONE])
    checks(all(r.weight in [1 << i for i in range(11)] for r in run.channel.results), "hold: weights")
    checks(all(r.weight == 1 for r in run.channel.results if r.cause), "hold: untimed weigh 1")
    # A weight is the inverse of a chance: together they stand for all launches. One round's sum has a standard
    # deviation of 45 %, by simulation, and the chance ends before the round in one of a hundred.
    weights = sum(r.weight for r in run.channel.results if r.cause == NONE)
    checks(abs(weights / (969 * rounds) - 1) < 0.2, "hold: weights stand for", weights)
    # of a device-bound program whose queue is full all the time a good part is timed
    run = Run(program("gpu_chains", 200, 40000), STANDIN_QUEUE=1022, STANDIN_TRUTH="/dev/null")
    causes = run.channel.by_cause()
    checks.equal(run.channel.count("launched"), 2400, "full queue")
    checks(causes[NONE] > 600, "full queue: timed", causes)
    causes, _ = hazard("streams", 6000)
    checks(causes[NO_STREAM] >= 6000 - 4096, "streams:", causes)
    checks(causes[NONE] >= 3900, "streams:", causes)
    checks.equal(causes[NONE] + causes[NO_STREAM], 6000, "streams")
    causes, run = hazard("churn", 5000)
    checks.equal(causes, {NONE: 5000}, "churn: handles that come again")
    causes, run = hazard("threads", 3000)
    checks.equal(causes, {NONE: 15000}, "threads: more than there is room for")


def contexts():
    causes, _ = hazard("other")
    checks.equal(causes, {OTHER_CONTEXT: 3, NONE: 4}, "other")
    causes, run = hazard("multi", STANDIN_DEVICES=2)
    checks.equal(causes, {ENTRY: 10}, "multi")
    checks.equal({(s.grid, s.flags) for s in run.sites()}, {("7,1,1", 16), ("8,1,1", 16)}, "multi")
    names = {run.channel.kernel(r) for r in run.channel.results}
    checks.equal(names, {"spin_one", "spin_two"}, "multi: names")
    # destroyed with work under way in every second round: 20 rounds of 8 launches of 200 us
    run = Run(program("gpu_contexts", 40, 200000))
    plain = Run(program("gpu_contexts", 40, 200000), library="/nonexistent")
    timing.account(checks, run.channel, "contexts")
    checks.equal(run.stdout, plain.stdout, "contexts: output, reuse of handles included")
    for kernel in ("spin_even", "spin_odd", "spin_primary"):
        mine = [r for r in run.channel.results if run.channel.kernel(r) == kernel]
        checks.equal(len(mine), 80 if kernel == "spin_primary" else 160, kernel)
        gone = sum(r.cause == CONTEXT_GONE for r in mine)
        timed = sum(r.cause == NONE and abs(r.duration - 200000) < 2 for r in mine)
        checks.equal(gone + timed, len(mine), kernel)
        checks(gone >= 7 * 20 if kernel == "spin_even" else gone == 0, kernel, "gone", gone)
    checks.equal(len({r.context for r in run.channel.results}), 50, "contexts: never the same number")
    # the driver crashes if an event is asked for while its context goes: twenty times 30 ms of it
    run = Run(program("gpu_contexts", 40, 200000), STANDIN_CRASH=1)
    checks.equal(run.status, 0, "contexts that crash:", run.stderr)
    timing.account(checks, run.channel, "contexts that crash")


def threads_and_signals():
    causes, run = hazard("shared", 20000)
    checks.equal(causes[NONE] + causes[DISTURBED] + causes[OUTSTANDING], 40000, "shared")
    checks(causes[DISTURBED] > 0, "shared: none disturbed")
    # an undisturbed bracket holds its own kernel and no other
    checks(all(abs(r.duration - 1000) < 2 for r in run.channel.results if r.cause == NONE),
           "shared: times", sorted({r.duration for r in run.channel.results})[:10])
    # a list of launches is never bracketed, but it disturbs the bracket that another thread has there
    fifo = os.path.join(timing.TMP, "gate")
    os.mkfifo(fifo)
    causes, run = hazard("inside", fifo, STANDIN_GATE=f"cuLaunchKernel:{fifo}")
    checks.equal(causes, {DISTURBED: 1, ENTRY: 1}, "inside")
    # what the library computes is nobody's business
    causes, run = hazard("traps")
    checks.equal(causes[NONE] + causes[OUTSTANDING], 200, "traps")
    # a thread that ended inside a launch is not taken for one that is still there
    os.mkfifo(fifo + "2")
    causes, run = hazard("ended", fifo + "2", STANDIN_GATE=f"cuLaunchKernel:{fifo}2")
    checks.equal(causes, {ENTRY: 1, NO_END: 1, NONE: 100}, "ended")
    causes, run = hazard("errno")
    checks.equal(causes, {NONE: 200}, "errno")
    causes, run = hazard("failing")
    checks.equal(causes, {NONE: 10, LAUNCH_FAILED: 20}, "failing")
    causes, run = hazard("modules", 300)
    kernels = {}
    for r in run.channel.results:
        kernels.setdefault(run.channel.kernel(r), []).append(r)
    checks.equal({k: len(v) for k, v in kernels.items()},
                 {"spin_left": 150, "spin_right": 150, "spin_one": 300}, "modules")
    checks(len(run.channel.names) <= 301, "modules: names sent", len(run.channel.names))
    # signals inside a launch: at the 5th and every 7th from there on, 7 or more in 50
    causes, run = hazard("jump", jumps=7, TIMING_RAISE="5,7")
    checks.equal(causes, {NO_END: 7, NONE: 43}, "jump")
    causes, run = hazard("nested", TIMING_RAISE="5,7")
    checks.equal((causes, run.channel.count("nested")), ({NONE: 50}, 7), "nested")
    # (on a stack above the launch's own a launch looks like one after a jump: seen, none lost)
    causes, run = hazard("above", TIMING_RAISE="5,7")
    checks.equal(causes[NONE] + causes[NO_END], run.channel.count("launched"), "above")
    checks.equal(causes[NONE], 50, "above")
    causes, run = hazard("forked", TIMING_RAISE="5")
    checks.equal(causes, {NONE: 50}, "forked")
    # one record blocks until another thread launches
    for nth in (40, 43):
        run = Run(case("locked"), STANDIN_RECORD_BLOCKS=nth, timeout=60)
        checks("released by another thread" in run.stderr, "locked:", run.stderr)
        checks.equal((run.status, run.stdout), (0, "3000 launches, 0 failures\n"), "locked")


faults()
limits()
contexts()
threads_and_signals()
sys.exit(checks.status())
