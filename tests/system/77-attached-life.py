#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
"""The inputs L-01 to L-07 when gpucollect comes to them, as tests/cases/README.md demands."""
import collections
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ.get("TOP", "."), "tests/tools"))
import folded
import running
from running import FEW, FREQUENCY, Attached, Target, nearly_all, wait_for

if os.geteuid():
    running.skip("needs root")
check = folded.Checks()
LIFE = os.path.join(os.environ["TOP"], "tests/cases/life")


def case(name):
    return os.path.join(folded.CASES, name)


def gated(*argv):
    """A target that becomes `argv` when the function that comes with it is called."""
    shell = 'while [ ! -e go-$$ ]; do sleep 0.05; done; exec "$@"'
    target = Target("sh", "-c", shell, "sh", *argv, works=False)
    gate = os.path.join(folded.TMP, f"go-{target.pid}")
    return target, lambda: open(gate, "w", encoding="ascii").close()


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def leader_gone():
    """L-01: attached before the first thread ends, and after."""
    for when in ("before", "after"):
        target = Target(case("leader_exit"))
        if when == "after":
            wait_for(lambda t=target: state_of(t.pid) == "Z", "the first thread ends")
        run = Attached("-p", str(target.pid))
        wait_for(lambda t=target: state_of(t.pid) == "Z", "the first thread ends")
        time.sleep(1)	# of work
        check(run.process.poll() is None, f"L-01, {when}: goes on without the first thread", run.err())
        target.end()
        rec = run.end()
        check(rec.status == 0, f"L-01, {when}: ends with the process: {rec.status}", rec.err)
        nearly_all(check, f"L-01, {when}", rec, target.pid, "worker", "worker_hot")

    target = Target(sys.executable, os.path.join(LIFE, "leader_exit.py"), "6")
    run = Attached("-p", str(target.pid))
    rec = run.end()
    n = rec.total()
    whole = rec.total(lambda s: not folded.is_cut(s))
    check(rec.status == 0 and n > 3 * FEW and whole >= 0.99 * n, f"L-01, Python: {whole} of {n} are whole",
          rec.err)
    running.end_all()


def execs():
    """L-02: exec from a second thread; many in a row; a script that becomes a program."""
    target = Target(case("execs"), "thread")
    rec = Attached("-p", str(target.pid)).end()
    for function, comm in (("before_exec", "execs"), ("after_exec", "exe")):
        mine = [s for s in rec.settled() if function in s.user]
        n = sum(s.weight for s in mine)
        good = sum(s.weight for s in mine if folded.holds(s, function, "spin_for") and
                   s.comm == comm and s.pid == target.pid and not folded.is_cut(s))
        check(n >= FEW and good >= 0.99 * n, f"L-02, {function}: {good} of {n} are {comm}'s", rec.err)
    target = Target(case("execs"), "chain", "50")
    rec = Attached("-p", str(target.pid)).end()
    spins = rec.total(lambda s: "spin_for" in s.user)
    good = rec.total(lambda s: folded.holds(s, "main", "step_spin", "spin_for") and
                     s.pid == target.pid and s.comm in ("execs", "exe"))
    check(spins >= FEW and good >= 0.99 * spins, f"L-02, 50 execs: {good} of {spins}", rec.err)
    part = sum(s.weight for s in rec.settled() if not folded.is_cut(s))
    n = sum(s.weight for s in rec.settled())
    check(part >= 0.99 * n, f"L-02, 50 execs: {part} of {n} stacks are whole")

    target = Target(sys.executable, "-c", "x = 0\nfor i in range(10**7): x += i\nimport sys; sys.argv = "
                    f"['', {case('chain')!r}]\nexec(open({LIFE + '/launcher.py'!r}).read())", SECS="2")
    rec = Attached("-p", str(target.pid)).end()
    python = rec.total(lambda s: s.pid == target.pid and s.comm.startswith("python"))
    check(python >= FEW and {s.pid for s in rec.stacks} == {target.pid},
          f"L-02, launcher.py: {python} samples before, one process", rec.err)
    mine = [s for s in rec.settled() if s.comm == "chain"]
    n = sum(s.weight for s in mine)
    good = sum(s.weight for s in mine if folded.holds(s, "main", "chain_a", "chain_b", "chain_c"))
    check(n >= FEW and good >= 0.9 * n, f"L-02, launcher.py: {good} of {n} after it")
    running.end_all()


def tree():
    """L-03: children of all kinds, of a process that is attached to and of a command."""
    # A sleeper that outlives it would keep a pipe open.
    argv = ["sh", "-c", 'exec "$@" >tree.out 2>&1', "sh", sys.executable, os.path.join(LIFE, "tree.py"),
            folded.CASES, "4"]
    out = os.path.join(folded.TMP, "tree.out")
    target, go = gated(*argv)
    run = Attached("-p", str(target.pid))
    go()
    target.process.wait(timeout=100)
    check(running.text_of(out) == "tree done\n" and target.process.returncode == 0,
          "L-03, attached: undisturbed", running.text_of(out))
    tree_of("L-03, attached", run.end(signal.SIGINT))
    running.end_all()

    target = Target(*folded.command(frequency=FREQUENCY, path=run.path), "--", *argv, works=False)
    target.process.wait(timeout=100)
    check(running.text_of(out) == "tree done\n" and target.process.returncode == 0,
          f"L-03, command: {target.process.returncode}", running.text_of(out))
    tree_of("L-03, command", folded.Recording(0, "", target.process.stdout.read(), run.path, FREQUENCY))
    running.end_all()


