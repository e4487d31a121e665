#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 400
# alone: it takes every process of the machine that launches
"""Who is recorded, and how the library gets to them.

Several processes, children that were there before and that come later, processes that map the driver or
execute in the middle, control groups, the whole machine; a second collector; those that want to be left
alone; and what a dry run says and leaves as it is.
"""
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402
import slots  # noqa: E402

check = L.Checks()
DRIVER = slots.Driver(os.path.join(L.B, "simcuda/libcuda.so.1"))
ALL_SLOTS = slots.SWAPPED


class Steady:
    """gpu_until; `before` is put in front of its command line."""

    def __init__(self, *before, rate=1000, **extra):
        self.process = subprocess.Popen([*before, f"{L.PROGRAMS}/gpu_until", "2", str(rate)],
                                        env=L.environment(**extra), text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = int(self.process.stdout.readline().split()[1])

    def made(self, and_do="?"):
        self.process.stdin.write(and_do)
        self.process.stdin.flush()
        return int(self.process.stdout.readline().split()[1])

    def away(self):
        return DRIVER.away(self.pid)

    def probed(self):
        return bool(slots.changed_code(self.pid, DRIVER.path))

    def end(self):
        out, _ = self.process.communicate(timeout=30)
        check(self.process.returncode == 0, f"a target ended with {self.process.returncode}")
        return sum(c.launches for c in L.account(out))


class Collector:
    """gpucollect in the background, until it is told to stop or ends by itself."""

    serial = 0

    def __init__(self, *argv):
        Collector.serial += 1
        self.path = os.path.join(L.TMP, f"out-{Collector.serial}.folded")
        self.log = os.path.join(L.TMP, f"log-{Collector.serial}")
        with open(self.log, "w", encoding="utf-8") as f:
            self.process = subprocess.Popen(
                [L.GPUCOLLECT, "--metric", "launches", "--no-inlines", "-y", "-o", self.path, *argv],
                env=L.environment(), stdin=subprocess.DEVNULL, stdout=f, stderr=f)

    def said(self):
        with open(self.log, encoding="utf-8") as f:
            return f.read()

    def wait_recording(self):
        L.wait_for(lambda: "gpucollect: recording" in self.said() or self.process.poll() is not None,
                   "recording")
        check(self.process.poll() is None, f"it does not record: {self.said()}")
        return self

    def wait(self):
        self.process.wait(60)
        L.skip_without_bpf(self.process.returncode, self.said())
        run = L.Run(self.process.returncode, "", self.said(), self.path)
        run.by_pid = {}
        for s in run.stacks:
            run.by_pid[s.pid] = run.by_pid.get(s.pid, 0) + s.weight
        return run

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        return self.wait()


def foretell(*argv, metric="launches"):
    """A dry run: its status, its list, and what it says."""
    r = subprocess.run([L.GPUCOLLECT, "--dry-run", "--metric", metric, *argv], env=L.environment(),
                       capture_output=True, text=True, timeout=60)
    return L.Run(r.returncode, r.stdout, r.stderr, "")


def between(what, run, target, first, last):
    got = run.by_pid.get(target.pid, 0)
    check(0 < got <= last - first, f"{what}: {got} of {last - first} launches of {target.pid}: {run.said}")


def several():
    """Two at once, one of them named twice and by a thread; a third is none of ours."""
    one, two, other = Steady(), Steady(), Steady()
    thread = max(map(int, os.listdir(f"/proc/{two.pid}/task")))
    first = one.made(), two.made()
    g = Collector("-p", f"{one.pid},{two.pid}", "-p", f"{one.pid},{thread}").wait_recording()
    check(len(one.away()) == len(two.away()) == ALL_SLOTS, f"slots: {one.away()} {two.away()}")
    check(other.away() == [] and not other.probed(), "a process that was not named is touched")
    L.wait_for(lambda: one.made() > first[0] + 500 and two.made() > first[1] + 500, "launches")
    run = g.stop()
    between("several", run, one, first[0], one.made())
    between("several", run, two, first[1], two.made())
    check(set(run.by_pid) == {one.pid, two.pid} and run.status == 0 and not run.complaints(),
          f"several: {run.status} {run.by_pid} {run.complaints()}")
    check(run.timed() == run.launches(), f"several: {run.said}")
    for t in one, two, other:
        check(t.away() == [], "slots are not restored")
        t.end()


def shell(*lines):
    """A shell that runs them when it is told to; its first line is its pid."""
    p = subprocess.Popen(["sh", "-c", "echo $$; " + "\n".join(lines)], env=L.environment(), text=True,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    return p, int(p.stdout.readline())


def children():
    """One that was there before, one that comes later, and a grandchild; all in one account."""
    until = f"{L.PROGRAMS}/gpu_until 1 500"
    os.mkfifo(f"{L.TMP}/fifo")
    p, pid = shell(f"{until} <{L.TMP}/fifo >{L.TMP}/early & read go",
                   f"sh -c '{until} <{L.TMP}/fifo >{L.TMP}/late; true' & wait")
    fifo = os.open(f"{L.TMP}/fifo", os.O_RDWR)

    def ready(name):
        path = os.path.join(L.TMP, name)
        return os.path.exists(path) and open(path, encoding="utf-8").read().startswith("ready")

    L.wait_for(lambda: ready("early"), "the early child")
    g = Collector("-p", str(pid)).wait_recording()
    p.stdin.write("go\n")
    p.stdin.flush()
    L.wait_for(lambda: ready("late"), "the late child")
    pids = [int(open(f"{L.TMP}/{n}", encoding="utf-8").read().split()[1]) for n in ("early", "late")]
    for child in pids:
        L.wait_for(lambda c=child: len(DRIVER.away(c)) == ALL_SLOTS, f"child {child} entered")
    time.sleep(0.5)	# some launches, whatever they are
    os.close(fifo)
    p.wait(30)
    run = g.wait()
    check(run.status == 0 and set(run.by_pid) == set(pids) and not run.complaints(),
          f"children: {run.status} {run.by_pid} not {pids}: {run.said}")
    check(run.timed() == run.launches(), f"children: {run.said}")


def in_the_middle():
    """A process that maps the driver when it is recorded already, and one that then replaces itself."""
    p, pid = shell("read go", f"exec {L.PROGRAMS}/gpu_until 2 500")
    g = Collector("-p", str(pid))
    L.wait_for(lambda: "recording" in g.said(), "recording")
    p.stdin.write("go\n")
    p.stdin.flush()
    L.wait_for(lambda: DRIVER.away(pid), "entered")
    time.sleep(0.3)
    p.stdin.close()
    p.wait(30)
    run = g.wait()
    check(run.status == 0 and list(run.by_pid) == [pid] and run.timed() == run.launches() > 0,
          f"in the middle: {run.status} {run.by_pid} {run.said}")


def is_ending(pid):
    """It runs no code of its own any more: PF_EXITING in its flags, as a zombie has it, too."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return int(f.read().rsplit(")", 1)[1].split()[6]) & 4


def second():
    """A process belongs to one collector; others are refused and change nothing."""
    one, two = Steady(), Steady()
    g = Collector("-p", str(one.pid)).wait_recording()
    refused = Collector("-p", str(one.pid), "-d", "1").wait()
    said = f"process {one.pid} is already recorded by gpucollect, pid {g.process.pid}"
    check(refused.status == 77 and any(said in s for s in refused.said) and not refused.written,
          f"second: {refused.status}: {refused.said}")
    check(len(refused.said) == 1, f"second: said once: {refused.said}")
    dry = foretell("-p", str(one.pid))
    check((dry.status, dry.said) == (77, refused.said) and
          f"\n  left out: it is already recorded by gpucollect, pid {g.process.pid}\n" in dry.out and
          "timing library" not in dry.out, f"second: dry: {dry.status}: {dry.out} {dry.said}")
    both = Collector("-p", f"{one.pid},{two.pid}", "-d", "0.5").wait()
    check(both.status == 0 and list(both.by_pid) == [two.pid] and
          any("left out" in s and said in s for s in both.said), f"second: {both.status}: {both.said}")
    dry = foretell("-p", f"{one.pid},{two.pid}")
    check((dry.status, dry.said) == (0, both.complaints()) and dry.out.count("  timing library, ") == 1,
          f"second: dry, both: {dry.status}: {dry.out} {dry.said}")
    # Nothing else that it was pointed at has the driver.
    with subprocess.Popen(["sleep", "60"]) as other:
        none = Collector("-p", f"{one.pid},{other.pid}", "--metric", "gpu", "-d", "0.5").wait()
        other.kill()
    check(none.status == 2 and any("none of the other processes" in s for s in none.said) and
          "left alone, see above" in none.said[-1], f"second: nobody else: {none.status}: {none.said}")
    check(len(one.away()) == ALL_SLOTS, "second: the first one lost its slots")
    first = one.made()
    L.wait_for(lambda: one.made() > first + 200, "launches")
    run = g.stop()
    check(run.status == 0 and run.by_pid.get(one.pid, 0) > 200 and not run.complaints(),
          f"second: the first one's result: {run.by_pid} {run.said}")
    # Its place is free again, also when it was killed, though the kernel may need seconds to end it.
    g = Collector("-p", str(one.pid)).wait_recording()
    g.process.kill()
    L.wait_for(lambda: is_ending(g.process.pid), "it ends")
    run = Collector("-p", str(one.pid), "-d", "0.5").wait()
    g.process.wait()
    check(run.status == 0 and run.by_pid.get(one.pid), f"second: after a kill of {g.process.pid}: {run.said}")
    for t in one, two:
        t.end()


def closes_descriptors():
    """A process may close all that it doesn't know, the library's among them, whenever it likes."""
    t = Steady()
    for _ in range(3):
        g = Collector("-p", str(t.pid)).wait_recording()
        first = t.made("c")
        other = Collector("-p", str(t.pid), "-d", "1").wait()
        said = f"process {t.pid} is already recorded by a gpucollect"
        check(other.status == 77 and len(other.said) == 1 and said in other.said[0],
              f"closed: another: {other.status} {other.said}")
        dry = foretell("-p", str(t.pid))
        check((dry.status, dry.said) == (77, other.said) and "  left out: " in dry.out,
              f"closed: dry: {dry.status} {dry.out} {dry.said}")
        L.wait_for(lambda: t.made() > first + 200, "launches")
        run = g.stop()
        check(run.status == 0 and run.timed() == run.launches() > 200 and not run.complaints(),
              f"closed: {run.status} {run.said}")
        check(t.away() == [], "closed: slots are not restored")
    t.end()


def other_version():
    """The library that a process holds may be of another version: then it is not used, and that is said."""
    t = Steady()
    run = Collector("-p", str(t.pid), "-d", "0.2").wait()
    check(run.status == 0 and run.by_pid.get(t.pid), f"version: the first one: {run.said}")
    names = subprocess.run(["nm", "-D", os.path.join(L.B, "libgpucollect_timing.so")], capture_output=True,
                           text=True, check=True).stdout
    place = next(int(line.split()[0], 16) for line in names.splitlines() if "gpucollect_identity" in line)
    with open(f"/proc/{t.pid}/maps", encoding="utf-8") as f:
        base = next(int(line.split("-")[0], 16) for line in f if "memfd:gpucollect" in line and "r--p 0000000" in line)
    with open(f"/proc/{t.pid}/mem", "r+b", 0) as mem:
        mem.seek(base + place + 8)	# struct channel_identity: magic, abi
        abi = int.from_bytes(mem.read(4), sys.byteorder)
        mem.seek(base + place + 8)
        mem.write((abi + 1).to_bytes(4, sys.byteorder))
    run = Collector("-p", str(t.pid), "-d", "0.5").wait()
    check(run.status == 0 and run.by_pid.get(t.pid) and
          any("another version of gpucollect: use that one, or start the process anew" in s for s in run.said) and
          any("without the timing library" in s for s in run.said), f"version: {run.status} {run.said}")
    dry = foretell("-p", str(t.pid))
    check(dry.status == 0 and not dry.said and "\n  no timing library: it holds the timing library of another "
          "version of gpucollect: use that one, or start the process anew\n  uprobes on: cuLaunch" in dry.out and
          "  timing library, " not in dry.out, f"version: dry: {dry.status} {dry.out} {dry.said}")
    run, dry = Collector("--metric", "gpu", "-p", str(t.pid)).wait(), foretell("-p", str(t.pid), metric="gpu")
    check((dry.status, dry.said) == (77, run.complaints()[-1:]) and run.status == 77,
          f"version: dry, gpu: {dry.status} {dry.said}; {run.status} {run.said}")
    t.end()


def confined():
    """One that the library can't get into at all: the dry run has the reason, and where that ends the run, the end."""
    t = Steady()
    t.made("f")
    for metric, status in (("launches", 0), ("gpu", 77)):
        run = Collector("--metric", metric, "-p", str(t.pid), "-d", "0.5").wait()
        dry = foretell("-p", str(t.pid), metric=metric)
        why = re.search(r"the timing library does not get in, since (.*); its launches are counted", "\n".join(run.said))
        check(run.status == dry.status == status and why and "seccomp" in why[1] and
              f"\n  no timing library: {why[1]}\n" in dry.out and
              dry.said == [s for s in run.said if s.startswith("error: ")], f"confined: {run.said} {dry.out} {dry.said}")
    t.end()


def of_a_command():
    """A command that outlives its capture is attached to by the library that its driver loaded."""
    fifo, out = os.path.join(L.TMP, "command-in"), os.path.join(L.TMP, "command-out")
    os.mkfifo(fifo)
    fd = os.open(fifo, os.O_RDWR)
    first = Collector("-d", "0.5", "--", "sh", "-c", f"exec {L.PROGRAMS}/gpu_until 2 1000 <{fifo} >{out}")
    L.wait_for(lambda: os.path.exists(first.path), "the first capture's end")
    with open(out, encoding="utf-8") as f:
        pid = int(f.read().split()[1])
    for _ in range(2):
        run = Collector("-p", str(pid), "-d", "0.3").wait()
        check(run.status == 0 and run.timed() == run.by_pid.get(pid) and not run.complaints(),
              f"of a command: {run.status} {run.by_pid} {run.said}")
        with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
            code = {line.split(maxsplit=5)[5].strip() for line in f
                    if ("/libgpucollect" in line or "memfd:gpucollect" in line) and "x" in line.split()[1]}
        check(len(code) == 1 and "/run/gpucollect/" in code.pop(), f"of a command: libraries: {code}")
    os.close(fd)
    run = first.wait()
    check(run.status == 0, f"of a command: {run.status} {run.said}")


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))


