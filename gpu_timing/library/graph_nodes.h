/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The nodes of a graph that take time of the device: kernels, copies and sets, those of graphs inside of it
 * included. Nobody but the caller may use that graph meanwhile; the program's thread that has just made
 * something of it is such a caller.
 */
#ifndef LIBRARY_GRAPH_NODES_H
#define LIBRARY_GRAPH_NODES_H

#include <linux/types.h>
#include <stdint.h>

#include "gpu_timing/channel.h"
#include "gpu_timing/cuda_types.h"

struct graph_nodes {
	struct channel_node *node;	/* alike ones that follow each other are one; `name` is 0 */
	uint32_t nr;
	uint32_t all;			/* nodes of any kind */
	struct graph_room *room;
};

/*
 * 0; -ENOTSUP: what it runs isn't settled before it does (conditional nodes), or it has a kind of node that
 * isn't known; -E2BIG: too many; -ENOMEM; -EIO: the driver would not say. graph_nodes__free must follow.
 */
int graph_nodes__read(struct graph_nodes *n, CUgraph graph);
void graph_nodes__free(struct graph_nodes *n);

/* CUfunction or CUkernel of a node; 0: it is no kernel, or the driver would not say. */
uint64_t graph_nodes__kernel(CUgraphNode node);

/* CUgraphNodeType, CUDA 13.0. */
enum graph_node_type {
	GRAPH_NODE_KERNEL = 0,
	GRAPH_NODE_MEMCPY = 1,
	GRAPH_NODE_MEMSET = 2,
	GRAPH_NODE_GRAPH = 4,
	GRAPH_NODE_CONDITIONAL = 13,	/* from here on: not known */
};

/* CUDA_KERNEL_NODE_PARAMS as of CUDA 12.0; before, `kernel` and `context` were not there. */
struct kernel_node {
	void *function;			/* CUfunction, of a kernel as well as the driver tells it; or NULL */
	unsigned int grid[3];
	unsigned int block[3];
	unsigned int shared_bytes;
	void **params;
	void **extra;
	void *kernel;			/* CUkernel */
	void *context;
};
_Static_assert(sizeof(struct kernel_node) == 72, "the driver's");

/* The handle that the program has launched: of a kernel nobody need ever have seen the function. */
static inline uint64_t kernel_node__handle(const struct kernel_node *p)
{
	return (uint64_t)(p->kernel ? p->kernel : p->function);
}

#endif
