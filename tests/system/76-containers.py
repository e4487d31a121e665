#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
"""Processes in containers: another root, other numbers, another C library; seen from outside and inside."""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ.get("TOP", "."), "tests/tools"))
import folded
import running
from running import Target, capture, nearly_all, sh

running.own_mounts()
check = folded.Checks()
CHAIN = ("main", "chain_a", "chain_b", "chain_c")
CONTAINER = [sys.executable, os.path.join(os.environ["TOP"], "tests/tools/container.py")]
MUSL = shutil.which("musl-gcc")


def with_libraries(root, program, name):
    """Puts a program and what it is linked with into a root."""
    libraries = re.findall(r"(/\S+) \(0x", sh(f"ldd '{program}' || true"))
    for path, to in [(program, f"/bin/{name}"), *((lib, lib) for lib in libraries)]:
        os.makedirs(os.path.dirname(root + to), exist_ok=True)
        shutil.copy2(path, root + to)


def contained(root, program, *arguments):
    return Target(*CONTAINER, root, program, *arguments, comm=os.path.basename(program))


def make_root(name):
    root = os.path.join(folded.TMP, name)
    os.makedirs(root)
    sh(f"mount -t tmpfs none '{root}' && mkdir {root}/tmp {root}/proc {root}/sys")
    return root


def inside(target, root, *options):
    """gpucollect in a container, which gets a copy of it."""
    with_libraries(root, folded.GPUCOLLECT, "gpucollect")
    os.makedirs(root + folded.TMP, exist_ok=True)
    path = root + os.path.join(folded.TMP, "inside.folded")
    rec = subprocess.run(["nsenter", "-t", str(target.pid), "-m", "-p", "-u", "-i", "/bin/gpucollect",
                          *folded.command(*options, "-d", "1", frequency=running.FREQUENCY,
                                          path=os.path.join(folded.TMP, "inside.folded"))[1:]],
                         stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100,
                         cwd="/")
    return folded.Recording(rec.returncode, rec.stdout, rec.stderr, path, running.FREQUENCY)


