// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/collect.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "loader/base/clock.h"
#include "loader/base/fault.h"
#include "loader/base/log.h"
#include "unwind/rows.h"
#include "unwind/stack.h"

#define EXEC_NS 1000000000ull	/* by then the record of an exec was read, or it is lost */
/*
 * Unknown code makes mappings be read again; where that was in vain many times, not more often than
 * this. Readings that take longer than this get a part of our time only: there may be a million
 * mappings.
 */
#define REREAD_NS 5000000ull
#define REREAD_PART 10
#define GRACE_US 100000		/* no program takes so long */
#define MAX_PENDING 256
#define READ_AT_ONCE 4096	/* records; some ms */

/* Of one stack. Frames of 64 bytes, the smallest that compilers make much use of, fill RAW_MAX. */
#define MAX_WORDS 16384

struct collect {
	struct collect_config config;
	struct unwind_store *store;
	struct collect_counters counters;
	pid_t pending[MAX_PENDING];	/* processes that mapped something */
	unsigned int nr_pending;
	unsigned int left;		/* of READ_AT_ONCE */
	__u64 words[MAX_WORDS];
};

static int publish_page(void *ctx, const struct page_key *key, const struct page_rows *rows)
{
	struct collect *c = ctx;

	FAULT_POINT("rows-compiled");
	return bpf_map_update_elem(probes__maps(c->config.probes)->pages_fd, key, rows, BPF_ANY);
}

/* The rows are about to be overwritten: no program may know them, or be reading them, any more. */
static void flush_pages(void *ctx)
{
	struct collect *c = ctx;
	int fd = probes__maps(c->config.probes)->pages_fd;
	struct page_key key;

	while (!bpf_map_get_next_key(fd, NULL, &key))
		if (bpf_map_delete_elem(fd, &key))
			break;
	probes__forget_rows(c->config.probes);
	/* Waits for every program that began before; kernels with nohz_full refuse. */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		usleep(GRACE_US);
}

static int on_record(void *ctx, void *record, size_t size);

int collect__new(const struct collect_config *config, struct collect **out)
{
	const struct probes_maps *maps = probes__maps(config->probes);
	struct unwind_store_config store = {
		.rules = maps->rules,
		.rows = maps->rows,
		.max_rules = GPUCOLLECT_MAX_RULES - 1,
		.max_rows = GPUCOLLECT_MAX_ROWS,
		.max_pages = GPUCOLLECT_MAX_PAGES,
		.publish = publish_page,
		.flush = flush_pages,
	};
	struct collect *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->config = *config;
	store.ctx = c;
	err = unwind_store__new(&c->store, &store);
	if (!err)
		err = probes__set_reader(config->probes, on_record, c);
	if (err) {
		collect__free(c);
		return err;
	}
	*out = c;
	return 0;
}

void collect__free(struct collect *c)
{
	if (!c)
		return;
	unwind_store__free(c->store);
	free(c);
}

void collect__counters(const struct collect *c, struct collect_counters *out)
{
	*out = c->counters;
}

/* What /proc shows is another image's: the record of its exec is still in the ring. */
static bool is_outdated(const struct collect *c, const struct process *p)
{
	return p->read_at && processes__stale(c->config.processes, p);
}

static void refresh(struct collect *c, struct process *p)
{
	int err;

	if (p->exited || is_outdated(c, p))
		return;
	err = processes__refresh(c->config.processes, p);

	FAULT_POINT("mappings-read");
	if (err)
		log_debug("mappings of process %d: %s", (int)p->tgid, strerror(-err));
	else
		c->config.mapped(c->config.ctx, p);
}

/* The process a record is of; met for the first time with -a, or if its fork record was lost. */
static struct process *process_of(struct collect *c, uint32_t tgid)
{
	struct process *p = processes__find(c->config.processes, (pid_t)tgid);

	if (p)
		return p;
	p = processes__get(c->config.processes, (pid_t)tgid, !c->config.all);
	if (p)
		c->config.mapped(c->config.ctx, p);
	return p;
}

/* The process, or another one in its place if the record of its exec doesn't come any more. */
static struct process *after_lost_exec(struct collect *c, struct process *p, uint64_t now)
{
	if (!is_outdated(c, p))
		return p;
	if (!p->outdated_at)
		p->outdated_at = now;
	if (now < p->outdated_at + EXEC_NS)
		return p;
	processes__execed(c->config.processes, p->tgid, p->comm);
	return processes__find(c->config.processes, p->tgid);
}

/* --- stacks ------------------------------------------------------------------------------- */

static bool depends_on_process(const __u64 *words, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		if (FRAME_KIND(words[i]) == FRAME_ANON || FRAME_KIND(words[i]) == FRAME_ANON_GUESS)
			return true;
	return false;
}

