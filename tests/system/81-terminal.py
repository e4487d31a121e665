#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 240
"""On a terminal: one line of progress, Ctrl-C, a window that is closed; no colours anywhere."""
import os
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402
import slots  # noqa: E402
from terminal import Terminal  # noqa: E402

check = L.Checks()
ERASE = "\r\033[K"
PROGRESS = re.compile(r"\r\033\[Kgpucollect: (\d+) s(?: of [\d.]+ m?s)?: "
                      r"(?:([\d,]+) samples?, )?(?:([\d,]+) launch(?:es)?, )?([\d,]+) lost")
NAMES = ERASE + "gpucollect: looking up names"
COLOUR = re.compile(r"\033\[[0-9;]*m")
HOW = {"TERM": "xterm"}


def run(*args, keys=None, after=None, cwd=None, stderr=None, columns=120, **env):
    t = Terminal([L.GPUCOLLECT, *args], L.environment(**dict(HOW, **env)), cwd or L.TMP, columns, stderr)
    if keys:
        check(t.wait_for(after), f"{args}: no '{after}' in {t.text!r}")
        t.type(keys)
    t.wait()
    return t


def progress():
    target = L.Launching(check)
    t = run("-p", target.pid, "-d", "3", "--metric", "launches")
    lines = [[int(n.replace(",", "")) for n in m.groups()] for m in PROGRESS.finditer(t.text)]
    check(t.status == 0 and 2 <= len(lines) <= 7, f"progress: {t.status} {t.text!r}")
    check(lines == sorted(lines) and lines[-1][0] >= 2 and lines[-1][2] > lines[0][2] >= 0,
          f"progress: {lines}")
    cpu = PROGRESS.findall(run("-p", target.pid, "-d", "2", "--metric", "cpu").text)
    check(cpu and all(samples and not launches for *_, samples, launches, _ in cpu), f"progress: cpu: {cpu}")
    # One line that is rewritten: each follows the one before, and the last one is erased. On a slow machine
    # it says in the end what takes so long.
    first = t.text.index(ERASE)
    end = t.text.rindex(ERASE) + len(ERASE)
    check("\n" not in t.text[first:end] and PROGRESS.sub("", t.text[first:end]).replace(NAMES, "") == ERASE,
          f"progress: between its lines {t.text[first:end]!r}")
    check(" by kernel: " in t.text[end:].split("\n")[0], f"progress: what follows is {t.text[end:]!r}")
    for what, args, env in (("-q", ["-q"], {}), ("--json", ["--json"], {}), ("dumb", [], {"TERM": "dumb"}),
                            ("no TERM", [], {"TERM": ""})):
        t = run("-p", target.pid, "-d", "1500ms", "--metric", "launches", *args, **env)
        check(t.status == 0 and "\033" not in t.text, f"{what}: {t.status} {t.text!r}")
    err = os.path.join(L.TMP, "err")
    t = run("-p", target.pid, "-d", "1500ms", "--metric", "launches", stderr=err)
    with open(err) as f:
        check("\033" not in f.read() and "\033" not in t.text, f"stderr is a file: {t.text!r}")
    # Narrow: no line may be wrapped, or it could not be erased.
    t = run("-p", target.pid, "-d", "1500ms", "--metric", "launches", columns=30)
    lines = re.findall(r"\r\033\[K(gpucollect: [^\r]*)\r\033", t.text)
    check(lines and all(len(s) < 30 for s in lines), f"narrow: {t.text!r}")
    # A command's terminal is the command's.
    t = run("--no-gpu", "-F", "99", "-y", "-o", "x.folded", "--", "sh", "-c",
            "printf half; i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done; echo ' line'")
    check(t.status == 0 and t.text.startswith("half line\r\n") and "\033" not in t.text,
          f"a command: {t.status} {t.text!r}")
    target.end("progress")


def colours():
    target = L.Launching(check)
    for env in ({}, {"NO_COLOR": "1"}, {"NO_COLOR": ""}):
        t = run("-p", target.pid, "-d", "1500ms", "--metric", "launches", **env)
        check(t.status == 0 and not COLOUR.search(t.text), f"{env}: {t.text!r}")
    t = run("-p", "x")
    check(t.status == 64 and "\033" not in t.text, f"an error: {t.text!r}")
    target.end("colours")


