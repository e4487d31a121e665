// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/ranges.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/array.h"

#define NR_CLASSES 32

/* Sizes are rounded up to powers of two; each class keeps a queue of what came back. */
struct returned {
	uint32_t first;
	uint64_t usable_at;
};

struct queue {
	struct returned *item;
	size_t head, nr, room;		/* a ring of `room` items */
};

struct ranges {
	uint32_t size;
	uint32_t next;			/* never given out so far */
	struct queue class[NR_CLASSES];
};

struct ranges *ranges__new(uint32_t size)
{
	struct ranges *r = calloc(1, sizeof(*r));

	if (r)
		r->size = size;
	return r;
}

void ranges__free(struct ranges *r)
{
	int i;

	if (!r)
		return;
	for (i = 0; i < NR_CLASSES; i++)
		free(r->class[i].item);
	free(r);
}

static unsigned int class_of(uint32_t nr)
{
	return nr <= 1 ? 0 : 32 - (unsigned int)__builtin_clz(nr - 1);
}

bool ranges__get(struct ranges *r, uint32_t nr, uint64_t now, uint32_t *first)
{
	unsigned int class = class_of(nr);
	struct queue *q;

	if (class >= NR_CLASSES - 1)
		return false;
	q = &r->class[class];
	if (q->nr && q->item[q->head].usable_at <= now) {
		*first = q->item[q->head].first;
		q->head = (q->head + 1) % q->room;
		q->nr--;
		return true;
	}
	if (r->size - r->next < 1u << class)
		return false;
	*first = r->next;
	r->next += 1u << class;
	return true;
}

static int queue__grow(struct queue *q)
{
	size_t old = q->room;

	if (array__reserve((void **)&q->item, &q->room, old, sizeof(*q->item)))
		return -1;
	/* What had wrapped follows the rest now. */
	memcpy(q->item + old, q->item, q->head * sizeof(*q->item));
	return 0;
}

void ranges__put(struct ranges *r, uint32_t first, uint32_t nr, uint64_t now)
{
	struct queue *q = &r->class[class_of(nr)];

	if (q->nr == q->room && queue__grow(q))
		return;
	q->item[(q->head + q->nr++) % q->room] = (struct returned){
		.first = first,
		.usable_at = now + RANGES_QUARANTINE_NS,
	};
}
