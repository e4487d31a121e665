#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
"""The place of the result fails: no room, limits, pipes without a reader, a directory that is gone.

What was captured is saved elsewhere, or it is said why that can't be; the target is not disturbed.
"""
import os
import resource
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402

check = L.Checks()
COLLECT = [L.GPUCOLLECT, "--no-gpu", "-F", "99"]
# Its stacks are long: three of them make tens of kilobytes.
DEEP = [f"{L.CASES}/deep", "10000"]
OWN_FAILURE, PARTIAL, ABORTED, USAGE = 125, 1, 130, 64


def folder(name):
    path = os.path.join(L.TMP, name)
    os.makedirs(path)
    return path


def run(argv, cwd, prepare=None, **env):
    return subprocess.run(argv, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=100, env=L.environment(SECS="3", **env), preexec_fn=prepare)


def errors(r):
    return [s for s in r.stderr.splitlines() if s.startswith("gpucollect: error: ")]


def stacks(path):
    return L.read(path) if os.path.exists(path) else []


def small_disk():
    """O-06: a megabyte that is nearly full; and the same where the places to save at are as small."""
    if subprocess.run(["unshare", "-m", "true"]).returncode:
        print("note: no mount namespaces here, so no small file systems")
        return
    # All by names relative to the current directory: /tmp, where that lies, is hidden in the end.
    script = 'full() { mount -t tmpfs -o size=1m none "$1" && ' \
             'head -c 1040000 /dev/zero >"$1/filler" || exit 99; }\n' \
             'full ../small; if [ "$1" = all ]; then full "$PWD"; cd "$PWD" && full /tmp; fi\n' \
             'shift; "$@"; status=$?; ls -A . ../small; exit $status'
    for which in ("one", "all"):
        here = folder(f"{which}/here")
        folder(f"{which}/small")
        if which == "all" and any(p.startswith("/tmp/") for p in (L.GPUCOLLECT, DEEP[0])):
            print("note: the programs stand in /tmp, so it isn't made small")
            continue
        r = run(["unshare", "-m", "sh", "-c", script, "sh", which, *COLLECT, "-o", "../small/x.folded",
                 "--", *DEEP], here)
        text = " ".join(errors(r))
        check(r.returncode == OWN_FAILURE and len(errors(r)) == 1, f"{which}: {r.returncode} {r.stderr}")
        check("can't write ../small/x.folded: no space left" in text, f"{which}: it says {text}")
        left = set(r.stdout.split()) - {".:", "../small:", "filler"}
        if which == "one":
            saved = os.listdir(here)
            check(len(saved) == 1 and left == set(saved) and stacks(os.path.join(here, saved[0])) and
                  f"saved to {saved[0]}" in text, f"{which}: saved {saved}, left {left}: {text}")
        else:
            check(not left and "and it can't be saved: can't write gpucollect-deep-" in text and
                  "can't write /tmp/gpucollect-deep-" in text, f"{which}: left {left}: {text}")


def limited_files():
    """ulimit -f: an error, not our death; the command keeps its own."""
    here = folder("limited")

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)

    script = "head -c 100000 /dev/zero >large; echo $?; exec \"$@\""
    r = run([*COLLECT, "-o", "x.folded", "--", "sh", "-c", script, "sh", *DEEP], here, limit)
    check(r.returncode == OWN_FAILURE and len(errors(r)) == 1 and "ulimit -f" in errors(r)[0],
          f"ulimit -f: {r.returncode} {r.stderr}")
    check(r.stdout.startswith(f"{128 + signal.SIGXFSZ}\n"), f"ulimit -f: the command says {r.stdout}")
    check(os.listdir(here) == ["large"], f"ulimit -f: {os.listdir(here)}")
    # With the library: it is placed before, or the way out is named.
    r = run([L.GPUCOLLECT, "-o", "y.folded", "--", f"{L.PROGRAMS}/gpu_chains", "5"], here, limit)
    check(r.returncode >= 0 and (r.returncode == 0) == os.path.exists(f"{here}/y.folded"),
          f"ulimit -f, library: {r.returncode} {r.stderr}")


