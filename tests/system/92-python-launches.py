#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
"""Each launch of a Python program has the Python frames that the interpreter itself had.

tests/programs/python/launches.py launches from everywhere in Python and writes down its own stack at
each launch. All are compared, frame by frame: function, file, line and order, and the native functions
that are known to stand between. Started and attached to, with the library and by probes, under every
interpreter that is here.
"""
import collections
import os
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402
import python_frames as P  # noqa: E402
import pythons  # noqa: E402

MODES = ("library", "probes", "attached", "attached-probes")
PROGRAM = os.path.join(os.environ["TOP"], "tests/programs/python/launches.py")
CALLS = os.path.join(os.path.abspath(L.PROGRAMS), "libpython_calls.so")
DEEP = 250	# Python frames; up to 3.9 each has three native ones and more
SHOWN = 8	# faults of a run that are shown in full
check = L.Checks()


class Faults:
    """What is wrong with one run; most of it has one reason, so that a few are enough to see."""

    def __init__(self, what):
        self.what, self.list = what, []

    def __call__(self, text):
        self.list.append(text)

    def report(self):
        for text in self.list[:SHOWN]:
            print(f"{self.what}: {text}", flush=True)
        check(not self.list, f"{self.what}: {len(self.list)} faults")


def has_symbols(path):
    """Whether functions of the interpreter have names that it doesn't export."""
    r = L.subprocess.run(["nm", path], capture_output=True, text=True)
    library = [os.path.join(os.path.dirname(path), "../lib", n) for n in os.listdir(
        os.path.join(os.path.dirname(path), "../lib")) if n.startswith("libpython3") and ".so.1" in n]
    for file in library:
        r.stdout += L.subprocess.run(["nm", file], capture_output=True, text=True).stdout
    return " list_sort" in r.stdout


def texts(chain):
    return tuple(P.shown(*f[:3]) for f in chain)


def wrong(stack, account, symbols):
    """What is wrong with the stack of a launch, or None."""
    _, python = P.split(stack.frames)
    chain = account.below + account.chain
    if len(chain) > DEEP and "[truncated]" in stack.frames:
        # Too deep for what a launch may have; the Python frames are there all the same.
        return P.differ(python, texts(chain))
    fault = P.differ(python, texts(chain)) or P.misplaced(stack.frames, chain, symbols)
    if not fault and stack.frames[-1] != "cuLaunchKernel":
        fault = f"at the end stands {stack.frames[-1]}"
    marks = [f for f in stack.frames if P.MARK.match(f)]
    return fault or marks and f"marks: {marks}" or None


def by_kernel(r, accounts, symbols, fault):
    """Kernels have their names: one stack for each launch."""
    stacks = collections.defaultdict(list)
    for s in r.stacks:
        stacks[s.kernel].append(s)
    for a in accounts:
        found = stacks.pop(a.kernel, [])
        if sum(s.weight for s in found) != 1:
            fault(f"{a.kernel} has {len(found)} stacks: {a.chain[-1]}")
            continue
        text = wrong(found[0], a, symbols)
        if text:
            fault(f"{a.kernel}: {text}\n  in {P.path(found[0].frames)}")
    if stacks:
        fault(f"stacks of nobody: {list(stacks)[:5]}")


def by_stack(r, accounts, symbols, fault):
    """Kernels have none: as many launches from each stack as there were."""
    got, native = collections.Counter(), {}
    for s in r.stacks:
        key = tuple(P.split(s.frames)[1])
        got[key] += s.weight
        native.setdefault(key, []).append(s)
    want, example = collections.Counter(), {}
    for a in accounts:
        key = texts(a.below + a.chain)
        want[key] += 1
        example[key] = a
    for key, n in want.items():
        if got[key] != n:
            fault(f"{got[key]} launches instead of {n} from {P.path(key[-3:])}")
        for s in native.get(key, []):
            text = wrong(s, example[key], symbols)
            if text:
                fault(f"{text}\n  in {P.path(s.frames)}")
    for key in set(got) - set(want):
        fault(f"{got[key]} launches from {len(key)} frames that never were: … {P.path(key[-3:])}")


def one(path, version, mode):
    what = f"{pythons.name(path, version)} {mode}"
    truth = os.path.join(L.TMP, "truth")
    if os.path.exists(truth):
        os.remove(truth)
    r = L.run([path, PROGRAM], mode=mode, metric="launches", TRUTH=truth, CALLS=CALLS, TEST_TMP=L.TMP)
    accounts = list(P.accounts(truth))
    fault = Faults(what)
    if r.status != 1 or r.out != "done\n":
        fault(f"the program's status {r.status}, it printed {r.out!r} {r.err}")
    if r.launches() != len(accounts):
        fault(f"{r.launches()} launches instead of {len(accounts)}")
    if r.lost() or r.complaints():
        fault(f"{r.lost()} lost, {r.complaints()}")
    if len(accounts) < 450:
        fault(f"only {len(accounts)} accounts")
    (by_stack if L.by_probes(mode) else by_kernel)(r, accounts, has_symbols(path), fault)
    fault.report()
    print(f"{what}: {len(accounts)} launches, {sum(len(a.below + a.chain) for a in accounts)} frames, "
          f"{len(fault.list)} faults", flush=True)


P.skip_without_product()
for interpreter, its_version in pythons.need():
    for one_mode in sys.argv[1:] or MODES:
        one(interpreter, its_version, one_mode)
sys.exit(check.status())
