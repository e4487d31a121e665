// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/collect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/account.h"
#include "loader/base/clock.h"
#include "loader/base/fault.h"
#include "loader/base/log.h"
#include "loader/changed.h"
#include "loader/copies.h"
#include "loader/due.h"
#include "loader/records.h"
#include "unwind/python_merge.h"

#define EXEC_NS 1000000000ull	/* by then the record of an exec was read, or it is lost */
#define READ_AT_ONCE 4096	/* records; some ms */

struct collect {
	struct collect_config config;
	struct copies *copies;
	struct collect_counters counters;
	struct due due;			/* processes that mapped something */
	uint64_t caught_up;		/* when all was read that the kernel told of mappings */
	uint64_t from;			/* samples before are none of the capture's */
	unsigned int left;		/* of READ_AT_ONCE */
};

static int on_record(void *ctx, void *record, size_t size);

int collect__new(const struct collect_config *config, struct collect **out)
{
	struct collect *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->config = *config;
	c->from = UINT64_MAX;
	err = copies__new(config->probes, config->files, config->stacks, &c->copies);
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
	copies__free(c->copies);
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

	if (!p) {
		p = processes__get(c->config.processes, (pid_t)tgid, !c->config.all);
		if (p)
			c->config.mapped(c->config.ctx, p);
	}
	if (p)
		p->kept = true;
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
	processes__execed(c->config.processes, p->tgid, p->comm, p->target);
	p = processes__find(c->config.processes, p->tgid);
	if (p)
		p->kept = true;
	return p;
}

/* --- stacks ------------------------------------------------------------------------------- */

static uint32_t add_stack(struct collect *c, const __u64 *words, uint32_t nr, const struct process *p,
			  uint64_t time)
{
	uint64_t owner = p && stacks__are_own((const uint64_t *)words, nr) ? p->index + 1ull : 0;
	uint32_t stack = stacks__add(c->config.stacks, (const uint64_t *)words, nr, owner);

	if (owner && stack && c->config.jit && stacks__have_generated((const uint64_t *)words, nr))
		jit__met(c->config.jit, p, stack, time);
	return stack;
}

static bool is_python_call(void *ctx, __u64 word)
{
	const struct collect *c = ctx;

	return python__is_call(c->config.python, word);
}

/*
 * The words of a stack as they were recorded: its Python frames are put in their places. What doesn't end
 * is the first part of one that comes as a copy (copies.h), and stays as it is.
 */
static uint32_t add_recorded(struct collect *c, const __u64 *words, uint32_t nr, const struct process *p,
			     uint64_t time)
{
	__u64 *merged;
	uint32_t stack;
	size_t len;

	if (!p || !python_merge__chain(words, nr) || stacks__end((const uint64_t *)words, nr) == NR_END)
		return add_stack(c, words, nr, p, time);
	merged = malloc(python_merge__room(nr) * sizeof(*merged));
	if (!merged)
		return STACKS_NONE;
	len = python_merge(words, nr, is_python_call, c, merged);
	if (python_names__met(c->config.names, p, (const uint64_t *)merged, (uint32_t)len))
		c->counters.no_memory++;
	stack = add_stack(c, merged, (uint32_t)len, p, time);
	free(merged);
	return stack;
}

static void on_stack(struct collect *c, const struct rec_stack *rec, size_t size)
{
	uint32_t stack;

	if (rec->nr > GPUCOLLECT_MAX_WORDS || sizeof(*rec) + rec->nr * sizeof(__u64) > size) {
		c->counters.unreadable_records++;
		return;
	}
	stack = add_recorded(c, (const __u64 *)(rec + 1), rec->nr, process_of(c, rec->tgid), rec->head.time);
	if (!stack || stacks__alias(c->config.stacks, rec->hash, stack))
		c->counters.no_memory++;
}

/* A stack whose words were made by mappings that may not have been those of its time any more. */
static uint32_t corrected(struct collect *c, const struct process *p, uint32_t stack, uint64_t time)
{
	const uint64_t *words;
	uint64_t *right;
	uint32_t nr;

	if (!changed__recently(p, time))
		return stack;
	words = stacks__words(c->config.stacks, stack, &nr);
	right = nr ? malloc(nr * sizeof(*right)) : NULL;
	if (!right)
		return stack;
	memcpy(right, words, nr * sizeof(*right));
	if (changed__correct(p, right, nr, time))
		stack = add_stack(c, (const __u64 *)right, nr, p, time);
	free(right);
	return stack;
}

/* For a stack of `time`: by now the process may execute another program, of which no record came yet. */
static void refresh_for(struct collect *c, struct process *p, uint64_t time)
{
	if (p->read_at || !recent__replaced(c->config.recent, p->tgid, time))
		refresh(c, p);
}

/*
 * Unwinds a copied stack by the mappings that were known, a forked child's being its parent's: what
 * is mapped now may be another image already, though the copy was made a moment ago.
 */
