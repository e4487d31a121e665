/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Compiles one 4 KiB page of a file: for each byte of code the rule in force. A byte at a time,
 * because that makes any overlap of entries, segments and synthetic rules plain, and because 4096
 * of them cost a few microseconds.
 */
#ifndef UNWIND_PAGE_H
#define UNWIND_PAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/types.h>
#include "bpf/unwind_step.h"
#include "bpf/gpucollect.h"
#include "unwind/cfi.h"

#define PAGE_BYTES (1u << GPUCOLLECT_PAGE_SHIFT)
#define PAGE_UNCOVERED 0xffff	/* never the number of a rule */
/* Between functions there is padding, which needs no row of its own. */
#define PAGE_PADDING 15

struct rule_set;
struct unwind_file;
struct elf_view;

struct page {
	struct rule_set *rules;
	struct cfi_stats *cfi;
	bool keep;			/* don't paint over what is covered */
	bool plt, sigreturn;		/* synthetic rules were needed */
	uint64_t vaddr;			/* of byte 0, in the segment at hand */
	uint16_t rule[PAGE_BYTES];
};

/*
 * Fills page->rule for page `nr` of the file; the caller sets rules and cfi. 0, -ENOSPC (rules are
 * full), -ENOMEM, or what pread gave.
 */
int page__compile(struct page *page, struct unwind_file *file, uint64_t nr);

/* Writes the rows of a compiled page, at most PAGE_BYTES; returns how many: at least 1. */
uint32_t page__rows(const struct page *page, struct unwind_row *rows);

/* Sets the rule of bytes [from, to) of the page, clipped to it. 0 or as rule_set__intern. */
int page__paint(struct page *page, int64_t from, int64_t to, const struct unwind_rule *rule);

/* Whether more than padding is left uncovered in bytes [from, to). */
bool page__has_gap(const struct page *page, uint32_t from, uint32_t to);

/*
 * Rules for code without unwind information that its bytes give away, in bytes [from, to) of the
 * page, which belong to one segment and start at `offset` of the file: PLT slots of linkers that
 * write no unwind information for them, signal trampolines, and the program's entry.
 */
int page__recognise(struct page *page, struct elf_view *view, uint64_t offset, uint32_t from,
		    uint32_t to);

#endif
