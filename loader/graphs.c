// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/graphs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/array.h"
#include "loader/base/index.h"
#include "loader/base/table.h"

#define MAX_PARTS 16		/* graphs on their way in one process: as many as threads that make some */

struct graph {
	struct graph_member *member;
	size_t nr;
};

struct graphs {
	struct graph *graph;	/* [id - 1] */
	size_t nr, room;
	size_t members;
	struct index by_content;
	uint64_t seed;
};

struct graphs *graphs__new(void)
{
	struct graphs *g = calloc(1, sizeof(*g));

	if (g)
		g->seed = hash__seed();
	return g;
}

void graphs__free(struct graphs *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->nr; i++)
		free(g->graph[i].member);
	free(g->graph);
	index__free(&g->by_content);
	free(g);
}

/* As bytes, but for the number: the order need only be the same for the same members. */
static int compare(const void *left, const void *right)
{
	struct graph_member a = *(const struct graph_member *)left, b = *(const struct graph_member *)right;

	a.count = b.count = 0;
	return memcmp(&a, &b, sizeof(a));
}

static uint32_t sum(uint32_t a, uint32_t b)
{
	return __builtin_add_overflow(a, b, &a) ? UINT32_MAX : a;
}

/* How many are left. */
static size_t merge(struct graph_member *m, size_t nr)
{
	size_t kept = 0;

	qsort(m, nr, sizeof(*m), compare);
	for (size_t i = 0; i < nr; i++) {
		if (kept && !compare(&m[kept - 1], &m[i]))
			m[kept - 1].count = sum(m[kept - 1].count, m[i].count);
		else
			m[kept++] = m[i];
	}
	return kept;
}

int graphs__add(struct graphs *g, struct graph_member *members, size_t nr, uint32_t *id)
{
	size_t pos = 0, size;
	struct graph *new;
	uint32_t hash;

	nr = merge(members, nr);
	size = nr * sizeof(*members);
	hash = (uint32_t)hash__bytes(members, size, g->seed);
	while (index__next(&g->by_content, hash, &pos, id)) {
		const struct graph *have = &g->graph[*id - 1];

		if (have->nr == nr && !memcmp(have->member, members, size))
			return 0;
	}
	*id = 0;
	if (nr > GRAPHS_MEMBERS - g->members)
		return 0;
	if (index__reserve(&g->by_content) ||
	    array__reserve((void **)&g->graph, &g->room, g->nr, sizeof(*g->graph)))
		return -ENOMEM;
	new = &g->graph[g->nr];
	new->member = malloc(size);
	if (!new->member)
		return -ENOMEM;
	memcpy(new->member, members, size);
	new->nr = nr;
	g->members += nr;
	*id = (uint32_t)++g->nr;
	index__add(&g->by_content, hash, *id);
	return 0;
}

const struct graph_member *graphs__get(const struct graphs *g, uint32_t id, size_t *nr)
{
	*nr = id && id <= g->nr ? g->graph[id - 1].nr : 0;
	return *nr ? g->graph[id - 1].member : NULL;
}

/* --- those on their way ---------------------------------------------------------------------- */

struct part {
	uint32_t generation;	/* 0: free */
	uint32_t all, got;
	struct graph_member *member;
};

struct graph_parts {
	struct part part[MAX_PARTS];
	uint32_t oldest;	/* which is given up where there are more */
};

struct graph_parts *graph_parts__new(void)
{
	return calloc(1, sizeof(struct graph_parts));
}

void graph_parts__free(struct graph_parts *p)
{
	if (!p)
		return;
	for (int i = 0; i < MAX_PARTS; i++)
		free(p->part[i].member);
	free(p);
}

static void forget(struct part *part)
{
	free(part->member);
	memset(part, 0, sizeof(*part));
}

static struct part *find(struct graph_parts *p, uint32_t generation)
{
	for (int i = 0; i < MAX_PARTS; i++)
		if (p->part[i].generation == generation)
			return &p->part[i];
	return NULL;
}

/* NULL: out of memory. */
static struct part *begin(struct graph_parts *p, uint32_t generation, uint32_t all)
{
	struct part *part = find(p, generation);

	if (!part)
		part = find(p, 0);
	if (!part)
		part = &p->part[p->oldest++ % MAX_PARTS];
	forget(part);
	part->member = calloc(all, sizeof(*part->member));
	if (!part->member)
		return NULL;
	part->generation = generation;
	part->all = all;
	return part;
}

int graph_parts__add(struct graph_parts *p, uint32_t generation, uint32_t all, uint32_t first,
		     const struct graph_member *members, uint32_t nr, struct graph_member **whole)
{
	struct part *part = first ? find(p, generation) : NULL;

	*whole = NULL;
	if (!generation || !all || (first && !part))
		return 0;
	if (!first)
		part = begin(p, generation, all);
	if (!part)
		return -ENOMEM;
	if (part->all != all || part->got != first || nr > all - first) {
		forget(part);
		return 0;
	}
	memcpy(part->member + first, members, nr * sizeof(*members));
	part->got += nr;
	if (part->got < all)
		return 0;
	*whole = part->member;
	part->member = NULL;
	forget(part);
	return 0;
}
