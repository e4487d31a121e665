# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Looks from outside at what a guest or a probe changed in a process: slots and code."""
import os
import re
import struct
import subprocess

SWAPPED = 151	# slots that the library swaps in the stand-in driver


def mappings(pid, path):
    """(start, end, offset, protection) of the file's mappings in the process."""
    found = []
    with open(f"/proc/{pid}/maps") as f:
        for line in f:
            m = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+) ([0-9a-f]+) \S+ \d+ +(.*)$", line)
            if m and m[5] == path:
                found.append((int(m[1], 16), int(m[2], 16), int(m[4], 16), m[3]))
    return found


class Driver:
    """A libcuda.so.1 whose entries leave through slots: where these are, by the file alone."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as f:
            self.bytes = f.read()
        shoff, = struct.unpack_from("<Q", self.bytes, 32)
        phnum, = struct.unpack_from("<H", self.bytes, 56)
        assert shoff and phnum
        self.loads = []
        for i in range(phnum):
            kind, flags, off, vaddr, _, filesz = struct.unpack_from("<IIQQQQ", self.bytes,
                                                                    64 + 56 * i)
            if kind == 1:
                self.loads.append((vaddr, off, filesz, flags))
        self.slots = dict(self.find_slots())
        assert len(self.slots) > 50, f"{path}: {len(self.slots)} slots"

    def offset(self, vaddr, executable):
        for start, off, size, flags in self.loads:
            if start <= vaddr < start + size and bool(flags & 1) == executable:
                return vaddr - start + off
        return None

    def find_slots(self):
        """Entry -> address of its slot: where its first call or jump through memory leads."""
        out = subprocess.run(["nm", "-D", "-S", "--defined-only", self.path], check=True,
                             capture_output=True, text=True).stdout
        for line in out.splitlines():
            at, size, kind, name = line.split()
            at, size = int(at, 16), int(size, 16)
            if kind != "T" or not name.startswith("cu"):
                continue
            start = self.offset(at, True)
            code = self.bytes[start:start + size]
            for m in re.finditer(rb"\xff[\x15\x25]", code):
                to = at + m.end() + 4 + struct.unpack_from("<i", code, m.end())[0]
                if self.offset(to, False) is not None:
                    yield name, to
                    break

    def base(self, pid):
        first = min(mappings(pid, self.path))
        vaddr = min(start - off for start, off, _, _ in self.loads if off == 0)
        return first[0] - first[2] - vaddr

    def away(self, pid):
        """The entries whose slot leads out of the driver; None: the process has none."""
        ranges = mappings(pid, self.path)
        if not ranges:
            return None
        base, low, high = self.base(pid), min(ranges)[0], max(r[1] for r in ranges)
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as f:
            value = {}
            for name, at in self.slots.items():
                value[name], = struct.unpack("<Q", os.pread(f.fileno(), 8, base + at))
        return sorted(name for name, v in value.items() if not low <= v < high)


def changed_code(pid, path):
    """Offsets at which the process's code is not that of the file, first few."""
    different = []
    with open(path, "rb") as f, open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        for start, end, offset, protection in mappings(pid, path):
            if "x" not in protection:
                continue
            f.seek(offset)
            want = f.read(end - start)
            have = os.pread(mem.fileno(), len(want), start)
            if have != want:
                different += [offset + i for i in range(len(want)) if have[i:i + 1] != want[i:i + 1]]
    return different[:8]
