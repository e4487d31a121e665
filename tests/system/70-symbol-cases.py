#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 400
"""The inputs S-01, S-02, S-05 and S-08 to S-10 show what tests/cases/README.md demands."""
import os
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import folded
from folded import holds

check = folded.Checks()
FEW = 50
START = "__libc_start_main"	# and then a function of the C library that may have no name


def case(name):
    return os.path.join(folded.CASES, name)


def run(target, *options, secs=None, **how):
    """`secs` are of CPU time: a busy machine changes nothing but how long that takes."""
    if secs:
        how.update(secs=80, CPU_SECS=str(secs))
    rec = folded.record(target, *options, **how)
    rec.name = " ".join(os.path.basename(t) for t in target)
    check(rec.status == 0, f"{rec.name}: status {rec.status}", rec.err)
    return rec


def share(rec, wanted, of=lambda s: True):
    n = sum(s.weight for s in rec.settled() if of(s))
    return sum(s.weight for s in rec.settled() if of(s) and wanted(s)) / max(n, 1), n


SCRIPT = os.path.join(os.environ["TOP"], "tests/cases/symbols/many_blinks.sh")


def in_blink(stack):
    return any("blink_" in f for f in stack.user)


def blinks():
    """S-01: processes that are gone before names are looked up."""
    rec = run([case("blink"), "150"])
    part, n = share(rec, lambda s: holds(s, "main", "blink_outer"), lambda s: s.comm == "blink")
    check(n >= FEW and part > 0.6, f"{rec.name}: main > blink_outer in {part:.1%} of {n}")
    rec = run(["sh", SCRIPT, folded.CASES, "60"])
    part, n = share(rec, in_blink, lambda s: s.comm == "blink")
    pids = {s.pid for s in rec.stacks if in_blink(s)}
    check(n >= FEW and part > 0.8, f"60 blinks: blink_outer in {part:.1%} of {n}")
    check(len(pids) >= 55, f"60 blinks: names in {len(pids)} of them")
    nameless, n = share(rec, lambda s: any(re.search(r"blink\+0x|^\[unknown", f) for f in s.user),
                        lambda s: s.comm == "blink")
    check(nameless == 0, f"60 blinks: {nameless:.1%} of {n} with a frame of blink that has no name")
    unnamed = sum(s.weight for s in rec.stacks for f in s.user if "+0x" in f)
    said = re.search(r"frames of CPU samples with a name: ([\d.]+) %", rec.err)
    check(bool(said) or not unnamed, "60 blinks: the share of nameless frames is said", rec.err)


def blinks_everywhere():
    """S-01 with -a: processes that are met for the first time, and only for a moment."""
    path = os.path.join(folded.TMP, "all.folded")
    g = subprocess.Popen(folded.command("-a", path=path), stderr=subprocess.PIPE, text=True)
    line = g.stderr.readline()
    while line and "recording" not in line:
        line = g.stderr.readline()
    subprocess.run(["sh", SCRIPT, folded.CASES, "20"], check=True)
    g.send_signal(signal.SIGINT)
    _, err = g.communicate(timeout=100)
    rec = folded.Recording(g.returncode, "", err, path, 997)
    pids = {s.pid for s in rec.stacks if in_blink(s)}
    check(rec.status in (0, 1) and len(pids) >= 18, f"-a: names in {len(pids)} of 20 blinks", err)


def odd_names():
    """S-02: file names that look like something else."""
    base = case("odd")
    names = [os.path.join(d, n) for d, _, ns in os.walk(base) for n in ns
             if n != ".done"]
    check(len(names) == 4, f"four odd files: {names}")
    for path in names:
        rec = run([path], secs=1)
        rec.name = repr(path[len(base) + 1:])
        part, n = share(rec, lambda s: holds(s, "main", "chain_a", "chain_b", "chain_c"))
        check(n >= FEW and part > 0.9, f"{rec.name}: the chain in {part:.1%} of {n}")
    # One that has no names: the module is shown under its real name, on one line.
    stripped = os.path.join(folded.TMP, "no names (deleted)")
    shutil.copy(case("chain.static.stripped"), stripped)
    rec = run([stripped], secs=1)
    part, n = share(rec, lambda s: all(f.startswith("no names (deleted)+0x") or f.startswith("[")
                                       for f in s.user))
    check(n >= FEW and part > 0.95, f"its own name in {part:.1%} of {n}")