def tree_of(what, rec):
    lines = [line for line in rec.err.splitlines() if line.startswith("gpucollect: ")]
    check(len(lines) < 25, f"{what}: not a message for each child: {len(lines)} lines")
    static = {s.pid for s in rec.stacks if folded.holds(s, "main", "chain_a", "chain_b", "chain_c")}
    check(len(static) == 1, f"{what}: the static program is one process: {static}")
    python = collections.Counter()
    for s in rec.stacks:
        python[s.pid] += s.weight * s.comm.startswith("python")
    busy = [pid for pid, n in python.items() if n >= 5]
    check(len(busy) >= 9, f"{what}: parent and pool: {len(busy)} busy processes of Python")
    n = sum(s.weight for s in rec.settled())
    whole = sum(s.weight for s in rec.settled() if not folded.is_cut(s))
    check(whole >= 0.99 * n, f"{what}: {whole} of {n} stacks are whole", rec.err)


def ways_to_end():
    """L-04 and L-05: it is stopped, or the target ends by itself; nothing is left, a profile is written."""
    def ours():
        programs = subprocess.run(["bpftool", "prog"], capture_output=True, text=True).stdout
        return re.findall(r"name gpucollect\w*", programs)

    if subprocess.run(["bpftool", "prog"], capture_output=True).returncode:
        print("no bpftool to look for what is left")
    others = len(ours())
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        target = Target(case("steady"))
        run = Attached("-p", str(target.pid))
        time.sleep(0.5)
        rec = run.end(number)
        check(rec.status == (-9 if number == signal.SIGKILL else 0), f"L-04, {number.name}: {rec.status}",
              rec.err)
        check(state_of(target.pid) in "RS", f"L-04, {number.name}: the target goes on")
        os.kill(target.pid, signal.SIGTERM)
        out = target.process.communicate(timeout=30)[0]
        check(out == f"steady: ended by signal {int(signal.SIGTERM)}\n",
              f"L-04, {number.name}: it got no signal but the test's", out)
    # Tests of others may have programs of this name loaded.
    wait_for(lambda: len(ours()) <= others, "the programs are gone")

    for args in (["0"], ["7"], ["signal", "11"]):
        target, go = gated(case("exits"), *args)
        run = Attached("-p", str(target.pid))
        go()
        target.process.wait(timeout=100)
        rec = run.end()
        wanted = -int(args[1]) if args[0] == "signal" else int(args[0])
        check(target.process.returncode == wanted and rec.status == 0,
              f"L-05, {' '.join(args)}: its own status {target.process.returncode}, ours {rec.status}")
        n = rec.total(lambda s: folded.holds(s, "main", "half_second"))
        check(n >= FEW, f"L-05, {' '.join(args)}: {n} samples of half_second", rec.err)
    running.end_all()


def waits():
    """L-06: no wait is interrupted or cut short, by attaching twice in the middle."""
    target = Target(case("eintr"), "6", works=False)
    for _ in range(2):
        time.sleep(0.7)
        rec = Attached("-p", str(target.pid), "-d", "1").end()
        check(rec.status == 0, f"L-06: attached: {rec.status}", rec.err)
    out = target.process.communicate(timeout=60)[0]
    check(target.process.returncode == 0 and "interrupted 0, early 0" in out, "L-06: no wait was disturbed",
          out)
    places = re.findall(r"^(\w+): (blocked \d+, not default \d+)$", out, re.M)
    check(len(places) == 3 and len({what for _, what in places}) == 1,
          f"L-06: mask and handlers are as they were: {places}", out)


def names():
    """L-07: threads with names that look like something else."""
    target = Target(case("comm"))
    rec = Attached("-p", str(target.pid), "-d", "1").end()
    for function in ("spin_bracket", "spin_spaces"):
        n = rec.total(lambda s, f=function: f in s.user and s.pid == target.pid)
        check(n >= FEW, f"L-07: {n} samples of {function}", rec.err)
    check({s.pid for s in rec.stacks} == {target.pid} and {s.comm for s in rec.stacks} == {"k) R 1 2?(z"},
          f"L-07: the process's own name: {({s.comm for s in rec.stacks})}")
    running.end_all()


try:
    for step in (leader_gone, execs, tree, ways_to_end, waits, names):
        began = time.monotonic()
        step()
        print(f"      {time.monotonic() - began:.0f} s")
finally:
    running.end_all()
sys.exit(check.status())
