#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Whether PyTorch's kernels stand below the lines of Python that launch them, on a real GPU.

product_python.py GPUCOLLECT [NAME...]    compile eager train custom loader decode graph; all by default

Each program is attached to while it runs, then started under gpucollect; python_common.py says which of its
lines have to be met and which must not. PRODUCT_PYTHON_LIMIT is the number of seconds after which no
further capture begins (240), PRODUCT_PYTHON_SECONDS the length of one (3). Results: folded/python-*.folded,
python-*.said (gpucollect), python-*.err (the program), python-*.json (its account).
Exit status 1 if something that must hold does not.
"""
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
import traceback

import product_paths as paths

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = {"compile": ["python_compile.py"], "eager": ["python_eager.py"], "train": ["python_train.py"],
            "custom": ["python_train.py", "custom"], "loader": ["python_loader.py"],
            "decode": ["python_decode.py", "eager"], "graph": ["python_decode.py", "graph"]}
SECONDS = float(os.environ.get("PRODUCT_PYTHON_SECONDS", "3"))
LIMIT = float(os.environ.get("PRODUCT_PYTHON_LIMIT", "240"))
PLAIN = 1.2		# s, before a capture
CPU_SECONDS = 8
READY = 150		# s, until a program has warmed up: the first one compiles
SAID = re.compile(r"gpucollect: (captured|lost|warning|error|counted, not timed|stacks unwound|own cost)")
MINE = f"PRODUCT_PYTHON_RUN={os.getpid()}"
started = time.monotonic()
checks = wrong = 0
rows = []


def check(good, text):
    global checks, wrong
    checks += 1
    if not good:
        wrong += 1
        print("  WRONG: " + text, flush=True)
    return good


def environment(**more):
    cache = os.path.abspath("python-cache")
    return dict(os.environ, PRODUCT_PYTHON_RUN=str(os.getpid()), TORCHINDUCTOR_CACHE_DIR=cache + "/inductor",
                TRITON_CACHE_DIR=cache + "/triton", TORCHINDUCTOR_COMPILE_THREADS="4", PYTHONUNBUFFERED="1",
                **more)


class Child:
    """A process in a group of its own. What `watch` names is read line by line, each with its time."""

    def __init__(self, argv, watch, err=subprocess.PIPE, **more):
        self.lines, self.came = [], threading.Condition()
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, env=environment(**more), text=True,
                                        stdout=subprocess.PIPE, stderr=err, errors="replace",
                                        start_new_session=True)
        self.began = time.monotonic()
        for name in ("stdout", "stderr"):
            pipe = getattr(self.process, name)
            if pipe:
                threading.Thread(target=self.read, args=(pipe, name == watch), daemon=True).start()

    def read(self, pipe, watched):
        for line in pipe:
            if watched:
                with self.came:
                    self.lines.append((time.monotonic(), line))
                    self.came.notify_all()

    def when(self, text):
        """When a line with this text came, or None."""
        return next((t for t, line in list(self.lines) if text in line), None)

    def until(self, text, seconds):
        end = time.monotonic() + seconds
        with self.came:
            while not self.when(text) and time.monotonic() < end:
                if self.process.poll() is not None and not self.came.wait(0.5):
                    break
                self.came.wait(0.2)
        if not self.when(text):
            status = self.process.poll()
            self.wait(0)
            raise RuntimeError(f"{os.path.basename(self.process.args[0])} did not say {text!r} in {seconds} s, "
                               f"status {status}:\n" + "".join(line for _, line in self.lines[-8:]))
        return self.when(text)

    def say(self, text):
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def wait(self, seconds):
        """Its status; None: it had to be ended."""
        for how in (None, signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            if how is not None:
                send(self.process.pid, how, group=how == signal.SIGKILL)
            try:
                status = self.process.wait(seconds if how is None else 4)
                return status if how is None else None
            except subprocess.TimeoutExpired:
                continue
        return None

    def end_input(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass


def send(pid, number, group=False):
    try:
        (os.killpg if group else os.kill)(pid, number)
    except ProcessLookupError:
        pass


def leftovers():
    """Processes that have the mark of this run in their environment, but for this one."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if int(pid) != os.getpid() and MINE.encode() in f.read().split(b"\0"):
                    yield int(pid)
        except OSError:
            continue