def kept_out():
    """By its environment, and by a file in its root directory: nothing of ours in it, and said once."""
    root = os.path.join(L.TMP, "root")
    os.makedirs(f"{root}/etc/gpucollect")
    bind = "; ".join(f"mkdir -p {root}{d} && mount --rbind {d} {root}{d}"
                     for d in ("/usr", "/lib", "/lib64", "/proc", "/dev", L.B, L.TMP)
                     if os.path.isdir(d) and not os.path.islink(d))
    links = "; ".join(f"ln -sfn {os.readlink(d)} {root}{d}" for d in ("/lib", "/lib64")
                      if os.path.islink(d))
    inside = ["unshare", "-m", "--propagation", "private", "sh", "-c",
              f"{links or 'true'}; {bind}; exec chroot {root} \"$@\"", "sh"]
    open(f"{root}/etc/gpucollect/disable", "w").close()
    targets = {"GPUCOLLECT_DISABLE is in its environment": Steady(rate=0, GPUCOLLECT_DISABLE=""),
               "/etc/gpucollect/disable is in its root directory": Steady(*inside, rate=0)}
    for why, t in targets.items():
        for options in ([], ["--no-inject"]):
            g = Collector("--metric", "cpu", "-F", "500", "-p", str(t.pid), *options).wait_recording()
            before = cpu_ticks(t.pid)
            L.wait_for(lambda: cpu_ticks(t.pid) > before + 20, "CPU time of the target")
            check(DRIVER.away(t.pid) in ([], None) and not slots.changed_code(t.pid, DRIVER.path),
                  f"kept out: {why}: it is touched")
            with open(f"/proc/{t.pid}/maps", encoding="utf-8") as f:
                check("gpucollect (deleted)" not in f.read(), f"kept out: {why}: the library is in")
            run = g.stop()
            check(sum(why in s for s in run.said) == 1 and run.status == 0 and run.by_pid,
                  f"kept out: {why} {options}: {run.status} {run.said}")
        run = Collector("--metric", "gpu", "-p", str(t.pid), "-d", "1").wait()
        check(run.status == 77 and any(why in s for s in run.said) and
              any("--metric cpu" in s for s in run.said) and
              not any("--metric launches" in s for s in run.said), f"kept out: {why}: {run.status} {run.said}")
        t.end()


