#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs a program in a container: another root, and mount, PID, UTS, IPC and perhaps user namespaces.

usage: container.py [--user] ROOT PROGRAM [ARGUMENT…]
ROOT is a folder; /proc is mounted there, and the rest is its own. Ends as the program does.
"""
import ctypes
import os
import sys

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID = 0x10000000, 0x20000000
MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 4096, 16384, 1 << 18, 2
SYS_PIVOT_ROOT = 155		# x86-64
libc = ctypes.CDLL(None, use_errno=True)


def do(what, result):
    if result:
        sys.exit(f"container: {what}: {os.strerror(ctypes.get_errno())}")


def mount(source, target, kind, flags):
    do(f"mount {target}", libc.mount(source.encode(), target.encode(), kind, flags, None))


def map_ids(uid, gid):
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as f:
            f.write(text)


def enter(root):
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount(root, root, None, MS_BIND | MS_REC)
    os.makedirs(os.path.join(root, "proc"), exist_ok=True)
    mount("proc", os.path.join(root, "proc"), b"proc", 0)
    os.chdir(root)
    do("pivot_root", libc.syscall(SYS_PIVOT_ROOT, b".", b"."))
    do("umount", libc.umount2(b".", MNT_DETACH))
    os.chdir("/")


def main():
    args = sys.argv[1:]
    user = args[:1] == ["--user"]
    root, *program = args[user:]
    uid, gid = os.geteuid(), os.getegid()
    do("unshare", libc.unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID |
                               (CLONE_NEWUSER if user else 0)))
    if user:
        map_ids(uid, gid)
    child = os.fork()
    if not child:
        enter(os.path.abspath(root))
        os.execv(program[0], program)
    _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status) & 0xff)


if __name__ == "__main__":
    main()