class Program:
    """One of the programs, alone, until somebody lets it go on."""

    def __init__(self, name, how):
        script, *rest = PROGRAMS[name]
        self.label = f"python-{name}-{how}"
        self.variant = rest[0] if rest else ""
        self.argv = [sys.executable, os.path.join(HERE, script), *rest]
        self.more = {"PRODUCT_ACCOUNT": os.path.abspath(self.label + ".json"), "PRODUCT_SECONDS": "60"}
        self.err = open(self.label + ".err", "w", encoding="utf-8")

    def alone(self):
        self.child = Child(self.argv, "stdout", self.err, **self.more)
        return self

    def account(self):
        with open(self.more["PRODUCT_ACCOUNT"], encoding="utf-8") as f:
            return json.load(f)


def command(gpucollect, label, metric, *options):
    return [gpucollect, "-v", "-y", "--metric", metric, "-o", f"folded/{label}.folded", *options]


def finish(child, label, status, wanted, seconds=30):
    got = child.wait(seconds)
    time.sleep(0.1)		# its last lines
    with open(label + ".said", "w", encoding="utf-8") as f:
        f.writelines(f"{t - child.began:8.3f} {line}" for t, line in list(child.lines))
    for _, line in child.lines:
        if SAID.match(line):
            print("  " + line.rstrip("\n"), flush=True)
    check(got == wanted, f"{label}: {status}: {got} instead of {wanted}")


def recorded(gpucollect, pid, label, metric, seconds, *options):
    """A capture of a process that runs; [from, to]."""
    c = Child(command(gpucollect, label, metric, *options, "-d", f"{seconds}s", "-p", str(pid)), "stderr")
    begin = c.until(": recording", 30)
    time.sleep(seconds)
    end = time.monotonic()
    finish(c, label, "gpucollect's status", 0)
    return c, [begin, end]


def speed(blocks, begin, end):
    """The median time of an iteration in the blocks that lie between, us."""
    inside = [us for b, e, us in blocks if begin <= b and e <= end]
    return statistics.median(inside) if inside else float("nan")


def after(child, text):
    """When a line came, in s from the start of gpucollect."""
    t = child.when(text)
    return f"{t - child.began:9.3f}" if t else f"{'-':>9}"


def row(name, how, found, us, plain, child):
    rows.append(f"  {name:8} {how:8} {found.total / 1e6:10.2f} {found.share(found.whole):9.4f} "
                f"{found.share(found.own_thread):7.2f} {found.unknown / 1e3:8.1f} {found.met:3}/{found.required:<3} "
                f"{len(found.strangers):9} {plain:9.1f} {us:9.1f} {us / plain:6.3f} {after(child, ': recording')} {after(child, 'CPython')}")


def judge(label, program, account):
    """Everything that one capture of GPU time has to be."""
    found = paths.Found(f"folded/{label}.folded", account, program.variant)
    check(found.total > 0, f"{label}: no GPU time")
    check(found.whole >= 0.999 * found.total, f"{label}: only {found.share(found.whole):.4f} % below complete paths")
    check(not found.strangers, f"{label}: lines that launch nothing: {found.strangers.most_common(5)}")
    check(not found.missing, f"{label}: lines without GPU time: {found.missing}")
    check(not found.unknown, f"{label}: unknown kernels: {found.unknown} ns")
    check(set(found.pids) == {account["pid"]}, f"{label}: processes {dict(found.pids)}, not {account['pid']}")
    if program.argv[1].endswith("train.py"):
        check(found.own_thread, f"{label}: nothing is launched by autograd's thread")
    found.tell()
    return found