def interrupt():
    """C-03: Ctrl-C is the command's; with -p it stops and writes."""
    out = os.path.join(L.TMP, "server.folded")
    t = Terminal([L.GPUCOLLECT, "--metric", "cpu", "-F", "99", "-o", out, "--", sys.executable,
                  os.path.join(os.environ["TOP"], "tests/cases/cli/server.py")], L.environment(**HOW))
    check(t.wait_for("serving"), f"server: {t.text!r}")
    t.type("\x03")
    t.wait()
    check(t.status == 0 and "stopped after 1 interrupt(s)\r\n" in t.text, f"server: {t.status} {t.text!r}")
    # It serves for one more second after that.
    r = L.Run(t.status, "", t.text.replace("\r\n", "\n"), out)
    check(r.total() > 0.1e9, f"server: {r.total()} ns of CPU time")
    # So is Ctrl-\\: Java shows its threads then, and goes on.
    t = Terminal([L.GPUCOLLECT, "--no-gpu", "-F", "99", "-y", "-o", out, "--", "sh", "-c",
                  "trap 'echo told; told=1' QUIT; echo ready; while [ -z \"$told\" ]; do :; done; i=0; "
                  "while [ $i -lt 300000 ]; do i=$((i+1)); done; exit 5"],
                 L.environment(**HOW))
    check(t.wait_for("ready"), f"quit: {t.text!r}")
    t.type("\x1c")
    t.wait()
    check(t.status == 5 and "told" in t.text and "wrote" in t.text, f"quit: {t.status} {t.text!r}")
    t = Terminal([L.GPUCOLLECT, "--no-gpu", "--", "sh", "-c", "ulimit -c 0; echo ready; exec sleep 100"],
                 L.environment(**HOW))
    check(t.wait_for("ready"), f"quit: {t.text!r}")
    t.type("\x1c")
    t.wait()
    check(t.status == 128 + signal.SIGQUIT, f"a command that dies of it: {t.status} {t.text!r}")
    target = L.Launching(check)
    t = run("-p", target.pid, "--metric", "launches", keys="\x03", after=" s: ")
    check(t.status == 0 and " by kernel: " in t.text, f"-p: {t.status} {t.text!r}")
    # Without a line of progress, whose place is taken, "^C" keeps its line.
    t = Terminal([L.GPUCOLLECT, "-p", target.pid, "--metric", "launches", "-q"], L.environment(**HOW))
    driver = slots.Driver(os.path.join(L.B, "simcuda/libcuda.so.1"))
    L.wait_for(lambda: driver.away(target.pid), "-q: the library is in")
    t.read(1)		# for some launches; until then it prints nothing
    t.type("\x03")
    t.wait()
    check(t.status == 0 and t.text.startswith("^C\r\nGPU time by kernel: "), f"-q: {t.status} {t.text!r}")
    # In a pipe it ends the reader, too: nothing is lost.
    folder = os.path.join(L.TMP, "pipe")
    os.mkdir(folder)
    t = Terminal(["sh", "-c", f"{L.GPUCOLLECT} -p {target.pid} --metric launches | cat; :"],
                 L.environment(**HOW), folder)
    check(t.wait_for(" s: "), f"pipe: {t.text!r}")
    check("Ctrl-C also ends the reader" in t.text, f"pipe: it says {t.text!r}")
    t.type("\x03")
    check(t.wait_for("own cost"), f"pipe: {t.text!r}")
    check(t.wait_for("saved to gpucollect-"), f"pipe: {t.text!r}")
    t.wait()
    saved = os.listdir(folder)
    check(len(saved) == 1 and sum(s.weight for s in L.read(os.path.join(folder, saved[0]))) > 0,
          f"pipe: {saved}")
    target.end("interrupt")


def closed_window():
    """The terminal goes away while it is to be written to; target and result stay."""
    for what, options in (("a table", ()), ("stacks", ("-f", "folded")), ("a file", ("-o", "o.folded"))):
        target = L.Launching(check)
        folder = os.path.join(L.TMP, what.replace(" ", "-"))
        os.mkdir(folder)
        t = Terminal([L.GPUCOLLECT, "-p", target.pid, "--metric", "launches", *options],
                     L.environment(**HOW), folder)
        check(t.wait_for(" s: "), f"{what}: {t.text!r}")
        t.close()
        status = t.wait()
        files = os.listdir(folder)
        good = len(files) == 1 and sum(s.weight for s in L.read(os.path.join(folder, files[0]))) > 0
        check(good and status == (0 if "-o" in options else 1), f"{what}: status {status}, {files}")
        target.end(what)
    # A command gets the hangup from the terminal as well.
    out = os.path.join(L.TMP, "hangup.folded")
    t = Terminal([L.GPUCOLLECT, "--no-gpu", "-F", "99", "-o", out, "--", "sh", "-c",
                  "echo ready; while :; do :; done"], L.environment(**HOW))
    check(t.wait_for("ready"), f"hangup: {t.text!r}")
    t.read(1)		# for some samples
    t.close()
    status = t.wait()
    check(status == 128 + signal.SIGHUP, f"hangup: status {status}")
    check(os.path.exists(out) and L.read(out), "hangup: nothing was written")


if os.geteuid():
    print("needs root")
    sys.exit(L.SKIP)
wanted = sys.argv[1:]
for part in (progress, colours, interrupt, closed_window):
    if not wanted or part.__name__ in wanted:
        before = check.failures
        part()
        print("ok   " if check.failures == before else "WRONG", part.__name__, flush=True)
sys.exit(check.status())
