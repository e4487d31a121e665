#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A file system with one file, in a process that can be told not to answer.

usage: fuse_file.py FOLDER FILE      FOLDER/prog is then FILE; says "mounted" on stdout
SIGUSR1: answers nothing any more (but takes what it is asked); SIGUSR2: answers all of it.
The kernel's protocol: linux/fuse.h, version 7.31.
"""
import ctypes
import os
import signal
import stat
import struct
import sys

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH = 1, 2, 3, 14, 15, 17, 18, 25
INIT, OPENDIR, RELEASEDIR, ACCESS, INTERRUPT, BATCH_FORGET, STATX = 26, 27, 29, 34, 36, 42, 52
ENOENT, ENOSYS = 2, 38
libc = ctypes.CDLL(None, use_errno=True)


class Server:
    def __init__(self, folder, path):
        with open(path, "rb") as f:
            self.data = f.read()
        self.quiet = False
        self.held = []
        self.fd = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        if libc.mount(b"fuse_file", os.fsencode(folder), b"fuse", 0, options):
            sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")

    def attr(self, node):
        mode = stat.S_IFDIR | 0o755 if node == 1 else stat.S_IFREG | 0o755
        size = 0 if node == 1 else len(self.data)
        return struct.pack("<QQQQQQIIIIIIIIII", node, size, (size + 511) // 512, 0, 0, 0, 0, 0, 0,
                           mode, 1, 0, 0, 0, 4096, 0)

    def answer(self, op, node, body):
        if op == INIT:
            return 0, struct.pack("<IIIIHHIIHHIIII", 7, 31, 65536, 0, 12, 10, 65536, 1, 16, 0, 0, 0, 0,
                                  0) + b"\0" * 16
        if op == LOOKUP:
            if body.rstrip(b"\0") != b"prog":
                return -ENOENT, b""
            return 0, struct.pack("<QQQQII", 2, 0, 0, 0, 0, 0) + self.attr(2)
        if op == GETATTR:
            return 0, struct.pack("<QII", 0, 0, 0) + self.attr(node)
        if op in (OPEN, OPENDIR):
            return 0, struct.pack("<QII", 1, 0, 0)
        if op == READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            return 0, self.data[offset:offset + size]
        if op in (RELEASE, RELEASEDIR, FLUSH, ACCESS):
            return 0, b""
        return -ENOSYS, b""

    def reply(self, request):
        _, op, unique, node = struct.unpack_from("<IIQQ", request)
        if op in (FORGET, BATCH_FORGET, INTERRUPT):
            return
        error, body = self.answer(op, node, request[40:])
        try:
            os.write(self.fd, struct.pack("<IiQ", 16 + len(body), error, unique) + body)
        except OSError:
            pass	# who asked is gone

    def go_on(self):
        self.quiet = False
        held, self.held = self.held, []
        for request in held:
            self.reply(request)

    def serve(self):
        while True:
            try:
                request = os.read(self.fd, 1 << 18)
            except OSError:
                return	# unmounted
            if self.quiet:
                self.held.append(request)
            else:
                self.reply(request)


def main():
    server = Server(sys.argv[1], sys.argv[2])
    signal.signal(signal.SIGUSR1, lambda *_: setattr(server, "quiet", True))
    signal.signal(signal.SIGUSR2, lambda *_: server.go_on())
    print("mounted", flush=True)
    server.serve()


if __name__ == "__main__":
    main()
