/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Slots of the procedure linkage table (x86-64 psABI, 5.2): each jumps through one word of the
 * global offset table, and the relocation of that word names the callee. The instructions of the
 * slot are decoded, so that the layouts of all linkers, with and without IBT, are the same thing.
 */
#ifndef SYMBOLS_PLT_H
#define SYMBOLS_PLT_H

#include "symbols/symbol_table.h"

struct plt;

/* From the section headers, which need not be kept. NULL: no slots (errno 0), or ENOMEM. */
struct plt *plt__new(const struct elf_image *image, const Elf64_Shdr *sections, size_t nr,
		     const struct elf_strings *section_names);
void plt__free(struct plt *p);		/* NULL is fine */

struct plt_target {
	uint64_t slot, slot_size;
	uint64_t symbol;	/* index of the dynamic symbol; 0: none */
	uint64_t resolver;	/* address of the function that chooses the callee, if no symbol */
};

/* 0; -ENOENT: no slot there, or no relocation for it; else -errno. */
int plt__find(struct plt *p, const struct elf_image *image, uint64_t address,
	      struct plt_target *target);

#endif