def nothing():
    """Why there is nothing: it's left alone, or was hardly begun; never that it launched nothing."""
    kept, t = Steady(GPUCOLLECT_DISABLE="1"), Steady()
    run = Collector("-p", str(kept.pid), "-d", "0.2").wait()
    check(run.status == 2 and "left alone, see above" in run.said[-1], f"kept out: {run.status} {run.said}")
    for wait in range(0, 1000, 100):
        g = Collector("-p", str(t.pid))
        time.sleep(wait / 1000)
        run = g.stop()
        check("recording" in "".join(run.said) or run.status == -signal.SIGINT or
              (run.status == 2 and "stopped before anything was recorded" in run.said[-1]),
              f"stopped after {wait} ms: {run.status} {run.said}")
        check(t.away() == [], f"stopped after {wait} ms: slots {t.away()}")
    kept.end()
    t.end()


def group():
    """A control group: one that is in it, one below, one that comes later; none: an error."""
    mount = next((line.split()[1] for line in open("/proc/mounts", encoding="utf-8")
                  if line.split()[2] == "cgroup2"), None)
    top = f"{mount}/gpucollect-test-{os.getpid()}"
    try:
        os.makedirs(f"{top}/below")
    except (OSError, TypeError) as e:
        print(f"note: no control group can be made here: {e}")
        return

    def into(directory):
        return ["sh", "-c", f"echo $$ >{directory}/cgroup.procs; exec \"$@\"", "sh"]

    name = os.path.basename(top)
    run = Collector("--cgroup", name, "-d", "1").wait()
    check(run.status == 2 and any("no process" in s for s in run.said), f"empty group: {run.said}")
    outside, inside, below = Steady(), Steady(*into(top)), Steady(*into(f"{top}/below"))
    moved = Steady()
    g = Collector("--cgroup", name).wait_recording()
    later = Steady(*into(f"{top}/below"))
    with open(f"{top}/cgroup.procs", "w", encoding="utf-8") as f:
        f.write(f"{moved.pid}\n")
    members = [inside, below, later, moved]
    for t in members:
        L.wait_for(lambda t=t: len(t.away()) == ALL_SLOTS, f"{t.pid} entered")
    check(outside.away() == [], "a process outside of the group is touched")
    counts = [t.made() for t in members]
    L.wait_for(lambda: all(t.made() > n + 200 for t, n in zip(members, counts)), "launches")
    for t in members:
        t.end()
    run = g.wait()	# the group is empty
    check(run.status == 0 and set(run.by_pid) == {t.pid for t in members} and not run.complaints() and
          run.timed() == run.launches(), f"group: {run.status} {run.by_pid} {run.said}")
    outside.end()
    os.rmdir(f"{top}/below")
    os.rmdir(top)
    run = Collector("--cgroup", name, "-d", "1").wait()
    check(run.status == 2 and any(name in s for s in run.said), f"no group: {run.status} {run.said}")


