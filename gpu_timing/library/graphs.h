/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which kernels an executable graph runs. The driver has no call that lists them, so they are read from the
 * graph that it is made of, or updated by, in the thread that does so, as soon as the driver has: later that
 * graph may be gone. What changes a node otherwise makes the whole unknown, unless its kernel stays. What was
 * made while nobody recorded isn't known either: the same handle may stand for another one by now.
 */
#ifndef LIBRARY_GRAPHS_H
#define LIBRARY_GRAPHS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu_timing/cuda_types.h"

#define MAX_EXECS 16384
#define EXEC_PROBES 64

struct exec {
	uint64_t handle;	/* of the last one here */
	uint64_t state;		/* generation of its GRAPH; 0: free; EXEC_TAKEN */
	uint64_t check;		/* hash of its nodes */
	uint64_t sets;		/* of the table, when these were read */
};

struct graph_table {
	uint32_t generation;	/* of the last GRAPH */
	uint32_t first;		/* of this session: what was told before holds no more */
	uint32_t usable;	/* bool: all calls that make, change or end an executable graph are seen */
	uint64_t sets;		/* how often a node of a graph was set */
	struct exec execs[MAX_EXECS];
};

/* A session begins; nobody is inside. */
void graphs__begin(void);
/* Our hooks are in: can we rely on it that nothing goes unseen? */
void graphs__armed(void);

/* The generation that holds for an executable graph that has just been launched; 0: not known. */
uint32_t graph__find(uint64_t handle);
/* A node that runs this kernel has been made, which lives at this moment. */
void graph__added(uint64_t function);
/* The same; it has run another until now. */
void graph__node_set(uint64_t function);
/* It runs what `graph` has, from now on. */
void graph__made(CUgraphExec exec, CUgraph graph);
/* The same, as often as the program likes: read only if the thread can pay for it (sampler.h). */
void graph__updated(CUgraphExec exec, CUgraph graph);
/* What it runs is not known any more, or it is about to be destroyed. */
void graph__unknown(CUgraphExec exec);
/* A node of it, by its handle in the graph that it was made of, runs `function` from now on. */
void graph__changed(CUgraphExec exec, CUgraphNode node, uint64_t function);

#endif
