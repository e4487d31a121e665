#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 120
"""Addresses and process numbers that are used again, while gpucollect can't see that they are."""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ.get("TOP", "."), "tests/tools"))
import folded
import running
from running import FEW, Attached, Target, wait_for

running.own_mounts()
check = folded.Checks()


class Reuse:
    def __init__(self):
        argv = [os.path.join(folded.PROGRAMS, "cpu_reuse")]
        for which in "ab":
            argv += [os.path.join(folded.CASES, f"libswap_{which}.so"), f"swap_{which}_fn"]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.expect("first")

    def expect(self, what):
        line = self.process.stdout.readline().strip()
        check(line == what, f"the program says {what!r}: {line!r}")

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def work(self, ticks=60):
        """Lets it work for a while, by its own CPU time."""
        def spent():
            with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as f:
                return int(f.read().rsplit(")", 1)[1].split()[11])
        until = spent() + ticks
        wait_for(lambda: spent() >= until, "the program works")


def addresses():
    """The mappings that came were more than the kernel keeps for a reader who does not read."""
    program = Reuse()
    run = Attached("-p", str(program.process.pid), "-v")
    program.work()
    run.process.send_signal(signal.SIGSTOP)
    program.go_on()
    program.expect("the same address")
    program.expect("second")
    run.process.send_signal(signal.SIGCONT)
    # What was lost is noticed at the next second.
    time.sleep(3)
    program.go_on()
    program.expect("later")
    program.work()
    rec = run.end(signal.SIGINT)
    program.go_on()
    program.process.communicate(timeout=60)
    check("mapping events lost" in rec.err, "the case is what it claims to be", rec.err)
    for caller, callee in (("first_library", "swap_a_fn"), ("second_later", "swap_b_fn")):
        mine = [s for s in rec.settled() if caller in s.user and s.user[-1] not in (caller, "told")]
        n = sum(s.weight for s in mine if any("swap" in f for f in s.user))
        good = sum(s.weight for s in mine if folded.holds(s, "main", caller, callee) and
                   not folded.is_cut(s))
        check(n >= FEW and good == n, f"{caller} calls {callee} in {good} of {n}", rec.err)


def swaps():
    """Libraries take each other's place faster than mappings are read."""
    libraries = [word for which in "ab" for word in
                 (os.path.join(folded.CASES, f"libswap_{which}.so"), f"swap_{which}_fn")]
    for how in ("-p", "-a"):
        shell = 'until [ -e go ]; do sleep 0.05; done; exec "$@"'
        target = Target("sh", "-c", shell, "sh", os.path.join(folded.PROGRAMS, "cpu_swaps"), *libraries,
                        "3", works=False)
        run = Attached(*(["-a"] if how == "-a" else ["-p", str(target.pid)]))
        running.sh("touch go")
        out = target.process.communicate(timeout=100)[0]
        rec = run.end(signal.SIGINT if how == "-a" else None)
        check(rec.status == 0, f"swaps, {how}: status {rec.status}", rec.err)
        running.sh("rm go")
        check(out == "same\n", f"swaps, {how}: the case is what it claims to be: {out!r}")
        for caller, right, wrong in (("with_a", "swap_a_fn", "swap_b_fn"), ("with_b", "swap_b_fn", "swap_a_fn")):
            good, bad = (rec.total(lambda s, c=caller, f=f: folded.holds(s, c, f)) for f in (right, wrong))
            check(good >= FEW and not bad, f"swaps, {how}: {caller} calls {right} in {good}, {wrong} in {bad}",
                  rec.err)


def numbers():
    """Another process gets the number of a target that has ended: it is none of ours."""
    if not running.can("unshare -p -f --mount-proc sh -c 'echo 100 >/proc/sys/kernel/ns_last_pid'"):
        print("numbers of processes can't be chosen here")
        return
    chain, steady = (os.path.join(folded.CASES, name) for name in ("chain", "steady"))
    # In a namespace of their own: two targets, one of which ends and whose number is given again.
    script = f"""
        {steady} & stays=$!
        echo 500 >/proc/sys/kernel/ns_last_pid
        {steady} & first=$!
        {folded.GPUCOLLECT} -y --no-gpu --metric cpu --annotate -F {running.FREQUENCY} \
            -p $stays,$first -o {folded.TMP}/numbers.folded 2>{folded.TMP}/numbers.err & run=$!
        until grep -q recording {folded.TMP}/numbers.err; do sleep 0.05; done
        kill -KILL $first; wait $first
        echo $((first - 1)) >/proc/sys/kernel/ns_last_pid
        sh -c 'exec -a stranger {chain}' 2>/dev/null & second=$!
        [ $second = $first ] || echo another number
        echo $first >{folded.TMP}/number
        sleep 4
        kill -INT $run; wait $run; echo status $?
        kill -KILL $second $stays; wait
    """
    out = subprocess.run(["unshare", "-p", "-f", "--mount-proc", "bash", "-c", script], text=True,
                         capture_output=True, stdin=subprocess.DEVNULL, cwd=folded.TMP, timeout=100,
                         env=dict(os.environ, SECS="60"))
    rec = folded.Recording(0, "", running.text_of(folded.TMP + "/numbers.err"),
                           folded.TMP + "/numbers.folded", running.FREQUENCY)
    check(out.stdout == "status 0\n", "numbers: the case is what it claims to be", out.stdout + rec.err)
    check(rec.total(lambda s: "steady_work" in s.user) >= FEW, "numbers: the targets were recorded",
          rec.err)
    check(not rec.total(lambda s: any("chain" in f for f in s.user)),
          "numbers: the stranger was not")


try:
    for case in (addresses, swaps, numbers):
        case()
finally:
    running.end_all()
sys.exit(check.status())
