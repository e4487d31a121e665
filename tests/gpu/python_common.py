# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the programs of product_python.py have in common: the loop, and the account of it.

A line from which kernels are launched, itself or by what it calls, ends with a mark:

    # GPU             in every capture of it
    # GPU WORDS       in every capture of a program that was started with one of the words as its
                      argument, perhaps in others; no program has the word set-up
    # GPU compiled    after "def": from any line of the function, whose code another compiler rewrites

No other line launches anything. After its warm-up a program prints "ready" and waits for a line on stdin;
it ends, with status 3, when stdin does or PRODUCT_SECONDS are over. PRODUCT_ACCOUNT names the file for
its account, JSON: pid, versions, marks, and blocks of iterations [begin, end, us an iteration], on the
monotonic clock.
"""
import ast
import json
import os
import re
import select
import sys
import time

import torch

WARM = 5
BLOCK = 0.15	# s
MARK = re.compile(r"  # GPU(?: (?P<words>[a-z]+(?:[ -][a-z]+)*))?$")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def functions(node, name=""):
    """(qualified name, node) of all functions, each before those that it holds."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, FUNCTIONS):
            yield name + child.name, child
            yield from functions(child, f"{name}{child.name}.<locals>.")
        elif isinstance(child, ast.ClassDef):
            yield from functions(child, f"{name}{child.name}.")
        else:
            yield from functions(child, name)


def marks(path):
    """Where this file launches, as the source says: file, function, first and last line, words."""
    with open(path, encoding="utf-8") as f:
        source = f.read()
    all_functions = list(functions(ast.parse(source)))
    for number, line in enumerate(source.split("\n"), 1):
        m = MARK.search(line)
        if not m:
            continue
        name, last = "<module>", number
        for function, node in all_functions:
            if node.lineno <= number <= node.end_lineno:
                name, last = function, node.end_lineno
        words = (m["words"] or "").split()
        yield {"file": path, "function": name, "first": number,
               "last": last if "compiled" in words else number,
               "words": [w for w in words if w != "compiled"]}


def block(step):
    begin, n = time.monotonic(), 0
    while time.monotonic() - begin < BLOCK:
        step()  # GPU
        n += 1
    torch.cuda.synchronize()
    end = time.monotonic()
    return [begin, end, (end - begin) / n * 1e6]


def is_over(end):
    return time.monotonic() > end or select.select([sys.stdin], [], [], 0)[0]


def run(step):
    for _ in range(WARM):
        step()  # GPU set-up
    torch.cuda.synchronize()
    print("ready", flush=True)
    if not sys.stdin.readline():
        sys.exit(4)
    blocks, end = [], time.monotonic() + float(os.environ["PRODUCT_SECONDS"])
    while not is_over(end):
        blocks.append(block(step))  # GPU
    files = (os.path.abspath(sys.modules["__main__"].__file__), os.path.abspath(__file__))
    account = {"pid": os.getpid(), "python": sys.version.split()[0], "torch": torch.__version__,
               "blocks": blocks, "marks": [m for path in files for m in marks(path)]}
    with open(os.environ["PRODUCT_ACCOUNT"], "w", encoding="utf-8") as f:
        json.dump(account, f)
    sys.exit(3)  # must come through