def numbers(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return [int(n) for n in re.search(r"^NSpid:(.*)$", f.read(), re.M)[1].split()]


def from_outside(what, target, *frames):
    for how in (["-p", str(target.pid)], ["-a"]):
        nearly_all(check, f"{what}, outside, {how[0]}", capture(*how), target.pid, *frames)


def plain():
    """The same C library, in another root; gpucollect inside, too."""
    root = make_root("plain")
    with_libraries(root, os.path.join(folded.CASES, "chain"), "prog")
    sh(f"mount --rbind /sys {root}/sys")
    target = contained(root, "/bin/prog")
    check(not os.path.exists("/bin/prog") and numbers(target.pid)[1:] == [1],
          f"container: the case is what it claims to be: {numbers(target.pid)}")
    from_outside("container", target, *CHAIN)
    # Its own number there is 1, and there is nobody else but gpucollect.
    for how in (["-p", "1"], ["-a"]):
        rec = inside(target, root, *how)
        nearly_all(check, f"container, inside, {how[0]}", rec, 1, *CHAIN)
        strangers = {s.pid for s in rec.stacks if s.pid > 100}
        check(rec.status == 0 and not strangers, f"container, inside, {how[0]}: nobody else",
              f"{rec.status} {strangers} {rec.err}")
    running.end_all()
    return root


def users():
    """With a user namespace: root there is nobody here, and has no rights over the kernel."""
    root = make_root("users")
    with_libraries(root, os.path.join(folded.CASES, "chain"), "prog")
    if subprocess.run(["unshare", "-U", "true"], capture_output=True).returncode:
        print("no user namespaces here")
        return
    target = Target(*CONTAINER, "--user", root, "/bin/prog", comm="prog")
    from_outside("user namespace", target, *CHAIN)
    with_libraries(root, folded.GPUCOLLECT, "gpucollect")
    refused = subprocess.run(["nsenter", "-t", str(target.pid), "-U", "-m", "-p", "/bin/gpucollect",
                              "-p", "1", "-d", "1"], capture_output=True, text=True, cwd="/",
                             stdin=subprocess.DEVNULL, timeout=60)
    errors = re.findall(r"^gpucollect: error: .*$", refused.stderr, re.M)
    check(refused.returncode == folded.NO_PERMISSION and len(errors) == 1,
          f"user namespace, inside: refused with {refused.returncode}", refused.stderr)
    running.end_all()


def other_libraries():
    """musl; no C library at all; a copy of glibc in a place of its own; in roots that are gone."""
    source = os.path.join(os.environ["TOP"], "tests/cases/unwind/chain.c")
    root = make_root("static")
    with_libraries(root, os.path.join(folded.CASES, "chain.static"), "prog")
    from_outside("static", contained(root, "/bin/prog"), *CHAIN)

    root = make_root("moved")
    program = os.path.join(folded.CASES, "chain")
    os.makedirs(root + "/opt/libc")
    loader, libc = (re.search(pattern, sh(f"ldd {program}"))[1] for pattern in
                    (r"(/\S*ld-\S+) \(", r"=> (/\S*libc\.so\S*) \("))
    for path, name in ((program, "prog"), (loader, "ld.so"), (libc, "libc.so.6")):
        shutil.copy2(path, root + "/opt/libc/" + name)
    target = contained(root, "/opt/libc/ld.so", "--library-path", "/opt/libc", "/opt/libc/prog")
    from_outside("glibc elsewhere", target, *CHAIN)
    # Nothing but the mappings leads to the files any more.
    sh(f"rm -rf {root}/opt {root}/bin; umount -l {root}")
    from_outside("a root that is gone", target, *CHAIN)

    if MUSL:
        root = make_root("musl")
        sh(f"musl-gcc -O2 -g -fno-optimize-sibling-calls -o musl-chain '{source}'")
        with_libraries(root, os.path.join(folded.TMP, "musl-chain"), "prog")
        os.makedirs(root + "/lib")
        shutil.copy2("/lib/ld-musl-x86_64.so.1", root + "/lib/")
        # Its start-up code has no unwind information: one frame short of the root, and said so.
        target = contained(root, "/bin/prog")
        rec = capture("-p", str(target.pid))
        n = rec.total()
        good = rec.total(lambda s: folded.holds(s, *CHAIN) and
                         s.user[0] == "[no unwind info: ld-musl-x86_64.so.1]" and s.user[2] == "main")
        check(n >= running.FEW and good >= 0.99 * n, f"musl: {';'.join(CHAIN)} in {good} of {n}", rec.err)
    else:
        print("no musl here")
    running.end_all()


def nested():
    """A container in a container: each gpucollect shows the numbers of where it is."""
    outer = make_root("outer")
    for program in ("unshare", "chroot"):
        with_libraries(outer, shutil.which(program), program)
    inner = outer + "/inner"
    with_libraries(inner, os.path.join(folded.CASES, "chain"), "prog")
    sh(f"mount --rbind /sys {outer}/sys")
    target = Target(*CONTAINER, outer, "/bin/unshare", "-m", "-p", "-f", "/bin/chroot", "/inner",
                    "/bin/prog", comm="prog")
    seen = numbers(target.pid)
    check(len(seen) == 3 and seen[2] == 1, f"nested: the case is what it claims to be: {seen}")
    from_outside("nested", target, *CHAIN)
    middle = next(pid for pid in target.members() if numbers(pid)[1:] == [1])
    target.pid = middle
    for how in (["-p", str(seen[1])], ["-a"]):
        rec = inside(target, outer, *how)
        nearly_all(check, f"nested, from the middle, {how[0]}", rec, seen[1], *CHAIN)
    running.end_all()


def deep():
    """As many PID namespaces, one in the other, as few have."""
    levels = 12
    argv = ["unshare", "-p", "-f", "--mount-proc"] * levels
    chain = os.path.join(folded.CASES, "chain")
    target = Target(*argv, chain, comm="chain")
    seen = numbers(target.pid)
    check(len(seen) == levels + 1, f"deep: the case is what it claims to be: {seen}")
    rec = capture("-p", "1", within=["nsenter", "-t", str(target.pid), "-m", "-p"])
    nearly_all(check, f"{levels} PID namespaces deep", rec, 1, *CHAIN)
    running.end_all()


def moving():
    """Namespaces and root change during the capture."""
    root = make_root("abroad")
    shutil.copy2(os.path.join(folded.CASES, "libswap_b.so"), root + "/lib.so")
    rec = folded.record([os.path.join(folded.PROGRAMS, "cpu_moves"), root, "/lib.so", "swap_b_fn"],
                        frequency=running.FREQUENCY)
    said = dict(line.split() for line in rec.out.splitlines())
    check(rec.status == 0 and said.get("inside") == "1", f"moving: status {rec.status}: {said}", rec.err)
    for frames in (("main", "at_home", "spend"), ("main", "abroad", "swap_b_fn"),
                   ("main", "born_abroad", "spend")):
        mine = [s for s in rec.settled() if frames[1] in s.user]
        good = sum(s.weight for s in mine if folded.holds(s, *frames) and not folded.is_cut(s))
        n = sum(s.weight for s in mine)
        check(n >= running.FEW and good >= 0.99 * n, f"moving: {';'.join(frames)} in {good} of {n}")
        pids = {str(s.pid) for s in mine}
        check(len(pids) == 1 and (said["outside"] in pids) == (frames[1] == "born_abroad"),
              f"moving: {frames[1]} is of {pids}: {said}")
    lost = rec.total(lambda s: "swap_b_fn" not in s.user and "abroad" in s.user)
    check(lost <= running.FEW, f"moving: {lost} samples of the library without its name")


try:
    for case in (plain, users, other_libraries, nested, deep, moving):
        case()
finally:
    running.end_all()
sys.exit(check.status())
