// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "gpu_timing/library/graph_nodes.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "gpu_timing/library/library.h"

#define MAX_DEPTH 8		/* of graphs inside of each other */

/*
 * Mapped for the time of one reading, as there may be neither malloc nor such a stack. Untouched pages cost
 * nothing.
 */
struct graph_room {
	CUgraphNode list[CHANNEL_GRAPH_NODES];	/* of the graphs under way, the outer ones first */
	struct channel_node node[CHANNEL_GRAPH_NODES];
};

static int read_graph(struct graph_nodes *n, CUgraph graph, uint32_t listed, int depth);

static void add(struct graph_nodes *n, const struct channel_node *node)
{
	struct channel_node *last = n->nr ? &n->node[n->nr - 1] : NULL;
	struct channel_node one = *node;

	if (last) {
		one.count = last->count;
		if (!memcmp(last, &one, sizeof(one))) {
			last->count++;
			return;
		}
	}
	one.count = 1;
	n->node[n->nr++] = one;
}

static int read_kernel(struct graph_nodes *n, CUgraph graph, CUgraphNode handle)
{
	struct channel_node node = { 0 };
	struct kernel_node p = { 0 };

	if (lib.driver.kernel_node(handle, &p))
		return -EIO;
	node.function = kernel_node__handle(&p);
	memcpy(node.grid, p.grid, sizeof(node.grid));
	memcpy(node.block, p.block, sizeof(node.block));
	node.shared_bytes = p.shared_bytes;
	/* It isn't to be asked for its name as what it is not. */
	node.launch = capture__launch(handle, graph, true);
	name__suppose(node.function, p.kernel ? HANDLE_KERNEL : HANDLE_FUNCTION);
	add(n, &node);
	return 0;
}

static void read_copy(struct graph_nodes *n, CUgraph graph, CUgraphNode handle, enum copy_kind kind)
{
	add(n, &(struct channel_node){ .launch = capture__launch(handle, graph, false), .copy = kind + 1 });
}

static int read_node(struct graph_nodes *n, CUgraph graph, CUgraphNode handle, uint32_t listed, int depth)
{
	CUgraph child = NULL;
	int type = -1;

	if (lib.driver.node_type(handle, &type))
		return -EIO;
	switch (type) {
	case GRAPH_NODE_KERNEL:
		return read_kernel(n, graph, handle);
	case GRAPH_NODE_MEMCPY:
		read_copy(n, graph, handle, COPY_UNKNOWN);
		return 0;
	case GRAPH_NODE_MEMSET:
		read_copy(n, graph, handle, COPY_SET);
		return 0;
	case GRAPH_NODE_GRAPH:
		if (lib.driver.child_graph(handle, &child) || !child)
			return -EIO;
		return read_graph(n, child, listed, depth + 1);
	default:
		/* The others run nothing on the device, though some wait. */
		return type < 0 || type >= GRAPH_NODE_CONDITIONAL ? -ENOTSUP : 0;
	}
}

/* `listed`: elements of the room's list that are in use. */
static int read_graph(struct graph_nodes *n, CUgraph graph, uint32_t listed, int depth)
{
	CUgraphNode *list = n->room->list + listed;
	size_t nr = 0, max = CHANNEL_GRAPH_NODES - listed;
	int err = 0;

	if (depth == MAX_DEPTH)
		return -E2BIG;
	if (lib.driver.graph_nodes(graph, NULL, &nr))
		return -EIO;
	if (nr > max || nr > CHANNEL_GRAPH_NODES - n->all)
		return -E2BIG;
	if (nr && lib.driver.graph_nodes(graph, list, &nr))
		return -EIO;
	n->all += (uint32_t)nr;
	for (size_t i = 0; i < nr && !err; i++)
		err = read_node(n, graph, list[i], listed + (uint32_t)nr, depth);
	return err;
}

int graph_nodes__read(struct graph_nodes *n, CUgraph graph)
{
	void *room = mmap(NULL, sizeof(*n->room), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	memset(n, 0, sizeof(*n));
	if (room == MAP_FAILED)
		return -ENOMEM;
	n->room = room;
	n->node = n->room->node;
	return read_graph(n, graph, 0, 0);
}

void graph_nodes__free(struct graph_nodes *n)
{
	if (n->room)
		munmap(n->room, sizeof(*n->room));
}

uint64_t graph_nodes__kernel(CUgraphNode node)
{
	struct kernel_node p = { 0 };
	int type;

	if (lib.driver.node_type(node, &type) || type != GRAPH_NODE_KERNEL ||
	    lib.driver.kernel_node(node, &p))
		return 0;
	return kernel_node__handle(&p);
}