def everywhere():
    """-a sees a driver in another mount namespace at another path, and brings the library if it is told to."""
    other = os.path.join(L.TMP, "other")
    os.makedirs(other)
    script = (f"mount -t tmpfs none {other} && cp {DRIVER.path} {other}/ && "
              f"export LD_LIBRARY_PATH={other} && exec \"$@\"")
    usual = Steady()
    hidden = Steady("unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh")
    for options, timed in ((["--no-cpu"], False), (["--inject"], True)):
        g = Collector("-a", *options).wait_recording()
        first = usual.made(), hidden.made()
        L.wait_for(lambda: usual.made() > first[0] + 300 and hidden.made() > first[1] + 300, "launches")
        check((usual.away() != []) == timed, f"-a {options}: slots {usual.away()}")
        run = g.stop()
        for t in usual, hidden:
            check(run.by_pid.get(t.pid, 0) >= 300, f"-a {options}: {run.by_pid} {run.said}")
        if timed:
            check(run.timed() > 600, f"-a {options}: {run.said}")
    for t in usual, hidden:
        t.end()


def dry():
    """What it says is what a run does; and it does nothing."""
    t, kept = Steady(), Steady(GPUCOLLECT_DISABLE="1")
    def code(p):
        with open(f"/proc/{p.pid}/maps", encoding="utf-8") as f:
            return [line for line in f if "x" in line.split()[1]]

    before = code(t), code(kept)

    def say(*argv):
        r = subprocess.run([L.GPUCOLLECT, "--dry-run", *argv], env=L.environment(),
                           capture_output=True, text=True, timeout=60)
        check(r.returncode == 0 and not r.stderr, f"dry run: {r.returncode} {r.stderr}")
        return r.stdout

    out = say("-p", f"{t.pid},{kept.pid}")
    check(re.search(rf"^process {t.pid} \(gpu_until\), 3 threads\n  driver {DRIVER.path}\n", out, re.M),
          f"dry run: {out}")
    named = re.search(r"slots of: (.*)", out)
    check("CPU samples only" in out and "GPUCOLLECT_DISABLE" in out, f"dry run: {out}")
    check("uprobes on: cuLaunch" in say("-p", str(t.pid), "--no-inject"), "dry run without the library")
    check(f"process {t.pid} (" in say("-a"), "dry run of all")
    mark = os.path.join(L.TMP, "ran")
    check("CUDA_INJECTION64_PATH" in say("--", "touch", mark) and not os.path.exists(mark),
          "dry run of a command")
    check((code(t), code(kept)) == before and t.away() == [] and not t.probed(),
          "a dry run changed something")
    g = Collector("-p", str(t.pid)).wait_recording()
    check(named and sorted(named[1].split()) == t.away(), f"dry run: {named and named[1]}; swapped: {t.away()}")
    g.stop()
    for p in t, kept:
        p.end()


wanted = sys.argv[1:]
for part in (several, children, in_the_middle, second, closes_descriptors, other_version, confined,
             of_a_command, kept_out, nothing, group, everywhere, dry):
    if not wanted or part.__name__ in wanted:
        before = check.failures
        part()
        print("ok   " if check.failures == before else "WRONG", part.__name__, flush=True)
sys.exit(check.status())