class Recording:
    """gpucollect on a target, in the background; what it has said so far is in `err`."""

    def __init__(self, target, cwd, *options, **how):
        self.err = os.path.join(L.TMP, "err")
        with open(self.err, "w") as err:
            self.process = subprocess.Popen(
                [L.GPUCOLLECT, "-p", target.pid, "--metric", "launches", *options], cwd=cwd,
                stdin=subprocess.DEVNULL, stderr=err, **how)
        check.soon("recording", lambda: self.process.poll() is not None or self.says("recording"))

    def said(self):
        with open(self.err) as f:
            return f.read()

    def says(self, words):
        return words in self.said()

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        return self.process.wait(60)


def pipes():
    here, target = folder("pipes"), L.Launching(check)
    fifo = os.path.join(here, "fifo")
    os.mkfifo(fifo)
    g = Recording(target, here, "-o", "fifo", "-d", "0.5")
    check.soon("a pipe without a reader: it says so", lambda: g.says("waiting for a reader of fifo"))
    check(g.said().count("waiting for a reader") == 1, f"a pipe: {g.said()}")
    with open(fifo) as f:
        text = f.read()
    check(g.end() == 0 and sum(int(s.split()[-1]) for s in text.splitlines()) > 0, f"a pipe: {g.said()}")
    for number in (signal.SIGINT, signal.SIGTERM):
        g = Recording(target, here, "-o", "fifo", "-d", "0.5")
        check.soon("a pipe: it waits", lambda: g.says("waiting for a reader"))
        # No request to write now ends the waiting, an end does.
        g.signal(signal.SIGUSR1)
        time.sleep(0.5)
        check(g.process.poll() is None, f"a pipe: SIGUSR1 ended it: {g.said()}")
        g.signal(number)
        check(g.end() == ABORTED and g.said().count("warning: the result is given up\n") == 1,
              f"a pipe: {number!r}: {g.process.returncode} {g.said()}")
    check(os.listdir(here) == ["fifo"], f"a pipe: {os.listdir(here)}")
    # A reader that reads nothing: its pipe is full, and requests to write now are no ends.
    g = Recording(target, here, "-d", "0.5", "--per-thread", stdout=subprocess.PIPE)
    time.sleep(1)
    for _ in range(50):
        g.signal(signal.SIGUSR1)
    text = g.process.stdout.read().decode()
    check(g.end() == 0 and sum(int(s.split()[-1]) for s in text.splitlines()) > 0,
          f"SIGUSR1 while writing: {g.process.returncode} {g.said()}")
    target.end("pipes")


def removed():
    """The directory is removed meanwhile, or something else stands in its place."""
    for what in ("nothing", "file"):
        here, target = folder("removed-" + what), L.Launching(check)
        out = os.path.join(here, "out")
        os.mkdir(out)
        g = Recording(target, here, "-o", "out/x.folded")
        os.rmdir(out)
        if what == "file":
            with open(out, "w") as f:
                f.write("theirs")
        time.sleep(0.5)		# for some launches
        g.signal(signal.SIGINT)
        status = g.end()
        saved = [n for n in os.listdir(here) if n.startswith("gpucollect-")]
        check(status == PARTIAL and len(saved) == 1 and stacks(os.path.join(here, saved[0])),
              f"{what}: {status} {g.said()} {saved}")
        check(g.says("can't write out/x.folded: ") and g.says(f"; saved to {''.join(saved)}\n"),
              f"{what}: it says {g.said()}")
        target.end(what)


