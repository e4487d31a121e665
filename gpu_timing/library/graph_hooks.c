// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What stands in the slots of the entries that make, change and end executable graphs. The result is always
 * that of the driver's own function, and errno as that left it.
 */
#include "gpu_timing/library/graph_nodes.h"
#include "gpu_timing/library/library.h"

static CUresult made(CUresult r, const CUgraphExec *exec, CUgraph graph)
{
	if (!r && exec && library__is_active())
		graph__made(*exec, graph);
	return r;
}

#define INSTANTIATE(name, slot)								\
	static CUresult name(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log, size_t size) \
	{											\
		CUresult (*original)(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t) =	\
			lib.original[slot];							\
												\
		return made(original(exec, graph, node, log, size), exec, graph);		\
	}

INSTANTIATE(instantiate, SLOT_INSTANTIATE)
INSTANTIATE(instantiate_v2, SLOT_INSTANTIATE_V2)

static CUresult instantiate_flags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	CUresult (*original)(CUgraphExec *, CUgraph, unsigned long long) =
		lib.original[SLOT_INSTANTIATE_FLAGS];

	return made(original(exec, graph, flags), exec, graph);
}

#define INSTANTIATE_PARAMS(name, slot)							\
	static CUresult name(CUgraphExec *exec, CUgraph graph, void *params)			\
	{											\
		CUresult (*original)(CUgraphExec *, CUgraph, void *) = lib.original[slot];	\
												\
		return made(original(exec, graph, params), exec, graph);			\
	}

INSTANTIATE_PARAMS(instantiate_params, SLOT_INSTANTIATE_PARAMS)
INSTANTIATE_PARAMS(instantiate_params_ptsz, SLOT_INSTANTIATE_PARAMS_PTSZ)

/* After one that failed it isn't known how much of it was done. */
static CUresult updated(CUresult r, CUgraphExec exec, CUgraph graph)
{
	if (!library__is_active())
		return r;
	if (r)
		graph__unknown(exec);
	else
		graph__updated(exec, graph);
	return r;
}

static CUresult update(CUgraphExec exec, CUgraph graph, CUgraphNode *node, int *result)
{
	CUresult (*original)(CUgraphExec, CUgraph, CUgraphNode *, int *) = lib.original[SLOT_EXEC_UPDATE];

	return updated(original(exec, graph, node, result), exec, graph);
}

static CUresult update_v2(CUgraphExec exec, CUgraph graph, void *result)
{
	CUresult (*original)(CUgraphExec, CUgraph, void *) = lib.original[SLOT_EXEC_UPDATE_V2];

	return updated(original(exec, graph, result), exec, graph);
}

/* Before the call: its handle may come again at once. */
static CUresult destroy(CUgraphExec exec)
{
	CUresult (*original)(CUgraphExec) = lib.original[SLOT_EXEC_DESTROY];

	if (library__is_active())
		graph__unknown(exec);
	return original(exec);
}

/* Before CUDA 12.0 a node's parameters ended before the kernel. */
static CUresult set_kernel(CUgraphExec exec, CUgraphNode node, const struct kernel_node *params)
{
	CUresult (*original)(CUgraphExec, CUgraphNode, const struct kernel_node *) =
		lib.original[SLOT_EXEC_KERNEL];
	CUresult r = original(exec, node, params);

	if (!r && library__is_active())
		graph__changed(exec, node, (uint64_t)params->function);
	return r;
}

static CUresult set_kernel_v2(CUgraphExec exec, CUgraphNode node, const struct kernel_node *params)
{
	CUresult (*original)(CUgraphExec, CUgraphNode, const struct kernel_node *) =
		lib.original[SLOT_EXEC_KERNEL_V2];
	CUresult r = original(exec, node, params);

	if (!r && library__is_active())
		graph__changed(exec, node, kernel_node__handle(params));
	return r;
}

/* CUgraphNodeParams: what the parameters are of, then those. */
struct node_params {
	int type, reserved[3];
	struct kernel_node kernel;
};

/* What is no kernel has no name that could change, but for a graph inside of it. */
static CUresult set_node(CUgraphExec exec, CUgraphNode node, const struct node_params *params)
{
	CUresult (*original)(CUgraphExec, CUgraphNode, const struct node_params *) =
		lib.original[SLOT_EXEC_NODE];
	CUresult r = original(exec, node, params);

	if (r || !library__is_active())
		return r;
	if (params->type == GRAPH_NODE_KERNEL)
		graph__changed(exec, node, kernel_node__handle(&params->kernel));
	else if (params->type != GRAPH_NODE_MEMCPY && params->type != GRAPH_NODE_MEMSET)
		graph__unknown(exec);
	return r;
}

static CUresult set_child(CUgraphExec exec, CUgraphNode node, CUgraph child)
{
	CUresult (*original)(CUgraphExec, CUgraphNode, CUgraph) = lib.original[SLOT_EXEC_CHILD];
	CUresult r = original(exec, node, child);

	if (library__is_active())
		graph__unknown(exec);
	return r;
}

