#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
"""Where there are more Python frames than are shown, the innermost are in their places, and a mark outside.

tests/programs/python/recursion.py calls itself, plainly and through C, and says what stack Python itself sees.
What is shown must be the inner end of that, with the C functions where they were called; between the mark and
the root may be natives only. Samples hit calls that begin or end, too; launches have fewer native frames.
"""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402
import python_frames as P  # noqa: E402
import python_launches  # noqa: E402
import pythons  # noqa: E402

PROGRAM = os.path.join(os.environ["TOP"], "tests/programs/python/recursion.py")
CALLS = os.path.join(os.path.abspath(L.PROGRAMS), "libpython_calls.so")
MORE = "[more Python frames]"
LOST = "[Python frames out of place]"
FREQUENCY, SECONDS, FEW = 997, 1, 20
SHOWN = 500	# at least
WHOLE = 0.998	# so many have no further mark
DRIVER = python_launches.own_driver()
# Kind and depth, how, and whether the interpreter's own frames are shown; an interpreter has a third of them.
HOW = [("spin", False), ("launch", False), ("spin", True)]
CASES = [(kind, 900, *how) for i, kind in enumerate(("plain", "handed", "threaded")) for how in HOW[i:] + HOW[:i]]
# Further than the list is followed; before 3.11 the C stack is larger than what is copied of it.
FAR = [("plain", 4000, *how) for how in HOW]
check = L.Checks()


def calls(natives):
    return [n for n in natives if n.startswith(P.CALLS)]


def misplaced(between, chain, complete):
    """What is wrong with the native frames before each Python frame but the first, which has its outside of
    the mark. Where these are not `complete`, the outermost are missing."""
    missing = False
    if between[0]:
        return f"behind the mark: {between[0]}"
    for f, natives in reversed(list(zip(chain, between))[1:]):
        if missing and natives:
            return f"above {f.function}, outside of what is there: {natives}"
        if not missing and calls(natives) != f.natives:
            missing = not complete and len(calls(natives)) < len(f.natives)
            if not missing:
                return f"above {f}: {natives}"
    return None


def wrong(frames, chain, native):
    """What is wrong with a stack whose Python frames end with those of `chain`, or None."""
    if MORE not in frames:
        return "no mark"
    at = frames.index(MORE)
    outside, inside = frames[:at], frames[at + 1:]
    complete = LOST not in inside
    if not complete:
        if outside != ["[truncated]"] or inside.pop(0) != LOST:
            return f"marked out of place: {frames[:3]}"
    between, python = P.split(inside)
    chain = chain[-len(python):]
    if len(python) < SHOWN:
        return f"only {len(python)} frames"
    strangers = [f for f in inside if re.fullmatch(L.ROOT + r"|Py_(Run|Bytes)Main|\[.*\]", f)]
    if strangers or any(map(P.is_python, outside)):
        return f"{strangers} within"
    if not native and outside not in ([], ["[truncated]"]):
        return f"{outside[:3]} outside"
    if native and not re.fullmatch(L.ROOT + r"|\[truncated\]", outside[0] if outside else ""):
        return f"{outside[:3]} at the root"
    return P.differ(python, python_launches.texts(chain)) or misplaced(between, chain, complete)


def cut_to(frames, function):
    """A stack up to this function, and what it has called."""
    at = [i for i, f in enumerate(frames) if f.startswith(function + " (")][-1] + 1
    return frames[:at], frames[at:]


def beyond(frames):
    """What is wrong with what spin() has called, or None."""
    _, python = P.split(frames)
    names = [f.split(" ")[0] for f in python]
    is_right = names in ([], ["called"], ["tick"]) and not calls(frames)
    return None if is_right else P.path(frames)


def judge(what, stacks, chain, native):
    total = whole = 0
    for s in stacks:
        if not any(f.startswith("spin (") for f in s.frames):
            continue
        n = s.weight // (1000000000 // FREQUENCY)
        upper, lower = cut_to(s.frames, "spin")
        # The line of the loop is another each time.
        upper[-1] = P.shown(*chain[-1][:3])
        text = wrong(upper, chain, native) or beyond(lower)
        total += n
        whole += 0 if text else n
        if text:
            print(f"{what}: {n} samples: {P.brief(text, 1000)}", flush=True)
    check(total >= FEW, f"{what}: only {total} samples")
    check(whole >= WHOLE * total, f"{what}: {whole} of {total} are right")
    print(f"{what}: {total} samples, {whole} right", flush=True)


def spin(what, path, kind, depth, native):
    out = os.path.join(L.TMP, "o.folded")
    p = subprocess.Popen([path, PROGRAM, kind, str(depth), "spin"], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True, env=L.environment(DRIVER, CALLS=CALLS))
    try:
        chain = [P.Frame(*f) for f in json.loads(p.stdout.readline())["chain"]]
        a = L.Attached([p.pid], "--metric", "cpu", "--no-gpu", "--no-inlines", "-F", str(FREQUENCY), "-d",
                       f"{SECONDS}s", "-y", "-o", out, *(["--native-python"] if native else []))
        status = a.process.wait(timeout=60)
        L.skip_without_bpf(status, a.said())
        check(status == 0, f"{what}: status {status}: {a.said()}")
        judge(what, L.read(out), chain, native)
        p.stdin.close()
        check(p.wait(timeout=60) == 0, f"{what}: the program's status {p.returncode}")
    finally:
        p.kill()
        p.wait()


def launch(what, path, kind, depth, native):
    truth = os.path.join(L.TMP, "truth")
    if os.path.exists(truth):
        os.remove(truth)
    # A second, after which the interpreter is known.
    r = L.run([path, "-c", f"import time, sys, runpy; time.sleep(0.5); sys.argv[1:] = ['{kind}', '{depth}', "
               f"'launch']; runpy.run_path({PROGRAM!r})"],
              *(["--native-python"] if native else []), mode="library", metric="launches", kind=DRIVER,
              TRUTH=truth, CALLS=CALLS, PYTHONPATH=os.path.dirname(PROGRAM))
    accounts = list(P.accounts(truth)) if os.path.exists(truth) else []
    check(r.status == 0 and len(accounts) == len(r.stacks) == 1, f"{what}: status {r.status}, {r.err}")
    for s, a in zip(r.stacks, accounts):
        text = wrong(s.frames[:-1], a.chain, native)
        check(not text, f"{what}: {P.brief(text or '', 1000)}")
        check(s.frames[-1] == "cuLaunchKernel", f"{what}: it ends with {s.frames[-1]}")


P.skip_without_product()
for turn, (interpreter, its_version) in enumerate(pythons.need()):
    for a_kind, a_depth, how, is_native in pythons.share(CASES + FAR * (its_version >= (3, 11)), turn):
        its_name = f"{pythons.name(interpreter, its_version)} {a_kind} {a_depth} {how}"
        (spin if how == "spin" else launch)(its_name, interpreter, a_kind, a_depth, is_native)
sys.exit(check.status())
