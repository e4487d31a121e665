// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Samples a command and unwinds each sample three times: the BPF programs on the living stack, user
 * space by the same rules over a copy, and libdw's own unwinder over that copy. All must agree
 * frame by frame. Differences are counted by kind; one that has no explanation here is a failure.
 *
 *	agree [-F HZ] [-n LEAST] [-v] -- COMMAND
 *
 * Status 0: at least LEAST samples were compared and nothing unexplained was found; 77: BPF programs
 * are refused here.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/processes.h"
#include "loader/stacks.h"
#include "tests/bpf/agree.h"
#include "unwind/rows.h"
#include "unwind/stack.h"

enum kind {
	AGREE = 0,
	LEARNING,		/* code without rows, as designed: unwound in user space alone */
	NO_WORDS,		/* the words, or the mappings, weren't there */
	COPY_SHORT,		/* the copy ends before the stack does */
	DEPTH,			/* ours is cut at its limit of frames */
	GUESS,			/* ours goes on by the frame pointer, and marks it as a guess */
	THEIR_GUESS,		/* ours ends with a mark, libdw follows the frame pointer unmarked */
	NOT_CODE,		/* ours ends at an address that isn't code, libdw shows it as a frame */
	BPF_DIFFERS,
	LIBDW_DIFFERS,
	NR_KINDS,
};

static const char *const kind_text[NR_KINDS] = {
	[AGREE] = "agree frame by frame",
	[LEARNING] = "met code without rows: user space alone",
	[NO_WORDS] = "not compared: at start or end",
	[COPY_SHORT] = "explained: the copy ends before the stack",
	[DEPTH] = "explained: deeper than ours goes",
	[GUESS] = "explained: ours goes on by the frame pointer, marked as a guess",
	[THEIR_GUESS] = "explained: no unwind information, libdw follows the frame pointer unmarked",
	[NOT_CODE] = "explained: libdw shows an address that is not code",
	[BPF_DIFFERS] = "UNEXPLAINED: BPF and user space differ",
	[LIBDW_DIFFERS] = "UNEXPLAINED: ours and libdw differ",
};

struct agree {
	struct sampled *target;
	struct stacks *stacks;
	struct reference *reference;
	uint64_t mappings_read;	/* when the reference was refreshed */
	uint64_t count[NR_KINDS];
	uint64_t frames;	/* in the stacks that agree */
	unsigned int shown;
	bool verbose;
	__u64 words[GPUCOLLECT_MAX_FRAMES];
	struct frames theirs;
};

#define MAX_SHOWN 5

static bool same_frame(__u64 a, __u64 b)
{
	__u64 kinds = 0xfull << 60;

	return (a & ~kinds) == (b & ~kinds) && FRAME_KIND(a) != FRAME_END &&
	       FRAME_KIND(b) != FRAME_END;
}

static __u64 word_of(const struct process *p, uint64_t pc)
{
	uint32_t i;

	for (i = 0; i < p->nr_mappings; i++) {
		const struct mapping *m = &p->mappings[i];

		if (pc < m->start || pc >= m->end)
			continue;
		return m->kind == MAPPING_FILE ?
		       FRAME_MAKE_FILE(FRAME_FILE, m->file, pc - m->start + m->offset) :
		       FRAME_MAKE_ADDRESS(FRAME_ANON, pc);
	}
	return 0;
}

static void show_word(struct agree *a, __u64 w)
{
	switch (FRAME_KIND(w)) {
	case FRAME_FILE:
	case FRAME_FILE_GUESS:
		printf("%s+0x%llx%s", sampled__path(a->target, FRAME_FILE_ID(w)),
		       (unsigned long long)FRAME_OFFSET(w),
		       FRAME_KIND(w) == FRAME_FILE_GUESS ? " (guess)" : "");
		break;
	case FRAME_END:
		printf("end %u", FRAME_END_WHY(w));
		break;
	default:
		printf("0x%llx", (unsigned long long)FRAME_ADDRESS(w));
	}
}

