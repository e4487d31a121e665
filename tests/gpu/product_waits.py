#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Waits of PyTorch for the GPU, by line, against the script's own clock, on a real GPU.

product_waits.py run [ROUNDS]        the loop; prints "wait LINE WHAT COUNT NS" at its end, and its losses
product_waits.py check GPUCOLLECT    runs it alone and under gpucollect, compares; status 1 if something is wrong

The script's clock goes around the whole line, with Python and PyTorch in it: so it must have as much as gpucollect
at least, and where the wait is long hardly more.
"""
import collections
import os
import re
import subprocess
import sys
import time

WARM = 5
said = collections.OrderedDict()


def timed(line, what, begin):
    entry = said.setdefault((line, what), [0, 0])
    entry[0] += 1
    entry[1] += time.monotonic_ns() - begin


def here():
    return sys._getframe(1).f_lineno


def one(x, w, s, event, count):
    """Some ms of work, then a wait, by each way that scripts know."""
    add = timed if count else lambda *_: None
    h = work(x, w)
    begin = time.monotonic_ns()
    value = h.sum().item(); line = here()
    add(line, "item", begin)
    h = work(x, w)
    begin = time.monotonic_ns()
    host = h[:64].cpu(); line = here()
    add(line, "cpu", begin)
    h = work(x, w)
    begin = time.monotonic_ns()
    listed = h[0, :4].tolist(); line = here()
    add(line, "tolist", begin)
    work(x, w)
    begin = time.monotonic_ns()
    s.synchronize(); line = here()
    add(line, "stream", begin)
    work(x, w)
    event.record()
    begin = time.monotonic_ns()
    event.synchronize(); line = here()
    add(line, "event", begin)
    work(x, w)
    begin = time.monotonic_ns()
    torch.cuda.synchronize(); line = here()
    add(line, "device", begin)
    begin = time.monotonic_ns()
    torch.cuda.synchronize(); line = here()
    add(line, "nothing", begin)
    return value, float(host.double().sum()), sum(listed)


def work(x, w):
    for _ in range(8):
        x = torch.relu(torch.mm(x, w)) * 0.01
    return x


def run(rounds):
    torch.manual_seed(7)
    x, w = (torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    s, event = torch.cuda.current_stream(), torch.cuda.Event()
    for _ in range(WARM):
        one(x, w, s, event, False)
    torch.cuda.synchronize()
    print("ready", time.monotonic_ns(), flush=True)
    if not sys.stdin.readline():
        sys.exit(4)
    sums = [one(x, w, s, event, True) for _ in range(rounds)]
    for (line, what), (n, ns) in said.items():
        print(f"wait {line} {what} {n} {ns}")
    print("sums", [[v.hex() for v in sum_] for sum_ in (sums[0], sums[-1])], flush=True)


def result(command, gpc, how, folded):
    """The script's end, with gpucollect attached once it is warm, so that only the loop is seen; or alone."""
    p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    g = None
    assert p.stdout.readline().startswith("ready")
    if gpc:
        g = subprocess.Popen([gpc, "--metric", "wait", "--launches", how, "--json", "-y", "-o", folded, "-p", str(p.pid)],
                             stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in g.stderr:
            if '"recording' in line:
                break
    out, _ = p.communicate("go\n")
    err = g.communicate()[1] if g else ""
    return p.returncode, out, g and g.returncode, err


def compare(what, out, folded, error):
    """By line of the script: gpucollect's time, the script's, and how they differ for each wait.

    error: the standard error, ns, of all lines together, where not every wait was looked at.
    """
    wrong, got = 0, collections.Counter()
    for line in open(folded, encoding="utf-8", errors="replace"):
        stack, _, weight = line.rstrip("\n").rpartition(" ")
        m = re.search(r";one \([^;]*product_waits\.py:(\d+)\)", stack)
        got[int(m[1]) if m else 0] += int(weight)
    print(f"  {'line':>5} {'way':8} {'waits':>6} {'own ms':>9} {'seen ms':>9} {'%':>7} {'us less a wait':>14}")
    for line, way, n, ns in re.findall(r"^wait (\d+) (\w+) (\d+) (\d+)$", out, re.M):
        n, ns, seen = int(n), int(ns), got.pop(int(line), 0)
        print(f"  {line:>5} {way:8} {n:6} {ns / 1e6:9.2f} {seen / 1e6:9.2f} {seen / ns * 100:7.2f} "
              f"{(ns - seen) / n / 1e3:14.2f}")
        # A line's own way, Python and PyTorch, is tens of us, and the probe's, some us; item also has a sum to launch.
        if seen > ns + 3 * error or (way != "nothing" and ns - seen > max(0.05 * ns, 100e3 * n) + 3 * error):
            print(f"  WRONG: {what}: {way}: {seen} of {ns} ns")
            wrong += 1
    if sum(got.values()) > 0.001 * sum(map(int, re.findall(r"^wait .* (\d+)$", out, re.M))):
        print(f"  WRONG: {what}: of no line that waits: {got}")
        wrong += 1
    return wrong


def check(gpc):
    command = [sys.executable, os.path.abspath(__file__), "run"]
    wrong = 0
    _, alone, _, _ = result(command, None, None, None)
    pace = {m[0]: int(m[1]) for m in re.findall(r"^wait \d+ (\w+) \d+ (\d+)$", alone, re.M)}
    for how in "all", "auto":
        folded = f"folded/waits-{how}.folded"
        code, out, own, err = result(command, gpc, how, folded)
        print(f"--launches {how}: status {code}, gpucollect {own}")
        print("  " + (re.findall(r'"waits":.*?"waits_error_ns":[^,]*', err) or ["no summary"])[-1])
        same = out.splitlines()[-1:] == alone.splitlines()[-1:]
        if code or own or not same:
            print(f"  WRONG: {how}: {code} {own} {err if own else ''} the script's sums are {'' if same else 'not '}its own")
            wrong += 1
        error = re.search(r'"waits_error_ns":(\d+)', err)
        wrong += compare(how, out, folded, int(error[1]) if error else 0)
        slower = sum(int(ns) for _, ns in re.findall(r"^wait \d+ (\w+) \d+ (\d+)$", out, re.M)) / sum(pace.values())
        print(f"  all waits by the script's clock, recorded to alone: {slower:.4f}")
    return wrong


if __name__ == "__main__":
    if sys.argv[1] == "check":
        sys.exit(check(sys.argv[2]) != 0)
    import torch
    run(int(sys.argv[2]) if len(sys.argv) > 2 else 60)
