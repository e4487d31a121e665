// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/graph_book.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/array.h"
#include "loader/stacks.h"

#define MAX_GENERATIONS (1u << 20)	/* a program may change a graph before each launch */
#define MAX_CAPTURED (1u << 20)		/* captured launches: 32 MiB */
#define MAX_WAITING (1u << 18)		/* members of graphs that no launch has named: 15 MiB */

#define WAITS (1ull << 32)		/* in `generations`: an index in `waiting`, else the graph's number */

/* Members as they came, whose stacks aren't looked up yet. */
struct waiting {
	struct graph_member *member;
	uint32_t nr;
	uint32_t next_free;	/* index + 1 */
};

struct graph_book {
	struct graphs *graphs;
	struct graph_parts *parts;
	struct table *generations;
	struct table *captured;	/* launch id -> stack */
	struct waiting *waiting;
	size_t nr_waiting, room;
	uint32_t free;		/* index + 1; 0: none */
	size_t members;		/* of all that wait */
};

struct graph_book *graph_book__new(struct graphs *graphs)
{
	struct graph_book *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->graphs = graphs;
	b->parts = graph_parts__new();
	b->generations = table__new();
	b->captured = table__new();
	if (b->parts && b->generations && b->captured)
		return b;
	graph_book__free(b);
	return NULL;
}

void graph_book__free(struct graph_book *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->nr_waiting; i++)
		free(b->waiting[i].member);
	free(b->waiting);
	table__free(b->generations);
	table__free(b->captured);
	graph_parts__free(b->parts);
	free(b);
}

int graph_book__captured(struct graph_book *b, uint64_t launch, uint32_t stack)
{
	return table__count(b->captured) < MAX_CAPTURED ? table__set(b->captured, launch, stack) : 0;
}

/* The launches of the members become their stacks: from here on alike ones are one. */
static int settle(struct graph_book *b, struct graph_member *m, uint32_t nr, uint64_t *lost, uint32_t *id)
{
	uint64_t stack;
	int err;

	for (uint32_t i = 0; i < nr; i++) {
		m[i].stack = m[i].launch && table__get(b->captured, m[i].launch, &stack) ? (uint32_t)stack :
											   STACKS_NONE;
		m[i].launch = 0;
	}
	err = graphs__add(b->graphs, m, nr, id);
	*lost += !err && !*id;
	return err;
}

/* Takes the members over, unless it fails. */
static int wait(struct graph_book *b, uint32_t generation, struct graph_member *m, uint32_t nr)
{
	uint32_t i = b->free ? b->free - 1 : (uint32_t)b->nr_waiting;

	if (!b->free &&
	    array__reserve((void **)&b->waiting, &b->room, b->nr_waiting, sizeof(*b->waiting)))
		return -ENOMEM;
	if (table__set(b->generations, generation, WAITS | i))
		return -ENOMEM;
	if (b->free)
		b->free = b->waiting[i].next_free;
	else
		b->nr_waiting++;
	b->waiting[i] = (struct waiting){ .member = m, .nr = nr };
	b->members += nr;
	return 0;
}

/* All its parts are there. The members are ours. */
static int add_whole(struct graph_book *b, uint32_t generation, struct graph_member *m, uint32_t nr,
		     uint64_t *lost)
{
	uint64_t known;
	uint32_t id;
	int err;

	if (table__get(b->generations, generation, &known) ||
	    table__count(b->generations) == MAX_GENERATIONS) {
		++*lost;
		free(m);
		return 0;
	}
	if (b->members + nr <= MAX_WAITING) {
		err = wait(b, generation, m, nr);
		if (err)
			free(m);
		return err;
	}
	err = settle(b, m, nr, lost, &id);
	free(m);
	return err || !id ? err : table__set(b->generations, generation, id);
}

static struct graph_member member_of(const struct channel_node *n, const struct table *names)
{
	struct graph_member m = { .copy = n->copy, .count = n->count, .launch = n->launch };
	uint64_t work;

	if (n->copy)
		return m;
	if (n->name && table__get(names, n->name, &work)) {
		m.work = (uint32_t)work;
		m.sizes = (uint32_t)(work >> 32);
	}
	memcpy(m.shape.grid, n->grid, sizeof(n->grid));
	memcpy(m.shape.block, n->block, sizeof(n->block));
	m.shape.shared_bytes = n->shared_bytes;
	return m;
}

int graph_book__add(struct graph_book *b, const struct channel_graph *g, uint32_t nr,
		    const struct table *names, uint64_t *lost)
{
	struct graph_member part[CHANNEL_GRAPH_PART], *whole;
	int err;

	for (uint32_t i = 0; i < nr; i++)
		part[i] = member_of(&g->member[i], names);
	err = graph_parts__add(b->parts, g->generation, g->members, g->first, part, nr, &whole);
	return err || !whole ? err : add_whole(b, g->generation, whole, g->members, lost);
}

int graph_book__find(struct graph_book *b, uint32_t generation, uint64_t *lost, uint32_t *id)
{
	struct waiting *w;
	uint64_t known;
	uint32_t i;
	int err;

	*id = 0;
	if (!generation || !table__get(b->generations, generation, &known))
		return 0;
	*id = (uint32_t)known;
	if (known < WAITS)
		return 0;
	i = (uint32_t)known;
	w = &b->waiting[i];
	err = settle(b, w->member, w->nr, lost, id);
	b->members -= w->nr;
	free(w->member);
	*w = (struct waiting){ .next_free = b->free };
	b->free = i + 1;
	return table__set(b->generations, generation, *id) ? -ENOMEM : err;
}
