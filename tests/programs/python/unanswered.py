# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A code object whose table lies in memory that is there only when somebody answers, and nobody does.

Prints "ready", or "no userfaultfd" where there is none; ends with its input. CPython 3.11 to 3.13: co_linetable is 136 bytes into a code object.
"""
import ctypes
import fcntl
import struct
import sys
import time

SYS_USERFAULTFD, UFFDIO_API, UFFDIO_REGISTER, SIZE, TABLE = 323, 0xc018aa3f, 0xc020aa00, 1 << 20, 136
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


def spin():
    end = time.process_time() + 3
    while time.process_time() < end:
        pass
    return "right"


fd = libc.syscall(SYS_USERFAULTFD, 0)
if fd < 0:
    print("no userfaultfd", flush=True)
    sys.exit()
fcntl.ioctl(fd, UFFDIO_API, bytearray(struct.pack("QQQ", 0xaa, 0, 0)))
memory = libc.mmap(None, SIZE, 3, 0x22, -1, 0)
fcntl.ioctl(fd, UFFDIO_REGISTER, bytearray(struct.pack("QQQQ", memory, SIZE, 1, 0)))
table = ctypes.c_uint64.from_address(id(spin.__code__) + TABLE)
before = table.value
table.value = memory + 64
print("ready", flush=True)
result = spin()
sys.stdin.read()
table.value = before
print(result)