def attached(gpucollect, name, program):
    print(f"--- [{time.monotonic() - started:.0f} s] {name}, attached", flush=True)
    child, label = program.child, program.label
    child.until("ready", left(READY))
    child.say("go\n")
    time.sleep(PLAIN)
    before = [0, time.monotonic()]
    g, during = recorded(gpucollect, child.process.pid, label, "gpu", SECONDS)
    if name == "eager":
        recorded(gpucollect, child.process.pid, label + "-cpu", "cpu", CPU_SECONDS, "-F", "199", "--per-thread")
    behind = [time.monotonic(), 1e18]
    time.sleep(0.6)
    child.end_input()
    status = child.wait(30)
    check(status == 3, f"{label}: the program's status: {status} instead of 3")
    account = program.account()
    plain = speed(account["blocks"], *before)
    row(name, "attached", judge(label, program, account), speed(account["blocks"], *during), plain, g)
    print(f"  afterwards {speed(account['blocks'], *behind):.1f} us an iteration", flush=True)
    if name == "eager":
        cpu(label + "-cpu")
    return plain


def cpu(label):
    found = paths.Sampled(f"folded/{label}.folded", 199)
    found.tell()
    check(found.samples, f"{label}: no samples of Python's threads")
    check(found.whole >= 0.999 * found.samples, f"{label}: only {found.whole} of {found.samples} samples are complete")


def under(gpucollect, name, program, plain):
    print(f"--- [{time.monotonic() - started:.0f} s] {name}, started", flush=True)
    label, program.more["PRODUCT_SECONDS"] = program.label, str(SECONDS)
    # The program's stderr is gpucollect's, too; its own lines are known by their beginning.
    script = 'exec "$@" 2> "$0"'
    c = Child(command(gpucollect, label, "gpu", "--", "sh", "-c", script, label + ".err", *program.argv),
              "stderr", **program.more)
    c.say("go\n")
    finish(c, label, "the program's status", 3, left(READY))
    account = program.account()
    row(name, "started", judge(label, program, account), speed(account["blocks"], 0, 1e18), plain, c)


def attempt(what, function, gpucollect, name, program, *argv):
    """A part that fails must not stop the others."""
    try:
        return function(gpucollect, name, program, *argv)
    except Exception:  # pylint: disable=broad-except
        traceback.print_exc(limit=-1, file=sys.stdout)
        with open(program.label + ".err", encoding="utf-8", errors="replace") as f:
            print("".join("    " + line for line in f.readlines()[-12:]), flush=True)
        check(False, f"{what}: {sys.exc_info()[1]}")
        return None


def clean_up():
    for how in (signal.SIGTERM, signal.SIGKILL):
        time.sleep(0.3)
        for pid in list(leftovers()):
            print(f"  still there: {pid}", flush=True)
            send(pid, how)


def left(most):
    """So many seconds, unless they end too far behind the limit."""
    return min(most, max(20, started + LIMIT + 30 - time.monotonic()))


def is_late(what):
    if time.monotonic() - started <= LIMIT:
        return False
    check(False, f"{what}: not run, out of time")
    return True


def main(gpucollect, names):
    os.makedirs("folded", exist_ok=True)
    names = names or list(PROGRAMS)
    # The next one warms up while the one before is started under gpucollect: that saves a minute in all.
    waiting = Program(names[0], "attached").alone()
    for i, name in enumerate(names):
        this, waiting, plain = waiting, None, None
        if not is_late(f"{name}, attached"):
            plain = attempt(f"{name}, attached", attached, gpucollect, name, this)
        this.child.end_input()
        if this.child.wait(10) is None:
            print(f"  {name}: had to be ended", flush=True)
        if i + 1 < len(names):
            waiting = Program(names[i + 1], "attached").alone()
        if not is_late(f"{name}, started"):
            attempt(f"{name}, started", under, gpucollect, name, Program(name, "started"), plain or float("nan"))


def table():
    print("  program  how          GPU ms  complete  native unknown   lines strangers     plain  recorded   ratio"
          " recording    Python\n"
          "                                      %      %      us     met             us/iter   us/iter"
          "           after s   found s")
    print("\n".join(rows))
    print(f"  {checks} checks, {wrong} wrong; {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    # A time limit ends this, too, as an exception would.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        main(os.path.abspath(sys.argv[1]), sys.argv[2:])
    finally:
        table()
        clean_up()
    sys.exit(wrong != 0)
