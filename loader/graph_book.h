/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the graphs of one process run, by the generations that its launches name, and the stacks of the
 * launches that were captured into them. All is the target's and may be made up: what is kept is bounded.
 */
#ifndef LOADER_GRAPH_BOOK_H
#define LOADER_GRAPH_BOOK_H

#include <linux/types.h>
#include <stdint.h>

#include "gpu_timing/channel.h"
#include "loader/base/table.h"
#include "loader/graphs.h"

struct graph_book;

/* `graphs` of all processes, which must outlive it. NULL: out of memory. */
struct graph_book *graph_book__new(struct graphs *graphs);
void graph_book__free(struct graph_book *b);	/* NULL is fine */

/* A launch, by its id, went into a capture from this stack. 0 or -ENOMEM. */
int graph_book__captured(struct graph_book *b, uint64_t launch, uint32_t stack);
/*
 * A checked record of the channel with nr members; `names`: generations of names -> sizes << 32 | work
 * (works.h). What can't be kept is counted in *lost. 0 or -ENOMEM.
 */
int graph_book__add(struct graph_book *b, const struct channel_graph *g, uint32_t nr,
		    const struct table *names, uint64_t *lost);
/*
 * The graph (graphs.h) of that generation, to be asked once the record of a launch of it was read: those of
 * what was captured into it came before. *id 0: not known. 0 or -ENOMEM.
 */
int graph_book__find(struct graph_book *b, uint32_t generation, uint64_t *lost, uint32_t *id);

#endif
