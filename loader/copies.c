// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/copies.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "loader/base/fault.h"
#include "unwind/python_merge.h"
#include "unwind/rows.h"
#include "unwind/stack.h"

#define GRACE_US 100000		/* no program takes so long */
/* Of one stack. Frames of 64 bytes, the smallest that compilers make much use of, fill RAW_MAX. */
#define MAX_WORDS 16384

struct copies {
	struct probes *probes;
	struct files *files;
	const struct stacks *stacks;
	struct unwind_store *store;
	__u64 words[MAX_WORDS];
	/* of the walk under way */
	size_t native;			/* index of the first native word */
	size_t run;			/* of the Python frames that are to be placed next */
	size_t had;			/* words before those of this walk */
};

static int publish_page(void *ctx, const struct page_key *key, const struct page_rows *rows)
{
	struct copies *c = ctx;

	FAULT_POINT("rows-compiled");
	return bpf_map_update_elem(probes__maps(c->probes)->pages_fd, key, rows, BPF_ANY);
}

/* The rows are about to be overwritten: no program may know them, or be reading them, any more. */
static void flush_pages(void *ctx)
{
	struct copies *c = ctx;
	int fd = probes__maps(c->probes)->pages_fd;
	struct page_key key;

	while (!bpf_map_get_next_key(fd, NULL, &key))
		if (bpf_map_delete_elem(fd, &key))
			break;
	probes__forget_rows(c->probes);
	/* Waits for every program that began before; kernels with nohz_full refuse. */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		usleep(GRACE_US);
}

int copies__new(struct probes *probes, struct files *files, const struct stacks *stacks,
		struct copies **out)
{
	const struct probes_maps *maps = probes__maps(probes);
	struct copies *c = calloc(1, sizeof(*c));
	struct unwind_store_config store = {
		.rules = maps->rules,
		.rows = maps->rows,
		.max_rules = GPUCOLLECT_MAX_RULES - 1,
		.max_rows = GPUCOLLECT_MAX_ROWS,
		.max_pages = GPUCOLLECT_MAX_PAGES,
		.publish = publish_page,
		.flush = flush_pages,
		.ctx = c,
	};
	int err;

	if (!c)
		return -ENOMEM;
	c->probes = probes;
	c->files = files;
	c->stacks = stacks;
	err = unwind_store__new(&c->store, &store);
	if (err)
		free(c);
	else
		*out = c;
	return err;
}

void copies__free(struct copies *c)
{
	if (!c)
		return;
	unwind_store__free(c->store);
	free(c);
}

/* The next run of Python frames whose call was not met yet. */
static size_t next_run(const struct copies *c, size_t from)
{
	while (from < c->native && FRAME_KIND(c->words[from]) != FRAME_RUN_AT)
		from++;
	return from;
}

static void on_frame(void *ctx, size_t word, __u64 low, __u64 high)
{
	struct copies *c = ctx;
	size_t run;

	/* Each interpreter of a thread has runs in the order of the stack: all are looked at. */
	for (run = next_run(c, c->run); run < c->native; run = next_run(c, run + 1)) {
		__u64 marker = FRAME_MARKER(c->words[run]);

		if (marker < low || marker >= high || !marker)
			continue;
		c->words[run] = FRAME_MAKE_ADDRESS(FRAME_RUN, c->had + word - c->native);
		c->run = next_run(c, c->run);
		return;
	}
}

static struct unwind_file *file_of(void *ctx, uint32_t id)
{
	struct copies *c = ctx;

	return files__unwind(c->files, id);
}

const __u64 *copies__unwind(struct copies *c, const struct rec_raw *rec, const struct process *p,
			    uint32_t *nr)
{
	struct unwind_stack_input in = {
		.regs = rec->regs,
		.pc = rec->pc,
		.later = true,		/* flags say what holds of the first frame, too */
		.exact = rec->flags & RAW_EXACT,
		.full = rec->flags & RAW_FULL,
		.lost_rbp = rec->flags & RAW_LOST_RBP,
		.lost_rbx = rec->flags & RAW_LOST_RBX,
		.guess = rec->flags & RAW_GUESS,
		.start = rec->start,
		.stack = rec + 1,
		.len = rec->len,
		.holes = rec->holes,
		.mappings = p->mappings,
		.nr_mappings = p->nr_mappings,
		.file = file_of,
		.frame = on_frame,
		.ctx = c,
	};
	const uint64_t *before;
	uint32_t had = 0;

	*nr = 0;
	if (rec->prefix) {
		before = stacks__words(c->stacks, stacks__by_hash(c->stacks, rec->prefix), &had);
		if (!had || had >= MAX_WORDS)
			return c->words;
		memcpy(c->words, before, had * sizeof(*before));
	}
	c->had = had;
	c->native = python_merge__chain(c->words, had);
	c->run = next_run(c, 0);
	*nr = had + (uint32_t)unwind_stack__walk(c->store, &in, c->words + had, MAX_WORDS - had);
	return c->words;
}
