#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 250
"""gpucollect calibrate: it finds exactly what the virtual device's brackets have too many, keeps it, and
captures that follow are exact; what it can't measure, save or believe is said.

In a mount namespace of its own, with an empty /var/lib.
"""
import ctypes
import json
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TOP"], "tests/tools"))
import launches as L  # noqa: E402

check = L.Checks()
FOLDER = "/var/lib/gpucollect"
FILE = f"{FOLDER}/calibration"
USER = 4242
# Kernels 3 us too long, copies 2, whatever the stream: then it does not matter how a stream was found.
EVEN = {"STANDIN_BRACKET_NS": "3000:3000", "STANDIN_COPY_BRACKET_NS": "2000:2000"}
UNEVEN = {"STANDIN_BRACKET_NS": "3460:6500", "STANDIN_COPY_BRACKET_NS": "2100:5200"}
WORKS = ("kernel", "memcpy HtoD", "memcpy DtoH", "memcpy DtoD", "memset")
WORDS = dict(zip(WORKS, ("kernel", "HtoD", "DtoH", "DtoD", "set")))
CLONE_NEWNS, MS_RDONLY, MS_REMOUNT, MS_REC, MS_PRIVATE = 0x20000, 1, 32, 16384, 1 << 18
libc = ctypes.CDLL(None, use_errno=True)


def mount(source, target, kind, flags):
    if libc.mount(source, target, kind, flags, None):
        print(f"skipped: mounting {target}: {os.strerror(ctypes.get_errno())}")
        sys.exit(L.SKIP)


def private_var_lib():
    if libc.unshare(CLONE_NEWNS):
        print(f"skipped: no mount namespace: {os.strerror(ctypes.get_errno())}")
        sys.exit(L.SKIP)
    mount(b"none", b"/", None, MS_REC | MS_PRIVATE)
    mount(b"none", b"/var/lib", b"tmpfs", 0)


def calibrate(*argv, kind="simcuda", program=None, user=None, **variables):
    r = subprocess.run([program or L.GPUCOLLECT, "calibrate", *argv], env=L.environment(kind, **variables),
                       stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                       timeout=120, user=user, group=user, extra_groups=[] if user else None)
    return r


def content():
    if not os.path.exists(FILE):
        return None
    with open(FILE, encoding="ascii") as f:
        return f.read()


def file_of(*devices):
    """The file for (name, kernels, copies), each busy and idle."""
    lines = [f"13000 {WORDS[w]} {' '.join(map(str, kernels if w == 'kernel' else copies))} {name}\n"
             for name, kernels, copies in devices for w in WORKS]
    return "gpucollect calibration 1\n" + "".join(lines) + f"end {len(lines)}\n"


def usage():
    for argv, text in ((("x",), "nothing else"), (("--device",), "a value is missing"),
                       (("--device", "-1"), "not the number"), (("--device", "1,2"), "not the number"),
                       (("--device=9999",), "not the number"), (("--frobnicate",), "no such option"),
                       (("-p", "1"), "no such option"),
                       (("--", "true"), "nothing else")):
        r = calibrate(*argv)
        check(r.returncode == 64 and not r.stdout and text in r.stderr and r.stderr.count("\n") == 1,
              f"{argv}: {r}")
    r = calibrate("--help")
    check(r.returncode == 0 and "calibrate [--device N]" in r.stdout and not r.stderr, f"--help: {r}")
    r = calibrate("--json", "x")
    check(json.loads(r.stderr)["gpucollect"] == "error", f"--json: {r}")
    check(content() is None, "a usage error saves something")


def no_device():
    empty = os.path.join(L.TMP, "empty")
    os.makedirs(empty, exist_ok=True)
    for text, argv, more in (
            ("no driver", (), {"kind": empty}),
            ("sees no device", (), {"STANDIN_DEVICES": "0"}),
            ("the driver sees 1,", ("--device", "1"), {}),
            ("the driver doesn't start", (), {"STANDIN_FAULT": "cuInit:1:999"}),
            ("refused cuDevicePrimaryCtxRetain", (), {"STANDIN_FAULT": "cuDevicePrimaryCtxRetain:1:46"}),
            ("refused cuModuleLoadData", (), {"STANDIN_FAULT": "cuModuleLoadData:1:222"}),
            ("refused cuMemAlloc_v2", (), {"STANDIN_FAULT": "cuMemAlloc_v2:1+:2"})):
        r = calibrate(*argv, **more)
        check(r.returncode == 77 and text in r.stderr and not r.stdout, f"{text}: {r}")
    # On the way: nothing of that device is believed.
    r = calibrate(STANDIN_FAULT="cuLaunchKernel:300+:719", **EVEN)
    check(r.returncode == 125 and "refused cuLaunchKernel" in r.stderr and not r.stdout, f"a failing launch: {r}")
    # What a driver tells is shown and written: so is no name that steers a terminal.
    r = calibrate(STANDIN_NAME="\33[2J", **EVEN)
    check(r.returncode == 125 and "nonsense" in r.stderr and "\33" not in r.stdout + r.stderr, f"name: {r}")
    check(content() is None, "saved without a device")


