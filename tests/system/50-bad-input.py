#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 200
"""What can't work is refused with one clear sentence, once, and the documented status.

What stands in the way of a capture is found before the command runs; a command that can't be timed
can still be counted, or sampled.
"""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402

check = L.Checks()
STARTED = os.path.join(L.TMP, "started")
OUT = os.path.join(L.TMP, "o.folded")
NOT_FOUND, NOT_EXECUTABLE, NO_PERMISSION, EMPTY, OWN_FAILURE, USAGE = 127, 126, 77, 2, 125, 64
CHAINS = [f"{L.PROGRAMS}/gpu_chains", "5"]
LAUNCHES_OF_CHAINS = 60


def gpucollect(*args, before=(), kind="simcuda", **extra):
    for path in (STARTED, OUT):
        if os.path.lexists(path):
            os.unlink(path)
    env = L.environment(kind, **extra)
    if kind == "none":
        del env["LD_LIBRARY_PATH"]
    r = subprocess.run([*before, L.GPUCOLLECT, *args], env=env, cwd=L.TMP,
                       stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    return L.Run(r.returncode, r.stdout, r.stderr, OUT)


def refused(what, status, words, *args, started=False, said=1, **how):
    """One error, which holds these words; no file, and the command was not started."""
    target = [] if "-p" in args else ["--", "touch", STARTED]
    r = gpucollect(*args, "-o", OUT, *target, **how)
    errors = [s for s in r.said if s.startswith("error: ")]
    check(r.status == status, f"{what}: status {r.status} instead of {status}: {r.said}")
    check(len(errors) == 1 and all(w in errors[0] for w in words), f"{what}: it says {r.said}")
    check(not said or len(r.said) == said, f"{what}: it says more: {r.said}")
    check(r.out == "" and r.err == "", f"{what}: there is output: {r.out}{r.err}")
    check(os.path.exists(STARTED) == started, f"{what}: the command was started, or not")
    check(not r.written, f"{what}: a file was written")


def counted(what, r, launches, warning=None):
    check(r.status == 0 and r.total() == launches, f"{what}: status {r.status}, {r.total()} launches")
    good = [s for s in r.complaints() if warning and warning in s]
    check(len(r.complaints()) == len(good) == bool(warning), f"{what}: it says {r.complaints()}")


def commands():
    """A command that can't be executed, by each way of capturing."""
    with open(os.path.join(L.TMP, "text"), "w") as f:
        f.write("no program")
    for options in ([], ["--no-inject", "--metric", "launches"], ["--no-gpu"]):
        targets = [("nosuch", NOT_FOUND, "nosuch"), ("./text", NOT_EXECUTABLE, "text")]
        if not options:
            targets += [("/none/x", NOT_FOUND, "/none/x"), (L.TMP, NOT_EXECUTABLE, L.TMP)]
        for target, status, word in targets:
            r = gpucollect(*options, "-o", OUT, "--", target)
            check(r.status == status and len(r.said) == 1 and word in r.said[0] and not r.err and
                  r.said[0].startswith("error: "), f"{options} {target}: status {r.status}, {r.said}")
            check(not r.written, f"{options} {target}: a file was written")


def privileges():
    """By capability, not by user: root without one of them, and an ordinary user."""
    for name in ("bpf", "perfmon"):
        refused(f"without CAP_{name}", NO_PERMISSION, ("CAP_" + name.upper(), "sudo"),
                before=("setpriv", f"--bounding-set=-{name},-sys_admin", "--inh-caps=-all"))
    refused("without CAP_SYS_PTRACE", NO_PERMISSION, ("CAP_SYS_PTRACE", "sudo"),
            before=("setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-all"))
    os.chmod(L.TMP, 0o777)
    refused("an ordinary user", NO_PERMISSION, ("CAP_BPF", "sudo"),
            before=("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                    "--inh-caps=-all", "--bounding-set=-all"))
    # With just what is needed it works, whoever it is.
    caps = "+bpf,+perfmon,+sys_ptrace"
    r = gpucollect("-o", OUT, "--metric", "launches", "--", *CHAINS,
                   before=("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                           f"--inh-caps={caps}", f"--ambient-caps={caps}"))
    counted("an ordinary user with three capabilities", r, LAUNCHES_OF_CHAINS)


def no_btf():
    hide = ("unshare", "-m", "sh", "-c", "mount -t tmpfs none /sys/kernel/btf && exec \"$@\"", "sh")
    if subprocess.run([*hide, "true"], capture_output=True).returncode:
        print("note: no mount namespaces here, so nothing about BTF")
        return
    refused("without BTF", NO_PERMISSION, ("BTF", "/sys/kernel/btf/vmlinux"), before=hide)


def no_cuda():
    """The command never uses CUDA."""
    for options in ([], ["--metric", "launches"], ["--no-inject", "--metric", "launches"]):
        refused(f"no CUDA {options}", EMPTY, ("--metric cpu",), *options, started=True, said=0)
    r = gpucollect("-o", OUT, "-F", "999", "--metric", "cpu", "--", f"{L.CASES}/chain", SECS="1")
    check(r.status == 0 and r.total() > 0 and not r.complaints(), f"CPU only: {r.status} {r.said}")


def own_driver(name, content):
    folder = os.path.join(L.TMP, "lib-" + name)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "libcuda.so.1")
    if content is None:
        os.makedirs(path, exist_ok=True)
    else:
        with open(path, "wb") as f:
            f.write(content)
    return folder


def warned(what, kind, warning, error, *target, status=EMPTY):
    """Said at the start, since it is likely; said at the end, since it came true."""
    r = gpucollect("-o", OUT, "--", *target, kind=kind)
    said = [s for s in r.complaints() if s.startswith("warning: ")]
    errors = [s for s in r.complaints() if s.startswith("error: ")]
    check(r.status == status and not r.written, f"{what}: status {r.status}, {r.said}")
    check(said and all(w in said[0] for w in warning), f"{what}: it warns {said}")
    check(len(errors) == 1 and all(w in errors[0] for w in error), f"{what}: it says {errors}")
    return r


def drivers():
    """No libcuda, none that is one, and one whose entries look like no driver's."""
    # A machine with a driver of its own has one in the default places.
    if subprocess.run("ldconfig -p | grep -q libcuda.so.1", shell=True).returncode:
        none = ("libcuda.so.1", "--metric cpu")
        warned("no libcuda", "none", none, ("no process loaded libcuda", "--metric cpu"), "touch",
               STARTED)
        check(os.path.exists(STARTED), "no libcuda: the command was not started")
        r = gpucollect("-o", OUT, "--metric", "cpu", "-F", "999", "--", f"{L.CASES}/chain", SECS="1",
                       kind="none")
        check(r.status == 0 and r.total() > 0 and not r.complaints(), f"no libcuda: {r.said}")
        # The command finds one all the same: by its environment, or by itself.
        for options in ((), ("--metric", "launches")):
            r = gpucollect(*options, "-o", OUT, "--", "env", f"LD_LIBRARY_PATH={os.environ['B']}/simcuda",
                           *CHAINS, kind="none")
            check(r.status == 0 and r.timed() == r.launches() == LAUNCHES_OF_CHAINS,
                  f"a command's own libcuda {options}: {r.status} {r.said}")
            check(len(r.complaints()) == (not options), f"a command's own libcuda: {r.said}")
    with open(f"{os.environ['B']}/simcuda/libcuda.so.1", "rb") as f:
        whole = f.read()
    damaged = bytearray(whole)
    damaged[64:1024] = b"\xff" * 960
    for name, content in (("cut", whole[:20000]), ("short", whole[:40]), ("text", b"no library"),
                          ("empty", b""), ("damaged", bytes(damaged)), ("noise", os.urandom(1 << 18))):
        folder = own_driver(name, content)
        warned(f"libcuda: {name}", folder, (folder, "--no-inject --metric launches"),
               ("no process loaded libcuda",), "touch", STARTED)
        r = gpucollect("-o", OUT, "--", "env", f"LD_LIBRARY_PATH={os.environ['B']}/simcuda", *CHAINS,
                       kind=folder)
        check(r.status == 0 and r.timed() == LAUNCHES_OF_CHAINS, f"another than {name}: {r.said}")
        if name not in ("cut", "damaged"):
            continue
        r = gpucollect("-o", OUT, "--metric", "launches", "--no-inject", "--", "touch", STARTED,
                       kind=folder)
        check(r.status == EMPTY and os.path.exists(STARTED) and len(r.complaints()) == 2 and
              "can't be probed" in r.complaints()[0], f"libcuda: {name}, probes: {r.status} {r.said}")
    odd = ("cu", "not known", "--no-inject --metric launches")
    # The library refuses when it is loaded: probes come too late for most launches of so short a run.
    untimed = ("no GPU work was timed",)
    r = warned("odd entries", "simcuda-odd", odd, untimed, *CHAINS)
    check(f"total {LAUNCHES_OF_CHAINS} 0" in r.out, f"odd entries: {r.out}")
    many = [f"{L.PROGRAMS}/gpu_chains", "5000"]
    r = warned("odd entries", "simcuda-odd", odd, ("launches were counted", "--metric launches"), *many)
    check(r.launches() > 0, f"odd entries, many launches: {r.said}")
    counted("odd entries, launches", gpucollect("-o", OUT, "--metric", "launches", "--", *CHAINS,
                                                kind="simcuda-odd"),
            LAUNCHES_OF_CHAINS, "not known")
    counted("odd entries, probes", gpucollect("-o", OUT, "--metric", "launches", "--no-inject", "--",
                                              *CHAINS, kind="simcuda-odd"), LAUNCHES_OF_CHAINS)
    # The first that the dynamic loader would take is looked at, whatever stands behind it.
    both = f"{os.environ['B']}/simcuda-odd:{os.environ['B']}/simcuda"
    warned("odd entries first", both, odd, untimed, *CHAINS)


def environments():
    """The user's own injected library, and the variable that keeps ours out."""
    for value in ("", "1"):
        for options in ([], ["--metric", "launches"], ["--no-inject", "--metric", "launches"]):
            refused(f"GPUCOLLECT_DISABLE, {options}", NO_PERMISSION, ("GPUCOLLECT_DISABLE", "--metric cpu"),
                    *options, GPUCOLLECT_DISABLE=value)
    r = gpucollect("-o", OUT, "-F", "999", "--metric", "cpu", "--", f"{L.CASES}/chain", SECS="1",
                   GPUCOLLECT_DISABLE="1")
    check(r.status == 0 and r.total() > 0 and not r.complaints(), f"kept out, CPU: {r.status} {r.said}")
    name, value = "CUDA_INJECTION64_PATH", "/none.so"
    refused(name, NO_PERMISSION, (name, "--no-inject --metric launches"), **{name: value})
    counted(f"{name}, launches", gpucollect("-o", OUT, "--metric", "launches", "--", *CHAINS,
                                            **{name: value}), LAUNCHES_OF_CHAINS, name)
    counted(f"{name}, probes", gpucollect("-o", OUT, "--metric", "launches", "--no-inject", "--",
                                          *CHAINS, **{name: value}), LAUNCHES_OF_CHAINS)
    # The user's library is loaded as ever.
    source = os.path.join(L.TMP, "guest.c")
    with open(source, "w") as f:
        f.write("#include <unistd.h>\nint InitializeInjection(void)\n"
                "{\n\treturn write(2, \"guest\\n\", 6) == 6;\n}\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", source[:-1] + "so", source], check=True)
    r = gpucollect("-o", OUT, "--metric", "launches", "--", *CHAINS,
                   CUDA_INJECTION64_PATH=source[:-1] + "so")
    check(r.err == "guest\n", f"the user's library: {r.err}")
    counted("the user's library", r, LAUNCHES_OF_CHAINS, "CUDA_INJECTION64_PATH")


def outputs():
    """A place where nothing can be written is found before the command runs."""
    link, loop, mine = (os.path.join(L.TMP, name) for name in ("link.folded", "loop.folded", "mine.folded"))
    os.symlink("nowhere", link)
    os.symlink("loop.folded", loop)
    with open(mine, "w", encoding="utf-8") as f:
        f.write("mine")
    for path, words in ((os.path.join(L.TMP, "none/x.folded"), "no such directory"), (L.TMP, "directory"),
                        (f"{L.TMP}/", "directory"), (os.path.join(mine, "x"), "is no directory"),
                        (mine, "add -y"), (link, "link to nothing"), (loop, "leads to itself"),
                        (f"{L.TMP}/{'x' * 300}", "too long"), ("/dev/fd/77", "no descriptor")):
        refused_at(path, USAGE, words)
    # Root's rights say that it may; that this file system has no new files shows by trying only.
    refused_at("/sys/x.folded", NO_PERMISSION, "may not write", dry=False)
    for name in link, loop:
        os.unlink(name)
    with open(mine, encoding="utf-8") as f:
        check(f.read() == "mine", "a file that exists was written")
    read_only = ("unshare", "-m", "sh", "-c", f"mount -t tmpfs -o ro none {L.TMP}/ro && exec \"$@\"", "sh")
    os.mkdir(f"{L.TMP}/ro")
    if not subprocess.run([*read_only, "true"], capture_output=True).returncode:
        refused_at(f"{L.TMP}/ro/x.folded", USAGE, "read-only", before=read_only)
    # A disk that is full once the capture is over: the command's status can't hide it.
    r = gpucollect("-o", "/dev/full", "--", *CHAINS)
    errors = [s for s in r.complaints() if "/dev/full" in s and "no space" in s]
    check(r.status == OWN_FAILURE and len(errors) == 1, f"/dev/full: {r.status} {r.said}")
    check(f"total {LAUNCHES_OF_CHAINS} 0" in r.out, f"/dev/full: {r.out}")


def refused_at(path, status, words, dry=True, **how):
    """The same of a command and a process, in a run and in a dry run, which makes no file at all."""
    if os.path.exists(STARTED):
        os.unlink(STARTED)
    own = ["-p", str(os.getpid()), "--metric", "cpu", "-d", "1"]
    dry = (["--dry-run", "--", "touch", STARTED], ["--dry-run", *own]) if dry else ()
    for argv in (["--", "touch", STARTED], own, *dry):
        place = path.rsplit("/", 1)[0]
        before = os.stat(place).st_mtime_ns if os.path.isdir(place) else 0
        r = gpucollect("-o", path, *argv, **how)
        check(r.status == status and len(r.said) == 1 and words in r.said[0] and path in r.said[0],
              f"-o {path} {argv}: status {r.status}, {r.said}")
        check(not os.path.exists(STARTED), f"-o {path}: the command was started")
        check("--dry-run" not in argv or not before or os.stat(place).st_mtime_ns == before,
              f"-o {path}: a dry run wrote into {place}")


def running(*args):
    p = subprocess.Popen([f"{L.PROGRAMS}/gpu_until", *args], env=L.environment(), text=True,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    check(p.stdout.readline().startswith("ready"), "gpu_until: not ready")
    return p


def processes():
    """-p: no such process; one that is killed, and one that ends, in the middle."""
    refused("-p of nobody", EMPTY, ("no process 4194000",), "-p", "4194000")
    for how in ("killed", "ends"):
        p = running()
        g = subprocess.Popen([L.GPUCOLLECT, "--metric", "launches", "-y", "-o", OUT, "-p", str(p.pid)],
                             stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while "recording" not in (line := g.stderr.readline()) and line:
            pass
        time.sleep(0.3)		# for some launches
        if how == "killed":
            p.send_signal(signal.SIGKILL)
        p.stdin.close()
        p.wait(20)
        err = g.stderr.read()
        r = L.Run(g.wait(30), "", err, OUT)
        check(r.status in (0, 1) and r.total() == r.launches() > 50 and not r.complaints(),
              f"a target that {how}: {r.status}, {r.total()} launches, {r.said}")
        names = {"launch_even", "launch_odd"}
        check(all(names & set(s.frames) for s in r.stacks) and
              {n for s in r.stacks for n in s.frames} >= names, f"a target that {how}: {r.stacks}")


wanted = sys.argv[1:]
for part in (commands, privileges, no_btf, no_cuda, drivers, environments, outputs, processes):
    if not wanted or part.__name__ in wanted:
        before = check.failures
        part()
        print("ok   " if check.failures == before else "WRONG", part.__name__, flush=True)
sys.exit(check.status())
