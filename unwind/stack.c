// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>
#include <linux/types.h>

struct copy;
static int copy__read(struct copy *copy, void *dst, __u64 size, __u64 addr);
#define UNWIND_READ(ctx, dst, size, addr) copy__read(ctx, dst, size, addr)
#include "bpf/unwind_step.h"

#include "unwind/rows.h"
#include "unwind/stack.h"

struct copy {
	const char *bytes;
	__u64 start;
	__u64 len;
	__u64 failed;		/* address of the last read that it could not serve */
	const __u64 *holes;
};

struct walk {
	struct unwind_store *store;
	const struct unwind_stack_input *in;
	struct copy copy;
	struct unwind_regs regs;
	const struct mapping *map;	/* of the frame at hand */
	bool exact;			/* pc itself is looked up, not the byte before */
	bool guess;			/* the frame at hand was guessed */
};

static bool copy__has_hole(const struct copy *copy, __u64 at, __u64 size)
{
	for (__u64 i = at / RAW_CHUNK; copy->holes && i * RAW_CHUNK < at + size; i++)
		if (copy->holes[i / 64] >> (i % 64) & 1)
			return true;
	return false;
}

static int copy__read(struct copy *copy, void *dst, __u64 size, __u64 addr)
{
	__u64 at = addr - copy->start;

	if (addr < copy->start || at > copy->len || size > copy->len - at ||
	    copy__has_hole(copy, at, size)) {
		copy->failed = addr;
		return -1;
	}
	memcpy(dst, copy->bytes + at, size);
	return 0;
}

static const struct mapping *walk__mapping(const struct walk *w, __u64 pc)
{
	const struct mapping *maps = w->in->mappings;
	size_t lo = 0, hi = w->in->nr_mappings;

	if (w->map && pc >= w->map->start && pc < w->map->end)
		return w->map;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (pc < maps[mid].start)
			hi = mid;
		else if (pc >= maps[mid].end)
			lo = mid + 1;
		else
			return &maps[mid];
	}
	return NULL;
}

static __u64 walk__word(const struct walk *w, __u64 pc)
{
	if (w->map->kind == MAPPING_FILE)
		return FRAME_MAKE_FILE(w->guess ? FRAME_FILE_GUESS : FRAME_FILE, w->map->file,
				       (pc - w->map->start + w->map->offset) &
				       ((1ull << FRAME_OFFSET_BITS) - 1));
	return FRAME_MAKE_ADDRESS(w->guess ? FRAME_ANON_GUESS : FRAME_ANON, pc);
}

static struct unwind_rule walk__rule(const struct walk *w, __u64 pc)
{
	struct unwind_rule rule = { 0 };
	__u64 offset = pc - w->map->start + w->map->offset;

	if (w->map->kind == MAPPING_TRAMPOLINE)
		unwind__trampoline(pc - w->map->start, &rule);
	else if (w->map->kind == MAPPING_FILE &&
	    unwind_store__rule(w->store, w->map->file, w->in->file(w->in->ctx, w->map->file),
			       offset, &rule))
		rule = (struct unwind_rule){ 0 };
	return rule;
}

/*
 * Memory that isn't in the copy: above it, with the stack pointer still in it, the copy was too
 * short; else the stack goes on elsewhere.
 */
static __u64 walk__unreadable(const struct walk *w)
{
	const struct copy *copy = &w->copy;
	__u64 sp = w->regs.r[UNWIND_RSP];

	if (copy->len && sp >= copy->start && sp - copy->start <= copy->len &&
	    copy->failed > sp)
		return END_TRUNCATED;
	return END_UNREADABLE;
}

static __u64 walk__end(const struct walk *w, __u64 why)
{
	__u32 file = 0;

	if (w->map && (why == END_NO_INFO || why == END_NO_RULE))
		file = w->map->file;
	return FRAME_MAKE_END(why, file);
}

static __u64 walk__failed(const struct walk *w, int result)
{
	switch (result) {
	case UNWIND_END:
		return walk__end(w, END_ROOT);
	case UNWIND_NO_RULE:
		return walk__end(w, END_NO_RULE);
	case UNWIND_UNREADABLE:
		return walk__end(w, walk__unreadable(w));
	case UNWIND_NO_PROGRESS:
		return walk__end(w, END_NO_PROGRESS);
	default:
		return walk__end(w, w->map->kind == MAPPING_FILE ? END_NO_INFO : END_ANON);
	}
}

/* To the caller of the frame at hand; 0, or the word that ends the stack. */
static __u64 walk__step(struct walk *w, __u64 pc)
{
	struct unwind_rule rule = walk__rule(w, pc);
	int result = unwind__step(&rule, &w->regs, &w->copy);

	w->guess = false;
	w->exact = rule.cfa == UNWIND_CFA_SIGNAL;
	if (result == UNWIND_NO_ROW) {
		if (unwind__guess(&w->regs, &w->copy) || !walk__mapping(w, w->regs.pc - 1))
			return walk__failed(w, UNWIND_NO_ROW);
		w->guess = true;
		return 0;
	}
	return result ? walk__failed(w, result) : 0;
}

/* One frame: its word into *word; returns 0 to go on, or the word that ends the stack here. */
static __u64 walk__frame(struct walk *w, __u64 *word)
{
	__u64 pc = w->regs.pc - !w->exact;

	if (!w->regs.pc)
		return FRAME_MAKE_END(END_ROOT, 0);
	w->map = walk__mapping(w, pc);
	if (!w->map)
		return FRAME_MAKE_END(END_NOT_CODE, 0);
	*word = walk__word(w, pc);
	return 0;
}

size_t unwind_stack__walk(struct unwind_store *store, const struct unwind_stack_input *in,
			  __u64 *words, size_t max)
{
	struct walk w = { .store = store, .in = in,
			  .copy = { in->stack, in->start, in->len, 0, in->holes },
			  .exact = in->later ? in->exact : !in->in_syscall,
			  .guess = in->guess };
	__u64 end = 0, low;
	size_t nr = 0;

	memcpy(w.regs.r, in->regs, sizeof(w.regs.r));
	w.regs.pc = in->pc;
	w.regs.full = !in->later || in->full;
	w.regs.lost_rbp = in->lost_rbp;
	w.regs.rbx_at = in->lost_rbx ? UNWIND_RBX_LOST : UNWIND_RBX_LIVE;
	while (!end) {
		__u64 word = 0;

		end = walk__frame(&w, &word);
		if (end)
			break;
		if (nr == max - 1) {
			end = FRAME_MAKE_END(END_TRUNCATED, 0);
			break;
		}
		if (w.map->kind != MAPPING_TRAMPOLINE)	/* the kernel's, not the program's */
			words[nr++] = word;
		low = w.regs.r[UNWIND_RSP];
		end = walk__step(&w, w.regs.pc - !w.exact);
		/* Where a signal frame leads to is no caller's stack. */
		if (in->frame && !end && !w.exact && w.map->kind != MAPPING_TRAMPOLINE)
			in->frame(in->ctx, nr - 1, low, w.regs.r[UNWIND_RSP]);
	}
	words[nr++] = end;
	return nr;
}