static void show(struct agree *a, const struct process *p, const struct rec_raw *raw,
		 const __u64 *bpf, uint32_t nr, size_t nr_user)
{
	size_t i, most = nr;

	if (a->shown++ >= MAX_SHOWN)
		return;
	printf("pc %llx sp %llx rbp %llx, copy of %u from %llx, flags %x; libdw: %s\n",
	       (unsigned long long)raw->pc, (unsigned long long)raw->regs[7],
	       (unsigned long long)raw->regs[6], raw->len, (unsigned long long)raw->start,
	       raw->flags, a->theirs.why ? a->theirs.why : "whole");
	if (nr_user > most)
		most = nr_user;
	if (a->theirs.nr > most)
		most = a->theirs.nr;
	for (i = 0; i < most; i++) {
		printf("  %2zu ", i);
		if (i < nr)
			show_word(a, bpf[i]);
		printf(" | ");
		if (i < nr_user)
			show_word(a, a->words[i]);
		printf(" | ");
		if (i < a->theirs.nr) {
			printf("%" PRIx64 " ", a->theirs.pc[i]);
			show_word(a, word_of(p, a->theirs.pc[i]));
		}
		printf("\n");
	}
}

/* --- BPF against user space ------------------------------------------------------------------ */

static size_t walk_copy(struct agree *a, const struct rec_raw *raw, const struct process *p)
{
	struct unwind_stack_input in = {
		.regs = raw->regs,
		.pc = raw->pc,
		.later = true,
		.exact = raw->flags & RAW_EXACT,
		.full = raw->flags & RAW_FULL,
		.start = raw->start,
		.stack = raw + 1,
		.len = raw->len,
		.holes = raw->holes,
		.mappings = p->mappings,
		.nr_mappings = p->nr_mappings,
		.file = sampled__file,
		.ctx = a->target,
	};

	return unwind_stack__walk(sampled__store(a->target), &in, a->words, GPUCOLLECT_MAX_FRAMES);
}

static enum kind compare_user(const struct agree *a, const __u64 *bpf, uint32_t nr, size_t nr_user)
{
	__u32 end = FRAME_END_WHY(a->words[nr_user - 1]);
	size_t i;

	if (nr == nr_user && !memcmp(bpf, a->words, nr * sizeof(*bpf)))
		return AGREE;
	for (i = 0; i + 1 < nr_user; i++)
		if (i >= nr || bpf[i] != a->words[i])
			return BPF_DIFFERS;
	return end == END_TRUNCATED || end == END_UNREADABLE ? COPY_SHORT : BPF_DIFFERS;
}

/* --- ours against libdw ------------------------------------------------------------------------ */

/* Why one of the two stacks is a beginning of the other; `at` is its length. */
static enum kind explain_end(const struct agree *a, const struct process *p, const __u64 *ours,
			     uint32_t nr, size_t at)
{
	const struct frames *theirs = &a->theirs;
	__u32 end = FRAME_END_WHY(ours[nr - 1]);

	if (at == nr - 1 && at == theirs->nr)
		return AGREE;
	if (at == theirs->nr) {		/* ours goes on */
		if (theirs->why && !strcmp(theirs->why, "memory outside the copy"))
			return COPY_SHORT;
		return FRAME_KIND(ours[at]) == FRAME_FILE_GUESS ||
		       FRAME_KIND(ours[at]) == FRAME_ANON_GUESS ? GUESS : LIBDW_DIFFERS;
	}
	switch (end) {
	case END_TRUNCATED:
		return nr == GPUCOLLECT_MAX_FRAMES ? DEPTH : COPY_SHORT;
	case END_NO_INFO:
	case END_ANON:
		return THEIR_GUESS;
	case END_NOT_CODE:
		return word_of(p, theirs->pc[at]) ? LIBDW_DIFFERS : NOT_CODE;
	default:
		return LIBDW_DIFFERS;
	}
}

static enum kind compare_libdw(const struct agree *a, const struct process *p, const __u64 *ours,
			       uint32_t nr)
{
	size_t i;

	for (i = 0; i < a->theirs.nr && i + 1 < nr; i++) {
		if (same_frame(ours[i], word_of(p, a->theirs.pc[i])))
			continue;
		/* Both guess: ours only where it leads into code. */
		if (FRAME_KIND(ours[i]) == FRAME_FILE_GUESS)
			return GUESS;
		return LIBDW_DIFFERS;
	}
	return explain_end(a, p, ours, nr, i);
}