def requests():
    """SIGUSR1: before there is anything, by the hundred, and for a pipe."""
    here, target = folder("requests"), L.Launching(check)
    idle = subprocess.Popen(["sleep", "100"])
    g = subprocess.Popen([*COLLECT, "-o", "x.folded", "-p", str(idle.pid)], cwd=here, text=True,
                         stderr=subprocess.PIPE)
    while "recording" not in (line := g.stderr.readline()) and line:
        pass
    g.send_signal(signal.SIGUSR1)
    line = g.stderr.readline()
    check(line == "gpucollect: nothing to write yet; recording goes on\n", f"nothing yet: {line}")
    check(os.listdir(here) == [], f"nothing yet: {os.listdir(here)}")
    idle.kill()
    idle.wait()
    g.communicate(timeout=60)
    g = Recording(target, here, "-o", "x.folded")
    path = os.path.join(here, "x.folded")
    end, sent = time.monotonic() + 3, 0
    while time.monotonic() < end or not os.path.exists(path):
        g.signal(signal.SIGUSR1)
        sent += 1
        time.sleep(0.001)
    g.signal(signal.SIGINT)
    r = L.Run(g.end(), "", g.said(), path)
    writings = sum("recording goes on" in s for s in r.said)
    check(r.status == 0 and r.total() == r.launches() > 100 and not r.complaints() and not r.lost(),
          f"a storm: {r.status} {r.total()} {r.said[-5:]}")
    check(1 <= writings < sent, f"a storm: {writings} writings for {sent} signals")
    # The file fails in between, and is there in the end.
    g = Recording(target, here, "-y", "-o", "gone/x.folded")
    check(g.end() == USAGE, f"no directory: {g.said()}")
    target.end("requests")


def closed():
    """Descriptors that are closed at the start: no file of ours gets a standard one's number."""
    for which in ((0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)):
        here = folder("closed-" + "".join(map(str, which)))
        script = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"
        def prepare(fds=which):
            for fd in fds:
                os.close(fd)
        argv = [*COLLECT, "-o", "x.folded", "--", "sh", "-c", script]
        with open(f"{L.TMP}/out", "w") as out, open(f"{L.TMP}/err", "w") as err:
            r = subprocess.run(argv, cwd=here, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                               timeout=60, preexec_fn=prepare)
        check(r.returncode == 0 and stacks(f"{here}/x.folded"), f"closed {which}: status {r.returncode}")
        with open(f"{L.TMP}/out") as f:
            check(f.read() == "", f"closed {which}: something was written to standard output")
    # The command finds closed what was closed.
    def all_closed():
        for fd in (0, 1, 2):
            os.close(fd)
    here = folder("closed-all")
    show = "import os\nopen_ = [fd for fd in range(100) if os.path.exists(f'/proc/self/fd/{fd}')]\n" \
           "with open('seen', 'w') as f:\n    f.write(repr(open_))\n" \
           "while sum(os.times()[:2]) < 0.3:\n    pass\n"
    for argv in ([sys.executable, "-c", show], [*COLLECT, "-o", "x.folded", "--", sys.executable, "-c", show]):
        r = subprocess.run(argv, cwd=here, timeout=60, preexec_fn=all_closed)
        with open(f"{here}/seen") as f:
            seen = f.read()
        check(r.returncode == 0 and seen == "[]", f"all closed: {argv[0]}: {r.returncode} {seen}")
    check(stacks(f"{here}/x.folded"), "all closed: nothing was written")
    # A result for a standard output that isn't there is refused before anything runs.
    def no_output():
        os.close(1)
    r = subprocess.run([*COLLECT, "-a", "-d", "0.1"], cwd=here, stderr=subprocess.PIPE, text=True,
                       timeout=60, preexec_fn=no_output)
    check(r.returncode == OWN_FAILURE and "can't write standard output" in r.stderr,
          f"no standard output: {r.returncode} {r.stderr}")


if os.geteuid():
    print("needs root")
    sys.exit(L.SKIP)
wanted = sys.argv[1:]
for part in (small_disk, limited_files, pipes, removed, requests, closed):
    if not wanted or part.__name__ in wanted:
        before = check.failures
        part()
        print("ok   " if check.failures == before else "WRONG", part.__name__, flush=True)
sys.exit(check.status())
