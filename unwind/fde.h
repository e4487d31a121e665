/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the frame description entries (FDEs) that cover a range of code: through the sorted table
 * of .eh_frame_hdr where there is a usable one, else through an index made by one pass over
 * .eh_frame, or over .debug_frame where there is no .eh_frame.
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
	uint64_t offset;	/* in the file */
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra_reg;
	uint8_t fde_encoding;	/* DW_EH_PE_*, of the FDE's addresses */
	bool augmented;		/* FDEs have an augmentation length */
	bool signal;		/* "S": a signal frame */
	bool broken;		/* version or augmentation that can't be read: no rule from it */
	const uint8_t *insns;	/* initial instructions; owned by the index, see fde_index__next */
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

/* How entries are found; for tests and the log. */
enum fde_source {
	FDE_NONE = 0,		/* no unwind information */
	FDE_TABLE = 1,		/* .eh_frame_hdr */
	FDE_SCAN = 2,		/* index over .eh_frame */
	FDE_DEBUG = 3,		/* index over .debug_frame */
};

/* 0 or -ENOMEM. The view must outlive the index. */
int fde_index__new(struct fde_index **index, struct elf_view *view);
void fde_index__free(struct fde_index *index);	/* NULL is fine */
enum fde_source fde_index__source(const struct fde_index *index);
size_t fde_index__memory(const struct fde_index *index);

/* Called for one entry; what it points to is valid until it returns. Not 0: stop. */
typedef int (*fde_fn)(void *ctx, const struct fde *fde);

/*
 * Calls `fn` for every entry that covers some of [lo, hi) (of at most 4 KiB), by ascending start;
 * entries that can't be parsed are left out. Returns 0, what fn returned, -EAGAIN if the table
 * turned out to lie in the middle (an index is used from now on: start over), -ENOMEM or what
 * pread gave.
 */
int fde_index__each(struct fde_index *index, uint64_t lo, uint64_t hi, fde_fn fn, void *ctx);

/*
 * Told of code that no entry covers. Where a table says so, checks once for each file whether it
 * is sorted and complete. Returns 0 if there really is none, -EAGAIN if entries must be looked
 * up again, -ENOMEM or what pread gave.
 */
int fde_index__doubt(struct fde_index *index);

#endif