static uint32_t add_stack(struct collect *c, const __u64 *words, uint32_t nr, const struct process *p)
{
	uint64_t owner = p && depends_on_process(words, nr) ? p->index + 1ull : 0;

	return stacks__add(c->config.stacks, (const uint64_t *)words, nr, owner);
}

static void on_stack(struct collect *c, const struct rec_stack *rec, size_t size)
{
	uint32_t stack;

	if (rec->nr > GPUCOLLECT_MAX_FRAMES || sizeof(*rec) + rec->nr * sizeof(__u64) > size) {
		c->counters.unreadable_records++;
		return;
	}
	memcpy(c->words, rec + 1, rec->nr * sizeof(__u64));
	stack = add_stack(c, c->words, rec->nr, process_of(c, rec->tgid));
	if (!stack || stacks__alias(c->config.stacks, rec->hash, stack))
		c->counters.no_memory++;
}

static struct unwind_file *file_of(void *ctx, uint32_t id)
{
	struct collect *c = ctx;

	return files__unwind(c->config.files, id);
}

/* The words that BPF had, and those of the frames behind them; 0: the former were lost. */
static uint32_t walk(struct collect *c, const struct rec_raw *rec, const struct process *p)
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
		.ctx = c,
	};

	const uint64_t *before;
	uint32_t nr = 0;

	if (rec->prefix) {
		before = stacks__words(c->config.stacks,
				       stacks__by_hash(c->config.stacks, rec->prefix), &nr);
		if (!nr || nr >= MAX_WORDS)
			return 0;
		memcpy(c->words, before, nr * sizeof(*before));
	}
	return nr + (uint32_t)unwind_stack__walk(c->store, &in, c->words + nr,
						 MAX_WORDS - nr);
}

static bool met_unknown_code(const struct collect *c, uint32_t nr)
{
	return nr && FRAME_KIND(c->words[nr - 1]) == FRAME_END &&
	       FRAME_END_WHY(c->words[nr - 1]) == END_NOT_CODE;
}

/* Which it is, but for a process of some ten thousand mappings. */
static bool reading_is_cheap(const struct process *p, uint64_t now)
{
	return p->read_took < REREAD_NS || now >= p->read_at + REREAD_PART * p->read_took;
}

/* Of a process that had unknown code in a stack at `time`. */
static bool may_reread(const struct process *p, uint64_t time)
{
	uint64_t now = clock__now_ns();

	if (time + REREAD_NS <= p->read_at || !reading_is_cheap(p, now))
		return false;
	return p->fruitless < PROCESSES_FRUITLESS || now >= p->read_at + REREAD_NS;
}

/*
 * Unwinds a copied stack by the mappings that were known, a forked child's being its parent's: what
 * is mapped now may be another image already, though the copy was made a moment ago.
 */
static uint32_t unwind_raw(struct collect *c, const struct rec_raw *rec, struct process *p)
{
	uint32_t nr;

	c->counters.raw++;
	FAULT_POINT("stack-copy");
	if (!p->nr_mappings)
		refresh(c, p);
	if (!p->nr_mappings) {		/* it was gone before its mappings could be read */
		c->words[0] = FRAME_MAKE_END(END_NO_STACK, 0);
		return add_stack(c, c->words, 1, p);
	}
	nr = walk(c, rec, p);
	/* Code that was mapped since the mappings were read, or no code at all. */
	if (met_unknown_code(c, nr)) {
		if (may_reread(p, rec->head.time)) {
			refresh(c, p);
			nr = walk(c, rec, p);
		}
		if (met_unknown_code(c, nr))
			processes__fruitless(c->config.processes, p);
	} else if (!p->read_at) {
		refresh(c, p);
	}
	return add_stack(c, c->words, nr, p);
}

/* --- records ------------------------------------------------------------------------------ */

static void on_sample(struct collect *c, const struct rec_sample *rec, struct process *p,
		      uint32_t user)
{
	struct tally_key key = {
		.kind = TALLY_SAMPLE,
		.process = p->index,
		.tid = rec->tid,
		.user = user,
		.kernel = stacks__by_hash(c->config.stacks, rec->kernel),
		.device = -1,
	};
	const struct tally_add one = { .count = 1 };

	if (user == STACKS_NONE || (rec->kernel && key.kernel == STACKS_NONE))
		c->counters.no_stack++;
	if (tally__add(c->config.tally, &key, &one))
		c->counters.no_memory++;
	else
		c->counters.samples++;
}

static void on_launch(struct collect *c, const struct rec_launch *rec, struct process *p,
		      uint32_t user)
{
	c->counters.launches++;
	FAULT_POINT("launch");
	if (user == STACKS_NONE)
		c->counters.no_stack++;
	if (c->config.launches && launches__record(c->config.launches, p, rec, user))
		c->counters.no_memory++;
}

