/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unwinds a copied user stack by the same rules and the same step as the BPF programs, into the
 * same words (bpf/gpucollect.h), so that a stack has one form whoever walked it.
 */
#ifndef UNWIND_STACK_H
#define UNWIND_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/types.h>
#include "bpf/gpucollect.h"

struct unwind_store;
struct unwind_file;

struct unwind_stack_input {
	const __u64 *regs;	/* UNWIND_NR_REGS of them, DWARF numbers */
	__u64 pc;
	bool in_syscall;	/* pc is behind a syscall instruction: pc - 1 is looked up */
	/* A walk that goes on where another stopped: pc is a return address unless `exact`. */
	bool later;
	bool exact;
	bool full;		/* all regs hold; else only rsp, rbp and rbx, as far as not lost */
	bool lost_rbp;
	bool lost_rbx;
	bool guess;		/* the frame at hand was found by the frame pointer */
	__u64 start;		/* address of the first byte of the copy, usually rsp */
	const void *stack;
	size_t len;
	const __u64 *holes;	/* bit i: the copy's i-th RAW_CHUNK is missing; NULL: none is */
	const struct mapping *mappings;	/* executable ones, sorted by start, without overlap */
	size_t nr_mappings;
	/* The open file of an id, kept open by the callee until the walk ends; NULL: none. */
	struct unwind_file *(*file)(void *ctx, uint32_t id);
	/* NULL, or called where a frame's caller was found: it is word `word`, and lies in [low, high). */
	void (*frame)(void *ctx, size_t word, __u64 low, __u64 high);
	void *ctx;
};

/*
 * Fills words[0..n) leaf first and returns n >= 1; the last is always a FRAME_END word, which
 * says why the stack ends (END_UNREADABLE: memory outside the copy, such as another stack's;
 * END_TRUNCATED: the copy ended, or `max` words were not enough). max is at least 1, at most
 * GPUCOLLECT_MAX_FRAMES. Every word holds the address that was looked up: pc for the frame that
 * was hit and for one interrupted by a signal, else pc - 1.
 */
size_t unwind_stack__walk(struct unwind_store *store, const struct unwind_stack_input *in,
			  __u64 *words, size_t max);

#endif
