/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the frame description entries (FDEs) that cover a range of code: through the sorted table
 * of .eh_frame_hdr where there is a usable one, else through an index made by one pass over the
 * section.
 * Formats: LSB Core 10.6 (.eh_frame, .eh_frame_hdr), DWARF 5 section 6.4 (.debug_frame).
 */
#ifndef UNWIND_FDE_H
#define UNWIND_FDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_view;
struct fde_index;

/* What the entries of an FDE have in common, as parsed from its CIE. */
struct cie {
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra_reg;
	uint8_t fde_encoding;	/* EH_PE_*, of the FDE's addresses */
	bool augmented;		/* FDEs have an augmentation length */
	bool signal;		/* "S": a signal frame */
	bool broken;		/* can be walked past, but no rule can be had from it */
	const uint8_t *insns;	/* initial instructions */
	size_t insns_len;
	uint64_t insns_vaddr;
};

struct fde {
	uint64_t start;		/* vaddr of the code, [start, end), not empty */
	uint64_t end;
	const struct cie *cie;
	const uint8_t *insns;
	size_t insns_len;
	uint64_t insns_vaddr;
};

enum fde_section {
	FDE_EH_FRAME = 0,
	FDE_DEBUG_FRAME = 1,
};

/* How entries are found. */
enum fde_source {
	FDE_NONE = 0,		/* no such section */
	FDE_TABLE = 1,		/* .eh_frame_hdr */
	FDE_SCAN = 2,		/* index over the section; made when first needed */
};

/* 0 or -ENOMEM. The view must outlive the index. */
int fde_index__new(struct fde_index **index, struct elf_view *view, enum fde_section section);
void fde_index__free(struct fde_index *index);	/* NULL is fine */
enum fde_source fde_index__source(const struct fde_index *index);
size_t fde_index__memory(const struct fde_index *index);

/* Called for one entry; what it points to is valid until it returns. Not 0: stop. */
typedef int (*fde_fn)(void *ctx, const struct fde *fde);

/*
 * Calls `fn` for the entries that cover some of [lo, hi) (of 4 KiB at most), by ascending start;
 * entries that can't be parsed are left out, and so are those past a bound on work that no honest
 * file comes near. Returns 0, what fn returned, -EAGAIN if the table turned out to lie (an index is
 * used from now on: start over), -ENOMEM or what pread gave.
 */
int fde_index__each(struct fde_index *index, uint64_t lo, uint64_t hi, fde_fn fn, void *ctx);

/*
 * To be told of code that no entry covers: checks, once for each file, whether the table that
 * says so is sorted and, where that is cheap, complete. Returns 0 (believed), -EAGAIN (it lied:
 * look again), -ENOMEM or what pread gave.
 */
int fde_index__doubt(struct fde_index *index);

#endif
