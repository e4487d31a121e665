# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Compares the launches of a Python program with its own account of them (tests/programs/python)."""
import collections
import os
import re
import shutil
import subprocess

import launches as L
import python_frames as P

DEEP = 250	# Python frames; up to 3.9 each has three native ones and more
SHOWN = 8	# faults of a run that are shown in full
LOOP_BYTES = 8192	# the interpreter's loop is longer


def own_driver():
    """The virtual driver in a file of our own: where probes sit in the common one, there may be others'."""
    folder = os.path.join(L.TMP, "driver")
    os.makedirs(folder, exist_ok=True)
    shutil.copy(L.path_of("simcuda"), folder)
    return folder


class Faults:
    """What is wrong with one run; most of it has one reason, so that a few are enough to see."""

    def __init__(self, check, what):
        self.check, self.what, self.list = check, what, []

    def __call__(self, text):
        self.list.append(text)

    def report(self):
        for text in self.list[:SHOWN]:
            print(f"{self.what}: {text}", flush=True)
        self.check(not self.list, f"{self.what}: {len(self.list)} faults")


def symbols(path, *options):
    """What nm says of an interpreter and its library."""
    library = [os.path.join(os.path.dirname(path), "../lib", n) for n in os.listdir(
        os.path.join(os.path.dirname(path), "../lib")) if n.startswith("libpython3") and ".so.1" in n]
    return "".join(subprocess.run(["nm", *options, file], capture_output=True, text=True).stdout
                   for file in (path, *library))


def has_symbols(path):
    """Whether functions of the interpreter have names that it doesn't export."""
    return " list_sort" in symbols(path)


def has_handlers(path):
    """Whether its loop has other parts than the one with its name, or it has none: that one is short then."""
    m = re.search(r"^\S+ (\S+) T _PyEval_EvalFrameDefault$", symbols(path, "-D", "-S"), re.M)
    return bool(m) and int(m[1], 16) < LOOP_BYTES


def texts(chain):
    return tuple(P.shown(*f[:3]) for f in chain)


def wrong(stack, account, how):
    """What is wrong with the stack of a launch, or None."""
    _, python = P.split(stack.frames)
    chain = account.below + account.chain
    if len(chain) > DEEP and "[truncated]" in stack.frames:
        # Too deep for what a launch may have; the Python frames are there all the same.
        return P.differ(python, texts(chain))
    fault = P.differ(python, texts(chain)) or P.has_strangers(stack.frames, chain, how.symbols) or \
        (P.is_folded(stack.frames, how.each, how.handlers) if how.native else P.is_unfolded(stack.frames, chain))
    if not fault and stack.frames[-1] != "cuLaunchKernel":
        fault = f"at the end stands {stack.frames[-1]}"
    marks = [f for f in stack.frames if P.MARK.match(f)]
    return fault or marks and f"marks: {marks}" or None


def by_kernel(r, accounts, how, fault):
    """Kernels have their names: one stack for each launch."""
    stacks = collections.defaultdict(list)
    for s in r.stacks:
        stacks[s.kernel].append(s)
    for a in accounts:
        found = stacks.pop(a.kernel, [])
        if sum(s.weight for s in found) != 1:
            fault(f"{a.kernel} has {len(found)} stacks: {a.chain[-1]}")
            continue
        text = wrong(found[0], a, how)
        if text:
            fault(f"{a.kernel}: {text}\n  in {P.path(found[0].frames)}")
    if stacks:
        fault(f"stacks of nobody: {list(stacks)[:5]}")


def by_stack(r, accounts, how, fault):
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
            text = wrong(s, example[key], how)
            if text:
                fault(f"{text}\n  in {P.path(s.frames)}")
    for key in set(got) - set(want):
        fault(f"{got[key]} launches from {len(key)} frames that never were: … {P.path(key[-3:])}")


# Of a run: the interpreter's functions have names; it was made with --native-python; each Python
# frame has a call of the interpreter for itself; that has no loop.
How = collections.namedtuple("How", "symbols native each handlers")


def compare(check, what, r, interpreter, mode, truth, least, native=False):
    """All of a run: as many launches as accounts, at `least` so many, each from its stack.
    `interpreter`: its path and version."""
    accounts = list(P.accounts(truth)) if os.path.exists(truth) else []
    fault = Faults(check, what)
    path, version = interpreter
    how = How(has_symbols(path), native, version < (3, 11), has_handlers(path))
    if r.launches() != len(accounts):
        fault(f"{r.launches()} launches instead of {len(accounts)}")
    if r.lost() or r.complaints():
        fault(f"{r.lost()} lost, {r.complaints()}")
    if len(accounts) < least:
        fault(f"only {len(accounts)} accounts")
    (by_stack if L.by_probes(mode) else by_kernel)(r, accounts, how, fault)
    fault.report()
    print(f"{what}: {len(accounts)} launches, {sum(len(a.below + a.chain) for a in accounts)} frames, "
          f"{len(fault.list)} faults", flush=True)
