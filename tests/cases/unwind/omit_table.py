#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""U-04: copy an ELF file and mark the search table of its .eh_frame_hdr as left out.
usage: omit_table.py IN OUT"""
import struct
import sys

data = bytearray(open(sys.argv[1], "rb").read())
phoff, = struct.unpack_from("<Q", data, 0x20)
phentsize, phnum = struct.unpack_from("<HH", data, 0x36)
for i in range(phnum):
    at = phoff + i * phentsize
    kind, = struct.unpack_from("<I", data, at)
    if kind == 0x6474E550:                      # PT_GNU_EH_FRAME
        off, = struct.unpack_from("<Q", data, at + 8)
        data[off + 2] = 0xFF                    # fde_count_enc: omitted
        data[off + 3] = 0xFF                    # table_enc: omitted
        break
else:
    sys.exit("no PT_GNU_EH_FRAME")
open(sys.argv[2], "wb").write(data)
