// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/changed.h"

#include <stdlib.h>
#include <string.h>

#include <linux/types.h>

#include "bpf/gpucollect.h"

#define MAX_CHANGES 64			/* of a process; the oldest goes */
#define AGE_NS 2000000000ull		/* by then new mappings were read, and all older stacks seen */

/* What was at some addresses from a time on; 0: before all others. */
struct change {
	uint64_t start, end, offset;
	uint64_t time;
	uint32_t file;			/* 0: none */
};

static bool overlap(uint64_t start, uint64_t end, const struct change *c)
{
	return start < c->end && end > c->start;
}

static void add(struct process *p, const struct change *c)
{
	uint32_t i, oldest = 0;

	if (p->nr_changes < MAX_CHANGES) {
		p->changes[p->nr_changes++] = *c;
		return;
	}
	for (i = 1; i < MAX_CHANGES; i++)
		if (p->changes[i].time < p->changes[oldest].time)
			oldest = i;
	p->changes[oldest] = *c;
}

/* Whether it lies over something that is known; what the mappings say of that is kept. */
static bool lies_over(struct process *p, const struct change *c)
{
	struct change before = {};
	uint32_t i;

	for (i = 0; i < p->nr_changes; i++)
		if (overlap(p->changes[i].start, p->changes[i].end, c))
			return true;
	for (i = 0; i < p->nr_mappings && c->time > p->read_at; i++) {
		const struct mapping *m = &p->mappings[i];

		if (m->kind != MAPPING_FILE || !overlap(m->start, m->end, c))
			continue;
		before = (struct change){ m->start, m->end, m->offset, 0, m->file };
		add(p, &before);
	}
	return before.file;
}

bool changed__add(struct process *p, struct files *files, const struct sampling_event *event)
{
	char path[4096] = "";
	struct maps_line line = {
		.start = event->start,
		.end = event->start + event->size,
		.offset = event->offset,
		.inode = event->inode,
		.dev_major = event->dev_major,
		.dev_minor = event->dev_minor,
		.executable = true,
		.path = path,
	};
	struct change c = {
		.start = line.start, .end = line.end, .offset = line.offset, .time = event->time,
	};

	if (line.end <= line.start || (!p->nr_changes && !p->nr_mappings))
		return false;
	if (!p->changes)
		p->changes = calloc(MAX_CHANGES, sizeof(*p->changes));
	if (!p->changes || !lies_over(p, &c))
		return false;
	strncpy(path, event->path, sizeof(path) - 1);
	c.file = files__of_mapping(files, p->tgid, &line);
	add(p, &c);
	if (c.time > p->changed_at)
		p->changed_at = c.time;
	return true;
}

bool changed__recently(const struct process *p, uint64_t time)
{
	return p->nr_changes && p->changed_at + AGE_NS > time;
}

/* The address that a word was made of, by whatever was known then; 0: none that has changed. */
static uint64_t address_of(const struct process *p, uint64_t word)
{
	uint64_t offset = FRAME_OFFSET(word);
	uint32_t i;

	for (i = 0; i < p->nr_changes; i++) {
		const struct change *c = &p->changes[i];

		if (c->file == FRAME_FILE_ID(word) && offset >= c->offset &&
		    offset - c->offset < c->end - c->start)
			return c->start + (offset - c->offset);
	}
	return 0;
}

static uint64_t correct(const struct process *p, uint64_t word, uint64_t time)
{
	uint32_t kind = FRAME_KIND(word), i;
	const struct change *best = NULL;
	uint64_t address;

	if (kind != FRAME_FILE && kind != FRAME_FILE_GUESS)
		return word;
	address = address_of(p, word);
	for (i = 0; address && i < p->nr_changes; i++) {
		const struct change *c = &p->changes[i];

		if (c->time <= time && address >= c->start && address < c->end &&
		    (!best || c->time > best->time))
			best = c;
	}
	if (!best)
		return word;
	if (best->file)
		return FRAME_MAKE_FILE(kind, best->file, address - best->start + best->offset);
	return FRAME_MAKE_ADDRESS(kind == FRAME_FILE ? FRAME_ANON : FRAME_ANON_GUESS, address);
}

bool changed__correct(const struct process *p, uint64_t *words, uint32_t nr, uint64_t time)
{
	bool any = false;
	uint64_t right;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		right = correct(p, words[i], time);
		any |= right != words[i];
		words[i] = right;
	}
	return any;
}