static CUresult set_enabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled)
{
	CUresult (*original)(CUgraphExec, CUgraphNode, unsigned int) = lib.original[SLOT_NODE_ENABLED];
	CUresult r = original(exec, node, enabled);

	/* Which ones are off isn't kept. */
	if (!enabled && library__is_active())
		graph__unknown(exec);
	return r;
}

/* After it has succeeded. */
static CUresult added(uint64_t function)
{
	if (library__is_active())
		graph__added(function);
	return CUDA_SUCCESS;
}

static CUresult add_kernel(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t nr,
			   const struct kernel_node *params)
{
	CUresult (*original)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
			     const struct kernel_node *) = lib.original[SLOT_ADD_KERNEL];
	CUresult r = original(node, graph, after, nr, params);

	return r ? r : added((uint64_t)params->function);
}

static CUresult add_kernel_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t nr,
			      const struct kernel_node *params)
{
	CUresult (*original)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
			     const struct kernel_node *) = lib.original[SLOT_ADD_KERNEL_V2];
	CUresult r = original(node, graph, after, nr, params);

	return r ? r : added(kernel_node__handle(params));
}

static CUresult add_node(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t nr,
			 const struct node_params *params)
{
	CUresult (*original)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
			     const struct node_params *) = lib.original[SLOT_ADD_NODE];
	CUresult r = original(node, graph, after, nr, params);

	return r || params->type != GRAPH_NODE_KERNEL ? r : added(kernel_node__handle(&params->kernel));
}

static CUresult add_node_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, const void *edges,
			    size_t nr, const struct node_params *params)
{
	CUresult (*original)(CUgraphNode *, CUgraph, const CUgraphNode *, const void *, size_t,
			     const struct node_params *) = lib.original[SLOT_ADD_NODE_V2];
	CUresult r = original(node, graph, after, edges, nr, params);

	return r || params->type != GRAPH_NODE_KERNEL ? r : added(kernel_node__handle(&params->kernel));
}

/* In the graph itself, not in what was made of it before. */
static CUresult node_set(uint64_t function)
{
	if (library__is_active())
		graph__node_set(function);
	return CUDA_SUCCESS;
}

static CUresult node_set_kernel(CUgraphNode node, const struct kernel_node *params)
{
	CUresult (*original)(CUgraphNode, const struct kernel_node *) = lib.original[SLOT_SET_KERNEL];
	CUresult r = original(node, params);

	return r ? r : node_set((uint64_t)params->function);
}

static CUresult node_set_kernel_v2(CUgraphNode node, const struct kernel_node *params)
{
	CUresult (*original)(CUgraphNode, const struct kernel_node *) = lib.original[SLOT_SET_KERNEL_V2];
	CUresult r = original(node, params);

	return r ? r : node_set(kernel_node__handle(params));
}

static CUresult node_set_any(CUgraphNode node, const struct node_params *params)
{
	CUresult (*original)(CUgraphNode, const struct node_params *) = lib.original[SLOT_SET_NODE];
	CUresult r = original(node, params);

	return r || params->type != GRAPH_NODE_KERNEL ? r : node_set(kernel_node__handle(&params->kernel));
}

void *hook__graph(uint32_t slot)
{
	static void *const hooks[SLOT_CAPTURES - SLOT_GRAPHS] = {
#define HOOK(slot, hook) [slot - SLOT_GRAPHS] = hook
		HOOK(SLOT_INSTANTIATE, instantiate),
		HOOK(SLOT_INSTANTIATE_V2, instantiate_v2),
		HOOK(SLOT_INSTANTIATE_FLAGS, instantiate_flags),
		HOOK(SLOT_INSTANTIATE_PARAMS, instantiate_params),
		HOOK(SLOT_INSTANTIATE_PARAMS_PTSZ, instantiate_params_ptsz),
		HOOK(SLOT_EXEC_UPDATE, update),
		HOOK(SLOT_EXEC_UPDATE_V2, update_v2),
		HOOK(SLOT_EXEC_DESTROY, destroy),
		HOOK(SLOT_EXEC_KERNEL, set_kernel),
		HOOK(SLOT_EXEC_KERNEL_V2, set_kernel_v2),
		HOOK(SLOT_EXEC_NODE, set_node),
		HOOK(SLOT_EXEC_CHILD, set_child),
		HOOK(SLOT_NODE_ENABLED, set_enabled),
		HOOK(SLOT_ADD_KERNEL, add_kernel),
		HOOK(SLOT_ADD_KERNEL_V2, add_kernel_v2),
		HOOK(SLOT_ADD_NODE, add_node),
		HOOK(SLOT_ADD_NODE_V2, add_node_v2),
		HOOK(SLOT_SET_KERNEL, node_set_kernel),
		HOOK(SLOT_SET_KERNEL_V2, node_set_kernel_v2),
		HOOK(SLOT_SET_NODE, node_set_any),
#undef HOOK
	};

	return hooks[slot - SLOT_GRAPHS];
}
