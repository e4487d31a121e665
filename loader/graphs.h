/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What executable graphs run, as the targets tell it: alike ones are kept once and known by a number. All is
 * the targets' and may be made up: what is kept is bounded.
 */
#ifndef LOADER_GRAPHS_H
#define LOADER_GRAPHS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/shapes.h"

/* Nodes that are alike. */
struct graph_member {
	uint32_t copy;		/* 0: kernels; else copies or sets: their enum copy_kind + 1 */
	uint32_t work;		/* of a kernel: number of its name (works.h); 0: not known */
	uint32_t count;		/* of nodes, at least 1 */
	uint32_t stack;		/* from which they were captured (stacks.h); STACKS_NONE: not known */
	uint64_t launch;	/* on its way: which launch that was; then 0 */
	struct shape shape;
	uint32_t sizes;		/* of a kernel, works__sizes(); 0: not known */
};

struct graphs;

struct graphs *graphs__new(void);	/* NULL: out of memory */
void graphs__free(struct graphs *g);	/* NULL is fine */

#define GRAPHS_MEMBERS (1u << 20)	/* that are kept, of all graphs */

/*
 * The number of a graph with these members, in whatever order, which it sorts and of which it makes one of
 * alike ones; nr > 0. 0: too many are kept already. Negative errno: -ENOMEM.
 */
int graphs__add(struct graphs *g, struct graph_member *members, size_t nr, uint32_t *id);
/* NULL, and *nr 0, for a number that was never given out. Valid until the next is added. */
const struct graph_member *graphs__get(const struct graphs *g, uint32_t id, size_t *nr);

/* Graphs on their way, which come in parts: of each process its own. */
struct graph_parts;

struct graph_parts *graph_parts__new(void);	/* NULL: out of memory */
void graph_parts__free(struct graph_parts *p);	/* NULL is fine */

/*
 * nr members, from `first` on, of a graph that has `all`. Where these are the last ones, *members is the
 * array of all of them, to be freed, else NULL. 0 or -ENOMEM. What comes out of order is dropped.
 */
int graph_parts__add(struct graph_parts *p, uint32_t generation, uint32_t all, uint32_t first,
		     const struct graph_member *part, uint32_t nr, struct graph_member **members);

#endif
