#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 240
"""Names come from the file that is mapped, whatever has become of its name and whatever else has its number."""
import os
import sys

sys.path.insert(0, os.path.join(os.environ.get("TOP", "."), "tests/tools"))
import folded
import running
from running import Target, capture, copy, nearly_all, sh

running.own_mounts()
check = folded.Checks()
CHAIN = ("main", "chain_a", "chain_b", "chain_c")
STEADY = ("main", "steady_work")


def both(what, chain, steady):
    """Two processes, each with the names of its own file: attached to, and by looking at all."""
    for how in (["-p", f"{chain.pid},{steady.pid}"], ["-a"]):
        rec = capture(*how)
        nearly_all(check, f"{what}, {how[0]}", rec, chain.pid, *CHAIN)
        nearly_all(check, f"{what}, {how[0]}", rec, steady.pid, *STEADY)
    running.end_all()


def deleted_and_replaced():
    path = copy("chain", "replaced")
    chain = Target(path)
    os.remove(path)
    copy("steady", "replaced")
    both("another file in its place", chain, Target(path))

    path = copy("chain", "overwritten")
    chain = Target(path)
    copy("steady", "new")
    os.rename(os.path.join(folded.TMP, "new"), path)
    both("renamed over it", chain, Target(path))

    # What the kernel says of a deleted file is the name of another one.
    path = copy("chain", "gone")
    chain = Target(path)
    os.remove(path)
    both("a file called (deleted)", chain, Target(copy("steady", "gone (deleted)")))


def odd_names():
    """S-02, by attaching: the module, too, has its real name, as far as a line of text can show it."""
    for name, shown in (("two\nlines", "two?lines"), ("semi;colon", "semi:colon"),
                        ("ends in 12", "ends in 12"), ("back\\012slash", "back\\012slash"),
                        ("real (deleted)", "real (deleted)")):
        target = Target(copy("chain.static.stripped", name))
        module(name, target, shown)
        target = Target(os.path.join(folded.TMP, name))
        os.remove(os.path.join(folded.TMP, name))
        module(f"{name}, deleted", target, shown)


def module(what, target, shown):
    rec = capture("-p", str(target.pid))
    mine = [s for s in rec.stacks if s.pid == target.pid]
    n = sum(s.weight for s in mine)
    check(n >= running.FEW and not any(folded.is_cut(s) for s in mine), f"{what!r}: {n} whole stacks",
          rec.err)
    modules = {f.rsplit("+0x", 1)[0] for s in mine for f in s.user if "+0x" in f}
    check(modules == {shown}, f"{what!r}: its frames are of {modules}")
    running.end_all()


def in_memory():
    """A program that lies in a memfd alone."""
    run = ("import os,sys; fd = os.memfd_create('prog'); os.write(fd, open(sys.argv[1],'rb').read());"
           "os.execve(fd, ['x'], os.environ)")
    chain = Target(sys.executable, "-c", run, os.path.join(folded.CASES, "chain"))
    steady = Target(sys.executable, "-c", run, os.path.join(folded.CASES, "steady"))
    both("two memfds of one name", chain, steady)


def huge_text():
    """A program that has moved its code: it still is the file's."""
    program = os.path.join(folded.PROGRAMS, "cpu_hugetext")
    for how in ("file", "whole", "part", "memfd", "hugetlb"):
        if how == "hugetlb" and not running.can("echo 8 >/proc/sys/vm/nr_hugepages && "
                                                "[ $(cat /proc/sys/vm/nr_hugepages) -ge 4 ]"):
            print("no huge pages here")
            continue
        target = Target(program, how)
        with open(f"/proc/{target.pid}/maps", encoding="utf-8") as f:
            code = [line for line in f if " r-x" in line and "cpu_hugetext" not in line and
                    ".so" not in line and "[" not in line]
        check(bool(code) == (how != "file"), f"text {how}: the case is what it claims to be: {code}")
        nearly_all(check, f"text {how}", capture("-p", str(target.pid)), target.pid, "main", "outer",
                   "inner")
        running.end_all()
    running.can("echo 0 >/proc/sys/vm/nr_hugepages")


def under_other_mounts():
    path = copy("chain", "hidden/prog")
    chain = Target(path)
    copy("steady", "above/prog")
    sh("mount --bind above hidden")
    both("mounted over", chain, Target(path))
    sh("umount hidden")

    sh("mkdir -p lazy && mount -t tmpfs none lazy")
    chain = Target(copy("chain", "lazy/prog"))
    sh("umount -l lazy")
    both("unmounted lazily", chain, Target(copy("steady", "lazy/prog")))


def layers():
    """Two layers of an overlay, whose files have one number."""
    if not running.can("mkdir -p t && mount -t tmpfs none t && mkdir t/l t/u t/w t/o && "
                       "mount -t overlay none -o lowerdir=t/l,upperdir=t/u,workdir=t/w t/o && "
                       "umount t/o && umount t"):
        print("no overlays here")
        return
    sh("mkdir one two top merged; for d in one two top; do mount -t tmpfs none $d; done;"
       "mkdir top/u top/w")
    copy("chain", "one/chain")
    copy("steady", "two/steady")
    sh("mount -t overlay none -o lowerdir=one:two,upperdir=top/u,workdir=top/w merged")
    numbers = sh("stat -c %i one/chain two/steady").split()
    check(numbers[0] == numbers[1], f"layers: the case is what it claims to be: {numbers}")
    both("layers of an overlay", Target("merged/chain"), Target("merged/steady"))
    # Written to while it runs: the copy above is another file.
    chain = Target("merged/chain")
    sh("cp merged/steady merged/x && mv merged/x merged/chain")
    both("copied up", chain, Target("merged/chain"))


def subvolumes():
    """A snapshot has other files under the same numbers."""
    if not running.can("truncate -s 200M image && mkfs.btrfs -q image && mkdir btrfs && "
                       "mount -o loop image btrfs"):
        print("no btrfs, or no tools for it, here")
        return
    sh("btrfs subvolume create btrfs/one")
    copy("chain", "btrfs/one/prog")
    sh("sync -f btrfs/one/prog; btrfs subvolume snapshot btrfs/one btrfs/two;"
       f"cat {folded.CASES}/steady >btrfs/two/prog; sync -f btrfs/two/prog")
    numbers = sh("stat -c %i btrfs/one/prog btrfs/two/prog").split()
    check(numbers[0] == numbers[1], f"subvolumes: the case is what it claims to be: {numbers}")
    both("subvolumes of a btrfs", Target("btrfs/one/prog"), Target("btrfs/two/prog"))
    sh("umount btrfs && rm image")


try:
    for case in (deleted_and_replaced, odd_names, in_memory, huge_text, under_other_mounts, layers, subvolumes):
        case()
finally:
    running.end_all()
sys.exit(check.status())
