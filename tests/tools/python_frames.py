# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Python frames in folded stacks, and what they have to be (docs/output.md)."""
import collections
import json
import os
import re
import subprocess
import sys

MAX_BYTES = 8192	# of a function's name, and of a file's; the rest is cut
HARMFUL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")
OWN = re.compile(r"^\[(?=GPU\]|thread )")	# begins like a frame that is no Python function
# "function (file:line)", or "function (file)" where there is no line; "…": cut.
PYTHON = re.compile(r"^(?P<function>.*?)(?: |\?)\((?P<where>.*)(?:\)|…)(?:#[0-9a-f]{8})?$", re.S)
# What is folded away (--native-python keeps it): how the interpreter gets from function to function.
INTERNAL = re.compile(r"_?PyEval_.*|_PyFunction_Vectorcall.*|_?PyObject_(Call|Vectorcall|MakeTpCall|Fast).*|"
                      r"_?PyVectorcall_.*|method_vectorcall.*|function_code_fastcall.*|call_function.*|"
                      r"_TAIL_CALL_.*|(lib)?python\d(\.\d+)?\S*\+0x[0-9a-f]+|Py_(Run|Bytes)Main|"
                      r"(lib)?python\d\.\d+\.so\S*\+0x[0-9a-f]+")
CALLS = "calls_"	# the functions of tests/programs/python_calls.c
UNKNOWN = "[unknown Python function]"
THREAD = re.compile(r"\[thread .+\]")
LOOP = re.compile(r"_PyEval_EvalFrameDefault.*")	# it runs Python frames
# The same where the loop has parts without its name, or there is a function for each instruction (3.14).
HANDLER = re.compile(LOOP.pattern + r"|_TAIL_CALL_.*|(lib)?python\d(\.\d+)?\S*\+0x[0-9a-f]+")
# Says that something is missing.
MARK = re.compile(r"^\[(truncated|no unwind info|unusable unwind info|stack unreadable|stack loops|"
                  r"return address is not code|generated code without frame pointer|no stack|unknown\]$|"
                  r"Python |more Python |unknown Python )")

# One launch as its program has written it down: chains of Frame, outermost first; `below`: the chain of
# the interpreter that runs this one.
Account = collections.namedtuple("Account", "kernel below chain")
Frame = collections.namedtuple("Frame", "function file line natives")


def skip_without_product():
    program = os.environ.get("GPUCOLLECT", "gpucollect")
    r = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
    if "--native-python" not in r.stdout:
        print("skipped: this gpucollect shows no Python frames")
        sys.exit(77)


def accounts(path):
    with open(path, encoding="utf-8") as f:
        for line in f:
            a = json.loads(line)
            yield Account(a["kernel"], *([Frame(*x) for x in a[k]] for k in ("below", "chain")))


def as_utf8(text):
    """What can't be written, visibly: as it comes from the interpreter's memory."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text).replace("\0", "\u2400")


def shown(function, file, line):
    """The frame's text, however long."""
    function = function or "[no name]"
    text = as_utf8(f"{function} ({file}:{line})" if line else f"{function} ({file})")
    text = OWN.sub("?", HARMFUL.sub("?", text).replace(";", ":"))
    blanks = len(text) - len(text.lstrip(" "))
    return "?" * blanks + text[blanks:]


def is_python(frame):
    return frame == UNKNOWN or bool(PYTHON.match(frame))


def is_same(got, want):
    """Whether this is the frame, perhaps cut because of its length."""
    if got == want:
        return True
    cut = re.sub("…#[0-9a-f]{8}", "…", got)
    if len(want.encode()) <= MAX_BYTES or not 1 <= cut.count("…") <= 2 or \
            any(len(part.encode()) < MAX_BYTES - 8 for part in cut.split("…")[:1]):
        return False
    return bool(re.fullmatch(".*".join(map(re.escape, cut.split("…"))), want))


def brief(text, most=120):
    """For the reader of a failure."""
    return text if len(text) <= most else text[:most * 2 // 3] + " … " + text[-most // 3:]


def path(frames, most=60):
    return ";".join(brief(f) for f in frames[:most])


def differ(got, want):
    """Where the Python frames of a stack are not the wanted texts, or None."""
    for i, (g, w) in enumerate(zip(got, want)):
        if not is_same(g, w):
            return f"frame {i} is {brief(g)} instead of {brief(w)} after {path(got[max(0, i - 1):i])}"
    if len(got) != len(want):
        return f"{len(got)} Python frames instead of {len(want)}: " \
               f"{(got[len(want):] or want[len(got):])[:3]} too {'many' if len(got) > len(want) else 'few'}"
    return None


def split(frames):
    """[natives before the first Python frame, after it, …], and the Python frames."""
    natives, python = [[]], []
    for f in frames:
        if is_python(f):
            python.append(f)
            natives.append([])
        else:
            natives[-1].append(f)
    return natives, python


def stand_in_order(natives, wanted):
    """Whether all `wanted` expressions are met by `natives`, in this order."""
    rest = iter(natives)
    return all(any(re.fullmatch(w, n) for n in rest) for w in wanted)


def has_strangers(frames, chain, symbols):
    """What is wrong with the C functions of a stack whose Python frames are right, or None: they have
    to stand where they were called. `symbols`: the interpreter's own functions have names."""
    natives, _ = split(frames)
    for f, before in zip(chain, natives):
        calls = [n for n in before if n.startswith(CALLS)]
        if calls != [n for n in f.natives if n.startswith(CALLS)]:
            return f"above {f.function}: {calls} of the program's C functions instead of {f.natives}"
        wanted = [n.lstrip("?") for n in f.natives if symbols or not n.startswith("?")]
        if not stand_in_order(before, wanted):
            return f"above {f.function}: {before} instead of {wanted}"
    if any(n.startswith(CALLS) for n in natives[-1]):
        return f"at the end: {natives[-1]}"
    return None


def is_unfolded(frames, chain):
    """What of the interpreter's own has been left in, or None."""
    natives, _ = split(frames[1:] if THREAD.fullmatch(frames[0]) else frames)
    if natives[0] and not chain[0].natives:
        return f"before the first Python frame: {natives[0]}"
    for i, between in enumerate(natives):
        left = [n for n in between if INTERNAL.fullmatch(n)]
        if left:
            return f"of the interpreter, behind {i} Python frames: {left}"
    return None


def is_folded(frames, each, handlers):
    """With --native-python: where the calls of the interpreter are not right, or None. Each of them
    runs the Python frames behind it, so that one stands before the first of them and nowhere else;
    `each`: before each (up to 3.10, later Python calls Python without one). `handlers`: it has no loop."""
    natives, python = split(frames)
    for i, between in enumerate(natives):
        if handlers:
            if i < len(python) and between and not HANDLER.fullmatch(between[-1]):
                return f"no call of the interpreter at the end of {between[-9:]}, behind {i} Python frames"
            continue
        loops = [j for j, n in enumerate(between) if LOOP.fullmatch(n)]
        last = i == len(python)
        if loops != ([len(between) - 1] if not last and (between or each) else []):
            return f"calls of the interpreter at {loops} of {between[-9:]}, behind {i} Python frames"
    return None
