/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds a symbol or a section of an ELF file by its name: a few reads where the dynamic symbols have a
 * hash table, and no list of all of them. Nothing in the file is believed, as in elf_view.h.
 * Formats: System V gABI chapters 4 and 5; the GNU hash table is glibc's elf/dl-lookup.c.
 */
#ifndef UNWIND_ELF_SYMBOLS_H
#define UNWIND_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_view;
struct elf_symbols;

struct elf_symbol {
	uint64_t vaddr;
	uint64_t size;
};

/* Of a file that may be any; the view must outlive it. 0, -ENOMEM or what pread gave. */
int elf_symbols__new(struct elf_symbols **symbols, struct elf_view *view);
void elf_symbols__free(struct elf_symbols *symbols);	/* NULL is fine */

bool elf_symbols__program(const struct elf_symbols *symbols);	/* it names a dynamic linker, or isn't PIC */

/* Among the defined dynamic symbols. 0, -ENOENT or what pread gave. */
int elf_symbols__dynamic(struct elf_symbols *symbols, const char *name, struct elf_symbol *out);

/* Among all of .symtab, which is read as a whole: only if its names have `limit` bytes at most, it twice. */
int elf_symbols__static(struct elf_symbols *symbols, const char *name, uint64_t limit,
			struct elf_symbol *out);

int elf_symbols__section(struct elf_symbols *symbols, const char *name, struct elf_symbol *out);

/* The library's name for itself, cut to `len`; "" where it has none. */
void elf_symbols__soname(struct elf_symbols *symbols, char *buf, size_t len);

/* The n-th writable segment as far as the file backs it. 0 or -ENOENT. */
int elf_symbols__writable(struct elf_symbols *symbols, unsigned int n, struct elf_symbol *out);

#endif
