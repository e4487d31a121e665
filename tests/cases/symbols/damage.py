#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""S-10: copies of an ELF program with damaged section headers or symbol tables. The program
headers stay as they are, so all copies still run. usage: damage.py IN OUTDIR"""
import os
import struct
import sys

src = bytearray(open(sys.argv[1], "rb").read())
out = sys.argv[2]
os.makedirs(out, exist_ok=True)
shoff, = struct.unpack_from("<Q", src, 0x28)
shentsize, shnum, shstrndx = struct.unpack_from("<HHH", src, 0x3A)


def header(i):
    return shoff + i * shentsize


def find(kind):
    return [i for i in range(shnum) if struct.unpack_from("<I", src, header(i) + 4)[0] == kind]


def save(name, change):
    data = bytearray(src)
    change(data)
    path = os.path.join(out, name)
    open(path, "wb").write(data)
    os.chmod(path, 0o755)
    print(name)


SYMTAB, STRTAB, DYNSYM = find(2)[0], find(3), find(11)[0]
symoff, symsize, symlink = (struct.unpack_from("<Q", src, header(SYMTAB) + 24)[0],
                            struct.unpack_from("<Q", src, header(SYMTAB) + 32)[0],
                            struct.unpack_from("<I", src, header(SYMTAB) + 40)[0])


def put(fmt, at, value):
    def change(data):
        struct.pack_into(fmt, data, at, value)
    return change


def all_symbol_names(data):
    for at in range(symoff, symoff + symsize, 24):
        struct.pack_into("<I", data, at, 0x7FFFFFF0)


def all_names_of_sections(data):
    for i in range(shnum):
        struct.pack_into("<I", data, header(i), 0xFFFFFF00)


save("table_behind_end", put("<Q", 0x28, len(src) + 4096))
save("table_wraps", put("<Q", 0x28, 0xFFFFFFFFFFFFFFC0))
save("too_many_headers", put("<H", 0x3C, 0xFEFF))
save("name_index_out_of_range", put("<H", 0x3E, 0x7000))
save("name_index_is_symtab", put("<H", 0x3E, SYMTAB))
save("symtab_size_bogus", put("<Q", header(SYMTAB) + 32, 0x7FFFFFFFFFFF0000))
save("symtab_offset_bogus", put("<Q", header(SYMTAB) + 24, 0xFFFFFFFFFFFFF000))
save("symtab_entsize_zero", put("<Q", header(SYMTAB) + 56, 0))
save("symtab_entsize_one", put("<Q", header(SYMTAB) + 56, 1))
save("symtab_links_itself", put("<I", header(SYMTAB) + 40, SYMTAB))
save("symtab_links_nowhere", put("<I", header(SYMTAB) + 40, 0xFFFF))
save("symbol_names_behind_end", all_symbol_names)
save("section_names_behind_end", all_names_of_sections)
save("string_table_empty", put("<Q", header(symlink) + 32, 0))