def ended_early():
    """The process that measures is killed, or the one that waits for it: nothing is left, nothing saved."""
    for whom in "child", "parent":
        gate = L.Gate("cuModuleLoadData")
        p = subprocess.Popen([L.GPUCOLLECT, "calibrate"], env=L.environment(**EVEN, **gate.variable),
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        L.wait_for(lambda gate=gate: gate.pids(), "the process that measures")
        child = gate.pids()[0]
        check(child != p.pid, "the driver runs in gpucollect itself")
        os.kill(child if whom == "child" else p.pid, signal.SIGKILL)
        out, err = p.communicate(timeout=30)
        if whom == "child":
            check(p.returncode == 125 and "signal 9" in err and not out, f"{p.returncode} {err}")
        check.soon("its child is gone", lambda pid=child: not os.path.exists(f"/proc/{pid}"))
        gate.close()
    check(content() is None, "saved all the same")


def exact():
    r = calibrate(**UNEVEN)
    check(r.returncode == 0 and r.stderr == f"gpucollect: saved to {FILE}\n", f"calibrate: {r}")
    want = file_of(("Stand-in 0", (3460, 6500), (2100, 5200)))
    check(content() == want, f"{content()} not {want}")
    st = os.stat(FILE), os.stat(FOLDER)
    check([(s.st_uid, s.st_mode & 0o7777) for s in st] == [(0, 0o644), (0, 0o755)], f"{st}")
    check(os.listdir(FOLDER) == ["calibration"], f"left: {os.listdir(FOLDER)}")
    for work in WORKS:
        for stream, ns in zip(("busy", "idle"), (3460, 6500) if work == "kernel" else (2100, 5200)):
            check(re.search(rf"^  {work} +{stream} +{ns} ns$", r.stdout, re.M), f"{work} {stream}: {r.stdout}")
    return want


def for_scripts(before):
    """Another device beside the first, as JSON; its entries stand beside the others."""
    r = calibrate("--device", "1", "--json", STANDIN_DEVICES="2", **EVEN)
    found = [json.loads(line) for line in r.stdout.splitlines()]
    said = [json.loads(line) for line in r.stderr.splitlines()]
    got = [(x["gpucollect"], x["device"], x["name"], x["work"], x["stream"], x["constant_ns"]) for x in found]
    want = [("constant", 1, "Stand-in 1", w, s, 3000 if w == "kernel" else 2000)
            for w in WORKS for s in ("busy", "idle")]
    check(r.returncode == 0 and got == want, f"{got} not {want}")
    check([x["gpucollect"] for x in said] == ["info"], f"{said}")
    for x in found:
        for s in x["series"]:
            check(s["median_ns"] == x["constant_ns"] and s["rounds"] == s["wanted"], f"{s} of {x}")
    two = before.replace("end 5\n", "") + file_of(("Stand-in 1", (3000, 3000), (2000, 2000))).split("\n", 1)[1]
    check(content() == two.replace("end 5", "end 10"), f"{content()}")
    os.remove(FILE)


def same_name():
    """One of each name."""
    r = calibrate(STANDIN_DEVICES="2", STANDIN_NAME="NVIDIA Imagined 5000", **EVEN)
    check(r.returncode == 0 and r.stdout.count("device ") == 1 and "device 1: NVIDIA Imagined" in r.stderr,
          f"two of one name: {r}")
    # Its idle brackets are not known to be free of the host's time: that may be taken off.
    check("13000 kernel 3000 " in content(), content())
    os.remove(FILE)


def rights():
    """The driver runs as the caller; saving is root's."""
    theirs = os.path.join(L.TMP, "theirs")
    os.makedirs(theirs)
    os.chown(theirs, USER, USER)
    os.chmod(L.TMP, 0o755)
    r = calibrate("-q", SUDO_UID=str(USER), SUDO_GID=str(USER), STANDIN_TRACE=f"{theirs}/trace", **EVEN)
    check(r.returncode == 0 and not r.stderr, f"under sudo: {r}")
    st = os.stat(f"{theirs}/trace")
    check((st.st_uid, st.st_gid) == (USER, USER), f"the driver ran as {st.st_uid}")
    check(content() == file_of(("Stand-in 0", (3000, 3000), (2000, 2000))), f"{content()}")
    os.remove(FILE)
    r = calibrate(user=USER, **EVEN)
    check(r.returncode == 77 and "not saved" in r.stderr and "sudo" in r.stderr and
          "3000 ns" in r.stdout, f"not root: {r}")
    r = calibrate(SUDO_UID="x", **EVEN)
    check(r.returncode == 125 and "SUDO_UID" in r.stderr, f"SUDO_UID: {r}")
    os.chmod(FOLDER, 0o777)
    r = calibrate(**EVEN)
    check(r.returncode == 77 and "chmod 755" in r.stderr, f"an open folder: {r}")
    os.chmod(FOLDER, 0o755)
    mount(b"none", b"/var/lib", None, MS_REMOUNT | MS_RDONLY)
    r = calibrate(**EVEN)
    check(r.returncode == 77 and "Read-only" in r.stderr and "3000 ns" in r.stdout, f"read-only: {r}")
    mount(b"none", b"/var/lib", None, MS_REMOUNT)
    check(content() is None, "saved all the same")


def nowhere_to_print():
    with open("/dev/full", "w", encoding="utf-8") as full:
        r = subprocess.run([L.GPUCOLLECT, "calibrate"], env=L.environment(**EVEN), stdin=subprocess.DEVNULL,
                           stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    check(r.returncode == 125 and "No space left" in r.stderr and content(), f"a full disk: {r}")


def killed():
    """In the middle of saving: the old file is there, whole; and the next one finds nothing in its way."""
    calibrate(**EVEN)
    before = content()
    r = calibrate(program=f"{L.B}-faults/gpucollect", GPUCOLLECT_FAULT="calibration-written", **UNEVEN)
    check(r.returncode == -9 and content() == before is not None, f"killed: {r} {content()}")
    check(sorted(os.listdir(FOLDER)) == [".calibration", "calibration"], f"left: {os.listdir(FOLDER)}")
    r = calibrate(**EVEN)
    check(r.returncode == 0 and os.listdir(FOLDER) == ["calibration"], f"after it: {os.listdir(FOLDER)} {r}")
    check(content() == before, f"{content()}")


def copies(out):
    """The program's copies; those whose constants are none of calibrate's are as long as before."""
    chains = []
    for count, n, ns, path, what in re.findall(r"^copy (\d+) (\d+) (\d+) (\S+) (.+)$", out, re.M):
        more = 0 if what in WORKS else 2000 * int(count)
        chains.append(L.Chain(None, path, what, int(n), int(ns) + more))
    return chains


def captures():
    """Exact with what was measured."""
    for target in ["gpu_chains"], ["gpu_copies", "30"]:
        r = L.run([f"{L.PROGRAMS}/{target[0]}", *target[1:]], **EVEN)
        chains = copies(r.out) + L.account(r.out)
        kinds = {c.kernel for c in chains}.intersection(WORKS)
        check(kinds == (set(WORKS[1:]) if target[0] == "gpu_copies" else set()), f"{target}: {kinds}")
        L.compare(check, f"{target} after it", r, "gpu", chains)


def refused():
    """Of a file that can't be believed one warning, and the built-in constants: 0 here."""
    good = content()
    for text, mode, says in ((good[:-7], 0o644, "line 6"), (good, 0o666, "mode 666"),
                             (good.replace(" 3000 ", " 30000 ", 1), 0o644, "line 2")):
        with open(FILE, "w", encoding="ascii") as f:
            f.write(text)
        os.chmod(FILE, mode)
        r = L.run([f"{L.PROGRAMS}/gpu_chains"], **EVEN)
        complaints = r.complaints()
        check(len(complaints) == 1 and says in complaints[0] and "sudo gpucollect calibrate" in complaints[0],
              f"{says}: {r.said}")
        own = sum(c.ns for c in L.account(r.out))
        check(r.total() - own == 3000 * r.timed() > 0, f"{says}: {r.total()} of {own}, {r.timed()} timed")
        r = L.run([f"{L.PROGRAMS}/gpu_chains"], mode="probes")
        check(not r.complaints(), f"where nothing is timed nobody reads it: {r.said}")
    r = calibrate(**EVEN)
    check(r.returncode == 0 and "was replaced" in r.stderr and content() == good, f"mended: {r}")


private_var_lib()
usage()
no_device()
ended_early()
for_scripts(exact())
same_name()
rights()
nowhere_to_print()
killed()
captures()
refused()
sys.exit(check.status())
