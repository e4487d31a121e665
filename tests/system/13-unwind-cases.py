#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 200
"""The inputs U-01 to U-10 show what the table of tests/cases/README.md demands of each."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import folded
from folded import holds, is_cut

check = folded.Checks()
FEW = 50	# samples in a second at 997 Hz on a machine that is very busy with other things


def run(program, *args, secs=1, wrap=()):
    name = " ".join((program, *args))
    rec = folded.record([*wrap, os.path.join(folded.CASES, program), *args], secs=secs)
    rec.name = name
    check(rec.status == 0, f"{name}: status 0: {rec.status}")
    return rec


def every(rec, wanted, good, text, least=FEW, share=1.0):
    """Of the stacks that are `wanted`, all (or that share) are `good`."""
    some = [s for s in rec.settled() if wanted(s)]
    bad = [s for s in some if not good(s)]
    n, wrong = sum(s.weight for s in some), sum(s.weight for s in bad)
    if not check(n >= least and wrong <= n * (1 - share), f"{rec.name}: {text} ({wrong} of {n} not)"):
        folded.show(bad or rec.stacks)


def never(rec, name):
    n = rec.total(lambda s: name in s.user)
    check(n == 0, f"{rec.name}: never shows {name}: {n}")


def leaf(name):
    return lambda s: bool(s.user) and s.user[-1] == name


def within(name):
    return lambda s: name in s.user


def whole(*names):
    return lambda s: holds(s, *names) and not is_cut(s)


def noret():
    rec = run("noret")
    every(rec, leaf("never_returns"), whole("main", "ends_in_call", "never_returns"),
          "the function that ends in the call is the caller")
    never(rec, "bystander")


def altstack():
    def good(start):
        def is_good(s):
            """handler; signal return; raise; six times raiser; the start."""
            if is_cut(s) or s.user[-2:] != ["handler", "busy_in_handler"]:
                return False
            inside = s.user[:-2]
            while inside and inside[-1] != "raise":
                if not re.match(r"libc\.so\.6\+0x|__restore_rt$|(__)?pthread_kill", inside.pop()):
                    return False
            return inside[-8:] == [start, "start_raising"][-1:] + ["raiser"] * 6 + ["raise"] and \
                inside[-9] == start
        return is_good

    for mode, start in (("main", "main"), ("above", "thread_main"), ("below", "thread_main")):
        rec = run("altstack", mode)
        spinning = leaf("busy_in_handler")
        every(rec, lambda s: spinning(s) and not is_cut(s), good(start),
              "handler, signal return, raise, six times raiser and the start")
        # The copy for code without rows is one of one stack: that is marked, and over soon.
        every(rec, lambda s: spinning(s) and is_cut(s), lambda s: s.user[0] == "[stack unreadable]",
              "what is cut is marked as unreadable", least=0)
        every(rec, spinning, lambda s: not is_cut(s), "nearly all are whole", share=0.9)


def realign():
    rec = run("realign")
    every(rec, lambda s: leaf("leaf")(s) or within("realigned_frame")(s),
          whole("main", "realigned_frame"), "main calls realigned_frame")
    rec = run("realign", "tight", secs=2)
    every(rec, within("realigned_small"), whole("main", "caller_of_small", "realigned_small"),
          "realigned_small has its caller and main")
    every(rec, within("caller_of_small"), whole("main", "caller_of_small"), "main is the root")
    # Prologue and epilogue, where the frame's rule changes with every instruction, were hit, too:
    # no sample that is in the program may be without its caller.
    every(rec, lambda s: not s.kernel and not any(f.startswith("ld-linux") for f in s.user),
          whole("main", "caller_of_small"), "no sample lacks the caller", share=0.995)


CHAIN = ("main", "chain_a", "chain_b", "chain_c")


def chains():
    stacks = {}
    for program in ("chain", "chain.notable", "chain.static"):
        rec = run(program)
        every(rec, leaf("chain_c"), whole(*CHAIN), "main, chain_a, chain_b, chain_c")
        stacks[program] = {tuple(s.user) for s in rec.settled() if leaf("chain_c")(s)}
    check(stacks["chain"] == stacks["chain.notable"],
          "without the search table the stacks are the same", stacks)
    check(len(stacks["chain.static"]) == 1, "one stack in the static one", stacks)
    depth = len(next(iter(stacks["chain.static"]), ()))
    check(depth >= 6, f"four frames below the C library's start: {depth} in all")
    rec = run("chain.static.stripped")
    module = re.compile(r"chain\.static\.stripped\+0x[0-9a-f]+$")
    every(rec, lambda s: not s.kernel, lambda s: len(s.user) == depth and
          all(module.match(f) for f in s.user), "the same depth, module and offset", share=0.95)
    every(rec, lambda s: True, lambda s: not is_cut(s), "nothing is cut")


def notables():
    rec = run("notables")
    every(rec, leaf("leaf_below"), lambda s: holds(s, "no_tables", "leaf_below"),
          "no_tables calls leaf_below")
    every(rec, within("no_tables"), lambda s: whole("main", "no_tables")(s) or
          (s.user[0] == "[no unwind info: notables]" and s.user[1] == "no_tables"),
          "main follows, or a mark that names the file")


def vdso():
    for args, asker, root in (((), "ask_clock", "main"), (("4",), "ask_day", "asker")):
        rec = run("vdso", *args)
        every(rec, within(asker), whole(root, asker), f"{asker} below {root}, to the thread's root")
        inside = rec.total(lambda s: s.user and re.search("vdso", s.user[-1]))
        check(inside > FEW, f"{rec.name}: {inside} samples in the vDSO")
        every(rec, lambda s: s.user and re.search("vdso", s.user[-1]), within(asker),
              f"{asker} is in each sample of the vDSO")
        # Its functions that are not exported have no names where the kernel was built without them inline.
        check(not re.search(r"\[vdso\]: (?!no symbols)", rec.err),
              f"{rec.name}: nothing else is said of a file [vdso]", rec.err)


def prologue():
    rec = run("prologue", secs=2)
    every(rec, within("tiny_leaf"), whole("main", "outer", "middle", "tiny_leaf"),
          "the caller of tiny_leaf is middle")
    every(rec, within("middle"), whole("main", "outer", "middle"), "the caller of middle is outer")


def deep():
    rates = {}
    for depth in (100, 2000, 10000):
        # The shell tells how much CPU time the program had.
        rec = run("deep", str(depth), secs=2, wrap=("sh", "-c", '"$@"; times', "sh"))
        minutes, seconds = re.findall(r"(\d+)m([\d.]+)s", rec.out)[2]
        rates[depth] = rec.total(lambda s: s.comm == "deep") / (int(minutes) * 60 + float(seconds))
        counts = {len([f for f in s.user if f == "recurse"])
                  for s in rec.settled() if leaf("bottom")(s) and not is_cut(s)}
        # What the first thousand frames leave fits into a megabyte: frames have some 550 bytes.
        fits = {d + 1 for d in (depth, depth // 10) if d <= 2500}
        check(counts == fits, f"{rec.name}: whole stacks have {fits} frames of recurse: {counts}")
        every(rec, lambda s: leaf("bottom")(s) and not is_cut(s), lambda s: "main" in s.user,
              "whole stacks begin in main", least=0)
        cut = [s for s in rec.settled() if leaf("bottom")(s) and is_cut(s)]
        roots = {s.user[0] for s in cut}
        check(roots == ({"[truncated]"} if depth > 2500 else set()),
              f"{rec.name}: one mark is the parent of those that are cut: {roots}")
        check(all(set(s.user[1:-1]) == {"recurse"} for s in cut),
              f"{rec.name}: a cut stack keeps its leaf end")
        check(all(len(s.user) >= 2500 for s in cut), f"{rec.name}: 2500 frames and more are kept")
        if cut:
            said = re.search(r"\[truncated\] ([\d,]+)", rec.err)
            n = rec.total(lambda s: s.user and s.user[0] == "[truncated]")
            check(said and int(said[1].replace(",", "")) == n,
                  f"{rec.name}: the summary counts them: {n}", rec.err)
    print("      samples a second of CPU time:", {d: round(r) for d, r in rates.items()})
    check(min(rates.values()) > 0.8 * max(rates.values()), "the rate does not depend on depth")


def anoncode():
    rec = run("anoncode", "fp")
    every(rec, leaf("called_back"), lambda s: not is_cut(s) and
          holds(s, "main", "run_generated", s.user[-2], "called_back") and s.user[-2][0] == "[",
          "one unknown frame between run_generated and called_back")
    rec = run("anoncode", "nofp")
    every(rec, leaf("called_back"), lambda s: is_cut(s) and len(s.user) == 3 and
          s.user[1][0] == "[", "called_back, an unknown frame, a mark, and nothing invented")


def main():
    for case in (noret, altstack, realign, chains, notables, vdso, prologue, deep, anoncode):
        case()
    return check.status()


if __name__ == "__main__":
    sys.exit(main())