static void on_raw(struct collect *c, const struct rec_raw *rec, size_t size)
{
	struct process *p;
	uint32_t stack;

	/* `sample` and `launch` begin alike: head, tgid. */
	if (size < sizeof(*rec) || rec->len > size - sizeof(*rec) || rec->len > RAW_MAX) {
		c->counters.unreadable_records++;
		return;
	}
	p = process_of(c, rec->sample.tgid);
	if (p)
		p = after_lost_exec(c, p, rec->head.time);
	if (!p) {
		c->counters.no_memory++;
		return;
	}
	stack = unwind_raw(c, rec, p);
	if (rec->sample.head.type == REC_SAMPLE)
		on_sample(c, &rec->sample, p, stack);
	else
		on_launch(c, &rec->launch, p, stack);
}

static void on_process(struct collect *c, const struct rec_process *rec)
{
	struct process *p = processes__find(c->config.processes, (pid_t)rec->tgid);

	FAULT_POINT("process-event");
	if (rec->head.type == REC_FORK) {
		processes__forked(c->config.processes, (pid_t)rec->parent, (pid_t)rec->tgid, rec->comm);
		return;
	}
	if (p && c->config.launches)
		launches__exited(c->config.launches, p);
	if (rec->head.type == REC_EXIT) {
		processes__exited(c->config.processes, (pid_t)rec->tgid);
		return;
	}
	/* Read at once: it may live for a millisecond only. */
	processes__execed(c->config.processes, (pid_t)rec->tgid, rec->comm);
	p = processes__find(c->config.processes, (pid_t)rec->tgid);
	if (p)
		refresh(c, p);
}

/* Sizes are the kernel side's; they are checked all the same, since a mismatch would be silent. */
static size_t least_size(uint16_t type)
{
	switch (type) {
	case REC_STACK: return sizeof(struct rec_stack);
	case REC_SAMPLE: return sizeof(struct rec_sample);
	case REC_LAUNCH: return sizeof(struct rec_launch);
	case REC_RAW: return sizeof(struct rec_raw);
	case REC_FORK:
	case REC_EXEC:
	case REC_EXIT: return sizeof(struct rec_process);
	case REC_LIBRARY: return sizeof(struct rec_library);
	default: return SIZE_MAX;
	}
}

static void on_known(struct collect *c, const struct rec_head *head, size_t size)
{
	const struct rec_sample *sample = (const void *)head;
	const struct rec_launch *launch = (const void *)head;
	const struct rec_library *library = (const void *)head;
	struct process *p;

	switch (head->type) {
	case REC_STACK:
		on_stack(c, (const void *)head, size);
		return;
	case REC_RAW:
		on_raw(c, (const void *)head, size);
		return;
	case REC_FORK:
	case REC_EXEC:
	case REC_EXIT:
		on_process(c, (const void *)head);
		return;
	}
	p = process_of(c, sample->tgid);	/* all three have it in the same place */
	if (!p)
		c->counters.no_memory++;
	else if (head->type == REC_SAMPLE)
		on_sample(c, sample, p, stacks__by_hash(c->config.stacks, sample->user));
	else if (head->type == REC_LAUNCH)
		on_launch(c, launch, p, stacks__by_hash(c->config.stacks, launch->user));
	else if (c->config.launches)
		launches__hello(c->config.launches, p, library->fd);
}

static int on_record(void *ctx, void *record, size_t size)
{
	struct collect *c = ctx;
	const struct rec_head *head = record;

	if (size < sizeof(*head) || size < least_size(head->type))
		c->counters.unreadable_records++;
	else
		on_known(c, head, size);
	return --c->left ? 0 : -EAGAIN;
}

int collect__read(struct collect *c)
{
	int n;

	c->left = READ_AT_ONCE;
	n = probes__read(c->config.probes);
	return n == -EAGAIN ? READ_AT_ONCE : n;
}

void collect__mapped(struct collect *c, pid_t tgid)
{
	struct process *p;
	unsigned int i;

	/* Whether it is one of ours may be told by a record that is still in the ring. */
	for (i = 0; i < c->nr_pending; i++)
		if (c->pending[i] == tgid)
			return;
	if (c->nr_pending == MAX_PENDING)
		collect__refresh(c);
	if (c->nr_pending < MAX_PENDING) {
		c->pending[c->nr_pending++] = tgid;
		return;
	}
	p = processes__find(c->config.processes, tgid);
	if (p)
		refresh(c, p);
}

void collect__refresh(struct collect *c)
{
	uint64_t now = clock__now_ns();
	unsigned int i, kept = 0;

	for (i = 0; i < c->nr_pending; i++) {
		struct process *p = processes__find(c->config.processes, c->pending[i]);

		if (!p)
			continue;
		if (reading_is_cheap(p, now))
			refresh(c, p);
		else
			c->pending[kept++] = c->pending[i];
	}
	c->nr_pending = kept;
}