static uint32_t unwind_raw(struct collect *c, const struct rec_raw *rec, struct process *p)
{
	const __u64 no_stack = FRAME_MAKE_END(END_NO_STACK, 0), *words;
	uint32_t nr;

	c->counters.raw++;
	FAULT_POINT("stack-copy");
	if (!p->nr_mappings || (p->doubtful && !changed__recently(p, rec->head.time)))
		refresh_for(c, p, rec->head.time);
	if (!p->nr_mappings && !p->exited)
		processes__remember(c->config.processes, p, c->config.recent, rec->head.time);
	if (!p->nr_mappings)		/* it was gone before its mappings could be read */
		return add_stack(c, &no_stack, 1, p, rec->head.time);
	words = copies__unwind(c->copies, rec, p, &nr);
	/* Code that was mapped since the mappings were read, or no code at all. */
	if (stacks__end((const uint64_t *)words, nr) == END_NOT_CODE) {
		if (due__may_reread(p, rec->head.time)) {
			refresh_for(c, p, rec->head.time);
			words = copies__unwind(c->copies, rec, p, &nr);
		}
		if (stacks__end((const uint64_t *)words, nr) == END_NOT_CODE)
			processes__fruitless(c->config.processes, p);
	} else if (!p->read_at) {
		refresh_for(c, p, rec->head.time);
	}
	return add_recorded(c, words, nr, p, rec->head.time);
}

/* --- records ------------------------------------------------------------------------------ */

static void on_thread(struct collect *c, const struct process *p, uint32_t tid)
{
	if (thread_names__met(c->config.threads, p, tid))
		c->counters.no_memory++;
}

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

	if (rec->head.time < c->from)
		return;
	on_thread(c, p, rec->tid);
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
	c->counters.launches += rec->flags & (LAUNCH_COPY | LAUNCH_WAIT) ? 0 : account__weight(rec);
	FAULT_POINT("launch");
	on_thread(c, p, rec->tid);
	if (c->config.frees)
		python_frees__launched(c->config.frees, p);
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
	stack = corrected(c, p, unwind_raw(c, rec, p), rec->head.time);
	if (rec->sample.head.type == REC_SAMPLE)
		on_sample(c, &rec->sample, p, stack);
	else
		on_launch(c, &rec->launch, p, stack);
}

static void on_fork(struct collect *c, const struct rec_process *rec)
{
	struct process *parent = processes__find(c->config.processes, (pid_t)rec->parent), *child;

	processes__forked(c->config.processes, (pid_t)rec->parent, (pid_t)rec->tgid, rec->comm);
	child = processes__find(c->config.processes, (pid_t)rec->tgid);
	if (parent && child && c->config.jit)
		jit__forked(c->config.jit, parent, child);
}

static void on_process(struct collect *c, const struct rec_process *rec)
{
	struct process *p = processes__find(c->config.processes, (pid_t)rec->tgid);

	FAULT_POINT("process-event");
	if (rec->head.type == REC_FORK) {
		on_fork(c, rec);
		return;
	}
	if (p && c->config.launches)
		launches__exited(c->config.launches, p, rec->head.time);
	if (p && c->config.jit)
		jit__exited(c->config.jit, p);
	if (rec->head.type == REC_EXIT) {
		processes__exited(c->config.processes, (pid_t)rec->tgid);
		return;
	}
	/* Its mappings are read when they are needed, which for most of a thousand is never. */
	processes__execed(c->config.processes, (pid_t)rec->tgid, rec->comm, !c->config.all);
}

static uint32_t stack_of(struct collect *c, const struct process *p, uint64_t hash, uint64_t time)
{
	return corrected(c, p, stacks__by_hash(c->config.stacks, hash), time);
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
	p = process_of(c, sample->tgid);	/* all of them have it in the same place */
	if (!p)
		c->counters.no_memory++;
	else if (head->type == REC_SAMPLE)
		on_sample(c, sample, p, stack_of(c, p, sample->user, head->time));
	else if (head->type == REC_LAUNCH)
		on_launch(c, launch, p, stack_of(c, p, launch->user, head->time));
	else if (head->type == REC_CODE)
		c->counters.no_memory += python_names__told(c->config.names, p, (const void *)head) != 0;
	else if (c->config.launches)
		launches__hello(c->config.launches, p, library->fd);
}

static int on_record(void *ctx, void *record, size_t size)
{
	struct collect *c = ctx;
	const struct rec_head *head = record;

	/* What was mapped before a stack was taken is known before it is looked at. */
	if (size >= sizeof(*head) && head->time > c->caught_up) {
		c->caught_up = clock__now_ns();
		c->config.catch_up(c->config.ctx);
	}
	if (size < sizeof(*head) || size < records__least(head->type))
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

void collect__begin(struct collect *c, uint64_t from)
{
	c->from = from;
}

/* Of a process that mapped something. What was never read is not outdated. */
static void reread(struct collect *c, struct process *p, bool now)
{
	if (p && (p->read_at || now))
		refresh(c, p);
}

void collect__mapped(struct collect *c, const struct sampling_event *event, bool now)
{
	struct process *p = processes__find(c->config.processes, event->tgid);

	if (p && changed__add(p, c->config.files, event))
		processes__doubt_of(c->config.processes, p);
	/* Whether it is one of ours may be told by a record that is still in the ring. */
	if (due__add(&c->due, event->tgid, now))
		return;
	collect__refresh(c);
	if (!due__add(&c->due, event->tgid, now))
		reread(c, p, now);
}

void collect__refresh(struct collect *c)
{
	uint64_t now = clock__now_ns();
	unsigned int i, kept = 0;

	for (i = 0; i < c->due.nr; i++) {
		struct process *p = processes__find(c->config.processes, c->due.process[i].tgid);

		if (p && !due__is_cheap(p, now))
			c->due.process[kept++] = c->due.process[i];
		else
			reread(c, p, c->due.process[i].now);
	}
	c->due.nr = kept;
}
