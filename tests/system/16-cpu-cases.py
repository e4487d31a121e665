#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 120
"""The inputs S-03, S-04, S-06, S-07, L-02, L-05 and C-01 show what tests/cases/README.md demands."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import folded
from folded import holds

check = folded.Checks()
FEW = 50


def run(program, *args, secs=1, status=0, **how):
    rec = folded.record([os.path.join(folded.CASES, program), *args], secs=secs, **how)
    rec.name = " ".join((program, *args))
    if not check(rec.status == status, f"{rec.name}: status {status}"):
        print(rec.status, rec.err)
    return rec


def share(rec, wanted, of=lambda s: True):
    all_of = sum(s.weight for s in rec.settled() if of(s))
    return sum(s.weight for s in rec.settled() if of(s) and wanted(s)) / max(all_of, 1), all_of


def nearly_all(rec, least, *names):
    part, n = share(rec, lambda s: holds(s, *names))
    if not check(n >= FEW and part >= least, f"{rec.name}: {' > '.join(names)} in {part:.1%} of {n}"):
        folded.show(rec.stacks)


def addresses():
    """S-03: unusual load addresses."""
    for program in ("chain.fixed", "chain.hugealign"):
        nearly_all(run(program), 0.9, "main", "chain_a", "chain_b", "chain_c")
    nearly_all(run("highlib_user"), 0.9, "main", "high_library_entry", "high_library_fn")


def segments():
    """S-04: two executable segments, each with its own bias."""
    rec = run("twoseg", secs=3)
    far, n = share(rec, lambda s: holds(s, "main", "in_far_segment"))
    normal, _ = share(rec, lambda s: holds(s, "main", "in_normal_segment"))
    # They take turns of some 0.1 s: the last one is cut short, and turns differ on a busy machine.
    check(n > FEW and far > 0.25 and normal > 0.25 and far + normal > 0.95,
          f"{rec.name}: {far:.0%} and {normal:.0%} of {n}")


def symbols():
    """S-06 and S-07: no size, no symbol, four symbols."""
    rec = run("nosize")
    part, n = share(rec, lambda s: s.user and re.match(r"label_without_size$|nosize\+0x", s.user[-1]))
    check(n >= FEW and part > 0.9, f"{rec.name}: the label, or module and offset, in {part:.1%}")
    check(not rec.total(lambda s: "sized_before" in s.user), f"{rec.name}: not its neighbour")
    rec = run("holes.removed")
    part, n = share(rec, lambda s: s.user and re.match(r"holes\.removed\+0x", s.user[-1]))
    check(n >= FEW and part > 0.9, f"{rec.name}: module and offset in {part:.1%}")
    check(not rec.total(lambda s: any("neighbour" in f for f in s.user)),
          f"{rec.name}: not a neighbour's name")
    names = set()
    for _ in range(2):
        rec = run("alias")
        part, n = share(rec, lambda s: s.user and s.user[-1] in
                        ("true_name", "a_weak_name", "zz_other_name", "local_name"))
        check(n >= FEW and part > 0.9, f"{rec.name}: one of the four names in {part:.1%} of {n}")
        names |= {s.user[-1] for s in rec.settled() if s.user and s.user[-1].endswith("_name")}
    check(len(names) == 1, f"alias: the same choice in both runs: {names}")


def execs():
    """L-02: exec from a second thread, and a row of execs."""
    rec = run("execs", "thread", secs=None)
    for function, comm in (("before_exec", "execs"), ("after_exec", "exe")):
        comms = {s.comm for s in rec.settled() if function in s.user}
        n = rec.total(lambda s, f=function: holds(s, f, "spin_for"))
        check(n >= FEW and comms == {comm}, f"{rec.name}: {function}, {n} samples, is {comm}'s",
              comms)
    rec = run("execs", "chain", "50", secs=None)
    whole = rec.total(lambda s: holds(s, "main", "step_spin", "spin_for"))
    spins = rec.total(lambda s: "spin_for" in s.user)
    check(whole >= FEW and whole == spins, f"{rec.name}: main calls step_spin in {whole} of {spins}")
    pids = {s.pid for s in rec.stacks}
    check(len(pids) == 1, f"{rec.name}: one process", pids)
    # 51 images of one process: each has its own code addresses, and all were resolved.
    part, n = share(rec, lambda s: not folded.is_cut(s))
    check(part > 0.995, f"{rec.name}: {part:.2%} of {n} stacks are whole")


def ends():
    """L-05: the command's own status, and the profile is written."""
    for args, status in ((("0",), 0), (("1",), 1), (("7",), 7), (("137",), 137),
                         (("signal", "11"), 139), (("signal", "15"), 143)):
        rec = run("exits", *args, status=status)
        check(rec.total(lambda s: "half_second" in s.user) >= FEW, f"{rec.name}: written")


def arguments():
    """C-01: what stands behind the first -- is the command's."""
    args = ["-p", "1", "-F", "5", "--", "-o", "x", "--help"]
    rec = run("showargs", *args)
    check(rec.out == "".join(f"[{a}]\n" for a in args), f"{rec.name}: arguments unchanged", rec.out)
    nearly_all(rec, 0.9, "main")


def main():
    for case in (addresses, segments, symbols, execs, ends, arguments):
        case()
    return check.status()


if __name__ == "__main__":
    sys.exit(main())