static enum kind compare(struct agree *a, const struct rec_raw *raw)
{
	const struct process *p = sampled__process(a->target);
	const __u64 *words;
	enum kind kind;
	size_t nr_user;
	uint32_t nr;

	if (!p || !p->nr_mappings)
		return NO_WORDS;
	nr_user = walk_copy(a, raw, p);
	if (!raw->sample.user)
		return LEARNING;
	words = (const __u64 *)stacks__words(a->stacks,
					     stacks__by_hash(a->stacks, raw->sample.user), &nr);
	if (!nr)
		return NO_WORDS;
	if (!a->reference)
		a->reference = reference__new(p->tgid);
	else if (a->mappings_read != p->read_at && reference__refresh(a->reference))
		return NO_WORDS;
	if (!a->reference)
		return NO_WORDS;
	a->mappings_read = p->read_at;
	reference__unwind(a->reference, raw, &a->theirs);
	kind = compare_user(a, words, nr, nr_user);
	if (kind == AGREE)
		kind = compare_libdw(a, p, words, nr);
	if (kind == AGREE)
		a->frames += nr - 1;
	if (kind >= BPF_DIFFERS || (a->verbose && kind > NO_WORDS))
		show(a, p, raw, words, nr, nr_user);
	return kind;
}

static void on_record(void *ctx, const void *record, size_t size)
{
	const struct rec_stack *stack = record;
	struct agree *a = ctx;
	uint32_t id;

	if (stack->head.type == REC_STACK) {
		if (sizeof(*stack) + stack->nr * sizeof(__u64) > size)
			abort();
		id = stacks__add(a->stacks, (const uint64_t *)(stack + 1), stack->nr, 0);
		stacks__alias(a->stacks, stack->hash, id);
	} else if (stack->head.type == REC_RAW) {
		a->count[compare(a, record)]++;
	}
}

static int result(const struct agree *a, uint64_t least)
{
	uint64_t compared = 0;
	int i;

	for (i = 0; i < NR_KINDS; i++) {
		if (i != LEARNING && i != NO_WORDS)
			compared += a->count[i];
		if (a->count[i] || i == AGREE)
			printf("%8" PRIu64 " %s\n", a->count[i], kind_text[i]);
	}
	printf("%8.1f frames in a stack that agrees\n",
	       a->count[AGREE] ? (double)a->frames / (double)a->count[AGREE] : 0);
	printf("%8" PRIu64 " samples compared\n", compared);
	if (compared < least)
		printf("that is too few: %" PRIu64 " were wanted\n", least);
	return compared < least || a->count[BPF_DIFFERS] || a->count[LIBDW_DIFFERS];
}

int main(int argc, char **argv)
{
	static struct agree a;
	unsigned int frequency = 997;
	uint64_t least = 1;
	int opt, err, status;

	while ((opt = getopt(argc, argv, "+F:n:v")) > 0) {
		if (opt == 'F')
			frequency = (unsigned int)atoi(optarg);
		else if (opt == 'n')
			least = strtoull(optarg, NULL, 10);
		else if (opt == 'v')
			a.verbose = true;
		else
			return 64;
	}
	if (optind == argc || !frequency)
		return 64;
	a.stacks = stacks__new();
	if (!a.stacks)
		return 1;
	err = sampled__new(argv + optind, frequency, on_record, &a, &a.target);
	if (err == -EPERM || err == -EACCES || err == -EOPNOTSUPP || err == -EINVAL) {
		printf("skipped: BPF programs or perf events are refused here: %s\n", strerror(-err));
		return 77;
	}
	if (err)
		return 1;
	status = sampled__run(a.target);
	if (status < 0 || !WIFEXITED(status) || WEXITSTATUS(status)) {
		printf("the command failed: %d\n", status);
		err = 1;
	}
	err |= result(&a, least);
	reference__free(a.reference);
	sampled__free(a.target);
	stacks__free(a.stacks);
	return err;
}
