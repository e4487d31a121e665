/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One symbol table of an ELF file (gABI, "Symbol Table"): where it lies, and an index of the code
 * in it, sorted by address, 16 bytes an entry. Names stay in the file.
 */
#ifndef SYMBOLS_SYMBOL_TABLE_H
#define SYMBOLS_SYMBOL_TABLE_H

#include "symbols/elf_image.h"
#include "symbols/file.h"

struct table_entry;

struct symbol_table {
	/* filled by the owner before the first look-up */
	uint64_t offset;		/* in the file */
	uint64_t count;			/* of symbols; 0: there is no such table */
	struct elf_strings strings;
	bool skip_untyped;		/* what has no type isn't code */
	/* the index */
	bool indexed;
	struct table_entry *entries;
	size_t nr;
	uint64_t *ends[2];		/* by part and block of entries: where the last ends */
};

/* Where code can be: executable sections, sorted by nothing. */
struct elf_ranges {
	struct elf_range *ranges;
	size_t nr;
};

enum table_part {
	TABLE_SIZED = 0,		/* functions with a size */
	TABLE_SIZED_LABELS = 1,		/* a size, but no type */
	TABLE_LABELS = 2,		/* no size: reach to the next symbol of any kind */
};

/* Reads the table and sorts it; once. 0, -EIO, -ENOMEM. */
int symbol_table__index(struct symbol_table *t, const struct elf_image *image,
			const struct elf_ranges *code);
void symbol_table__free(struct symbol_table *t);

/*
 * The symbol of that part that covers the address. Among several: the innermost; at one start:
 * global before weak before local, then (labels) functions before others, then by name__better.
 * out->name is in `name`. 0; -ENOENT: none; -ENXIO: one, but it has no name; else -errno.
 */
int symbol_table__find(struct symbol_table *t, const struct elf_image *image,
		       const struct elf_ranges *code, enum table_part part, uint64_t address,
		       struct elf_name *name, struct symbol *out);

/* Whether a label at `start` can't reach `address`: symbols of this (indexed) table lie between. */
bool symbol_table__separates(const struct symbol_table *t, uint64_t start, uint64_t address);

/* The name of symbol number `index`: as elf_image__string. */
int symbol_table__name(const struct symbol_table *t, const struct elf_image *image, uint64_t index,
		       struct elf_name *name);

#endif
