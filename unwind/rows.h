/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rows on demand: compiles the unwind information of one 4 KiB page of a file into rows over
 * interned rules, in arrays that the BPF programs read. One store serves all files and processes.
 * Not thread-safe: one thread owns the store.
 */
#ifndef UNWIND_ROWS_H
#define UNWIND_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/types.h>
#include "bpf/unwind_step.h"
#include "bpf/gpucollect.h"
#include "unwind/cfi.h"

struct unwind_store;
struct unwind_file;

/*
 * Storage and the way to the readers; all of it stays the caller's. Arrays are plain: element i
 * at [i], so a BPF array map's elements must be a multiple of 8 bytes (struct unwind_rule is one;
 * struct unwind_row is half of one, so a map of rows holds pairs).
 */
struct unwind_store_config {
	struct unwind_rule *rules;
	struct unwind_row *rows;
	uint32_t max_rules;	/* 2 to 65535; rule 0 is always "no unwind information" */
	uint32_t max_rows;	/* at least GPUCOLLECT_MAX_PAGE_ROWS */
	uint32_t max_pages;

	/*
	 * Makes a page known to the readers, after its rows and rules are in the arrays. May be
	 * NULL. An error is returned by unwind_store__page (the page stays unknown).
	 */
	int (*publish)(void *ctx, const struct page_key *key, const struct page_rows *rows);
	/*
	 * The store is full: take all pages from the readers and return when none of them uses
	 * rows any more (for BPF: membarrier(MEMBARRIER_CMD_GLOBAL) after the deletion), since
	 * the arrays are overwritten next. May be NULL.
	 */
	void (*flush)(void *ctx);
	void *ctx;
};

struct unwind_store_stats {
	uint64_t pages;		/* compiled, in all */
	uint64_t empty_pages;	/* of these: without any rule */
	uint64_t failed_pages;	/* of these: the file could not be read, so "no row" was stored */
	uint64_t rows;		/* written, after merging, in all */
	uint64_t flushes;
	uint32_t rules_now;
	uint32_t rows_now;
	uint32_t pages_now;
	uint64_t plt_pages;	/* pages with synthetic rules for PLT slots */
	uint64_t sigreturn_pages;	/* pages with a signal trampoline found by its code */
	struct cfi_stats cfi;
};

/* 0, -EINVAL (config) or -ENOMEM. */
int unwind_store__new(struct unwind_store **store, const struct unwind_store_config *config);
void unwind_store__free(struct unwind_store *store);	/* NULL is fine */

/*
 * The rows of page `page` (offset in the file >> GPUCOLLECT_PAGE_SHIFT) of the file known as
 * `id`; compiled and published if they aren't there yet. `file` NULL: a file that can't be opened,
 * all its pages are "no row". 0 (then *out is valid until the next call), -ENOMEM or what publish
 * returned; unreadable and damaged files are no error but have "no row" (counted).
 */
int unwind_store__page(struct unwind_store *store, uint32_t id, struct unwind_file *file,
		       uint64_t page, struct page_rows *out);

/* The rule in force at an offset in the file; the page is compiled if need be. Errors as above. */
int unwind_store__rule(struct unwind_store *store, uint32_t id, struct unwind_file *file,
		       uint64_t offset, struct unwind_rule *rule);

void unwind_store__stats(const struct unwind_store *store, struct unwind_store_stats *stats);

#endif
