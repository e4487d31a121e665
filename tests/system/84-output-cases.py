#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 240
"""The inputs C-02 and O-01 to O-03 show what tests/cases/README.md demands of folded stacks and closing lines.

C-01 is in 16-cpu-cases, C-03 in 81-terminal, O-06 in 82-no-room.
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import folded  # noqa: E402
import launches as L  # noqa: E402
from terminal import Terminal  # noqa: E402

check = folded.Checks()
TOP = os.environ["TOP"]
READERS = [[sys.executable, f"{TOP}/tests/system/10-folded-readers.py"],
           [sys.executable, f"{TOP}/tests/cases/output/check_text.py"]]


def readable(what, path):
    for reader in READERS:
        r = subprocess.run([*reader, path], capture_output=True, text=True)
        check(r.returncode == 0, f"{what}: {os.path.basename(reader[1])}", r.stdout + r.stderr)


def case(*args):
    return [os.path.join(folded.CASES, args[0]), *args[1:]]


def python(name, *args):
    return [sys.executable, f"{TOP}/tests/cases/output/{name}.py", *args]


def blind():
    """C-02: the library that hides two thirds of the time is named."""
    rec = folded.record(case("blind"), secs=2)
    said = [s for s in rec.err.splitlines() if s.startswith("gpucollect: libblind.so: ")]
    if not check(len(said) == 1, "blind: one line about libblind.so", rec.err):
        return
    m = re.search(r"no usable unwind information in ([\d.]+) % of the CPU samples, "
                  r"no symbols for ([\d.]+) % of the frames", said[0])
    check(m and 50 < float(m[1]) < 80 and float(m[2]) > 20, "blind: with its share", said[0])
    seen = rec.total(lambda s: "seen_fn" in s.user) / max(rec.total(lambda s: s.comm == "blind"), 1)
    check(0.2 < seen < 0.5, f"blind: seen_fn in {seen:.1%}")


def little():
    """O-01: nothing to show is a message and no file; next to nothing is a file."""
    for metric in ("gpu", "launches", "cpu"):
        for target in (case("sleeper", "300"), case("sleeper", "0"), case("launches", "1", "1000")):
            what = f"{metric}, {os.path.basename(target[0])} {target[1]}"
            r = L.run(target, metric=metric)
            errors = [s for s in r.said if s.startswith("error: ")]
            if r.status == 0:
                check(r.written and r.total() > 0 and not errors, what, r.said)
                readable(what, r.path)
            else:
                check(r.status == 2 and not r.written and len(errors) == 1 and "nothing is written" in errors[0]
                      and ("--metric cpu" in errors[0] or "-F" in errors[0]), f"{what}: {r.status}", r.said)
            check((r.status == 0) == ("launches" in what.split(", ")[1]) or metric == "cpu",
                  f"{what}: status {r.status}")
    idle = subprocess.Popen(["sleep", "100"])
    r = subprocess.run([L.GPUCOLLECT, "-p", str(idle.pid), "--metric", "launches", "-d", "0.3"],
                       capture_output=True, text=True)
    check(r.returncode == 2 and not r.stdout, f"-p of a sleeper: {r.returncode}", r.stdout + r.stderr)
    idle.kill()
    idle.wait()


def deep():
    """O-02: what is too deep is marked, and all of it can be read."""
    for what, target in (("deep 10000", case("deep", "10000")),
                         ("deep_python 2000", python("deep_python", "2000", "2")),
                         ("deep_python 20000", python("deep_python", "20000", "2"))):
        rec = folded.record(target, secs=2, frequency=199)
        check(rec.status == 0 and rec.total() > 20, f"{what}: {rec.status}, {rec.total()} samples", rec.err)
        readable(what, rec.path)
        if what == "deep 10000":
            bottom = [s for s in rec.stacks if "bottom" in s.user]
            check(bottom and all(s.user[0] == "[truncated]" or "main" in s.user for s in bottom),
                  f"{what}: cut stacks are marked")
            cut = sum(s.weight for s in bottom if s.user[0] == "[truncated]")
            check(bool(cut) == ("[truncated] " in rec.err), f"{what}: {cut} cut", rec.err)


def odd_names():
    """O-03: names that mean something to readers and terminals."""
    rec = folded.record(case("odd_symbol.odd"), secs=2)
    readable("odd_symbol", rec.path)
    leaves = {s.user[-1] for s in rec.stacks if s.user}
    for name in ('say "hi" \\ {[}]', '</script><script>document.title="x"</script>&amp:', "one:two?three #12",
                 "?[31mred??", "operator<<(<lambda>, `tick`, ${x}, %s%n)"):
        check(name in leaves, f"odd_symbol: {name}", leaves)
    for what, target in (("names.py", [sys.executable, f"{TOP}/tests/cases/python/names.py", "1"]),
                         ("comm", case("comm"))):
        rec = folded.record(target, "--per-thread", secs=4, frequency=199)
        check(rec.total() > 0, f"{what}: {rec.total()} samples", rec.err)
        readable(what, rec.path)
        threads = {s.user[0].split(" ", 2)[2] for s in rec.stacks if "spin_" in "".join(s.user)}
        check(what != "comm" or threads == {"k) R 1 2?(z", "two words:x #7"}, f"{what}: its threads' names",
              threads)
    r = L.run(case("kernel_names"), metric="launches")
    readable("kernel_names", r.path)
    check(len(r.by_kernel()) == 15 and set(r.by_kernel().values()) == {50}, "kernel_names: 15 kernels",
          r.by_kernel())
    # The table on a terminal, and what is said there.
    for program, metric in (("odd_symbol.odd", "cpu"), ("comm", "cpu")):
        target = subprocess.Popen(case(program), env=dict(os.environ, SECS="30"))
        t = Terminal([L.GPUCOLLECT, "-p", str(target.pid), "-d", "2", "--metric", metric, "-F", "99"],
                     dict(os.environ, TERM="xterm"), columns=200)
        t.wait()
        target.kill()
        target.wait()
        text = t.text.replace("\r\n", "\n").replace("\r\033[K", "")
        check(t.status == 0 and "CPU time by function" in text, f"{program}: a table", t.text)
        check(not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", text), f"{program}: nothing steers the terminal",
              repr(text))


wanted = sys.argv[1:]
for part in (blind, little, deep, odd_names):
    if not wanted or part.__name__ in wanted:
        part()
sys.exit(check.status())