def swap():
    """S-05: two libraries by turns at one address."""
    rec = run([case("swap"), folded.CASES], secs=4, frequency=499)

    def in_library(stack):
        return "one_turn" in stack.user and any("swap" in f for f in stack.user)

    a, n = share(rec, lambda s: s.user[-1] == "swap_a_fn", in_library)
    b, _ = share(rec, lambda s: s.user[-1] == "swap_b_fn", in_library)
    addresses = re.findall(r"^[ab] (0x\w+)$", rec.out, re.M)
    check(len(set(addresses)) == 1, f"swap: the same address each time: {set(addresses)}")
    check(n >= FEW and a > 0.2 and b > 0.2 and a + b > 0.95, f"swap: {a:.0%} and {b:.0%} of {n}")
    unknown, n = share(rec, lambda s: any(re.search(r"libswap|^\[unknown", f) for f in s.user))
    check(unknown == 0, f"swap: nothing unknown: {unknown:.1%} of {n}")


def inlined():
    """S-08: frames of inlined calls, or why there are none."""
    chain = ("main", "real_function", "inline_between", "inline_deepest")
    for program in ("inlined", "inlined.zlib"):
        rec = run([case(program)], secs=1, inlines=True)
        deep, n = share(rec, lambda s: holds(s, *chain))
        part, _ = share(rec, lambda s: holds(s, *chain[:3]))
        check(n >= FEW and part > 0.95 and deep > 0.3, f"{program}: {part:.1%}, {deep:.1%} of {n}")
        with open(rec.path, encoding="utf-8") as f:
            text = f.read()
        check("real_function;inline_between_[i];inline_deepest_[i]" in text, f"{program}: marked _[i]")
        rec = run([case(program)], secs=1)
        check(not rec.total(lambda s: any("inline_" in f for f in s.user)), f"{program}: --no-inlines")
    rec = run([case("inlined.split")], secs=1, inlines=True)
    part, n = share(rec, lambda s: holds(s, *chain[:2]))
    check(n >= FEW and part > 0.95, f"inlined.split: real_function in {part:.1%} of {n}")
    check(re.search(r"^gpucollect: inlined\.split: inlined functions .*\.dwo", rec.err, re.M),
          "inlined.split: says why there is none", rec.err)


def long_name():
    """S-09: shortened where it is drawn."""
    rec = run([case("longname")], secs=1)
    part, n = share(rec, lambda s: any(f.startswith("spin_with<") for f in s.user))
    longest = max(len(f.encode()) for s in rec.stacks for f in s.user)
    check(n >= FEW and part > 0.9 and longest <= 530, f"longname: {part:.1%} of {n}, {longest} bytes")


def damaged():
    """S-10: still unwound, and named by nothing that is not there."""
    names = sorted(n for n in os.listdir(case("damaged")) if n != ".done")
    check(len(names) == 14, f"14 damaged files: {len(names)}")
    for name in names:
        rec = run([os.path.join(case("damaged"), name)], secs=1)
        deep, n = share(rec, lambda s: len(s.user) >= 5 and not folded.is_cut(s))
        check(n >= 10 and deep > 0.9, f"{name}: whole in {deep:.1%} of {n}")
        # In its loop there are its own frames only; before and after it the C library's, too.
        allowed = re.compile(rf"({re.escape(name)}\+0x[0-9a-f]+|main|chain_[abc])$")
        own, n = share(rec, lambda s: all(map(allowed.match, s.user[s.user.index(START) + 2:])),
                       lambda s: START in s.user)
        check(n >= 10 and own > 0.9, f"{name}: by its own names or none in {own:.1%} of {n}")


def main():
    for each in (blinks, blinks_everywhere, odd_names, swap, inlined, long_name, damaged):
        each()
    return check.status()


if __name__ == "__main__":
    sys.exit(main())
