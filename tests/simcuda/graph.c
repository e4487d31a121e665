// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Graphs and their nodes. */
#include "sim.h"
#include <stdlib.h>
#include <string.h>

static struct slab graphs = SLAB(struct CUgraph_st), nodes = SLAB(struct CUgraphNode_st);

CUgraph graph__new(void)
{
	CUgraph g = slab__get(&graphs);

	memset(g, 0, sizeof(*g));
	store(&g->magic, M_GRAPH);
	return g;
}

CUgraphNode graph__add(CUgraph g, int type, const CUgraphNode *deps, size_t n)
{
	CUgraphNode node = slab__get(&nodes);

	memset(node, 0, sizeof(*node));
	node->type = type;
	node->index = g->count;
	node->dep_count = n;
	if (n) {
		node->deps = malloc(n * sizeof(*deps));
		memcpy(node->deps, deps, n * sizeof(*deps));
	}
	if (g->count == g->room) {
		g->room = g->room * 2 + 8;
		g->nodes = realloc(g->nodes, g->room * sizeof(*g->nodes));
	}
	g->nodes[g->count++] = node;
	store(&node->magic, M_NODE);
	return node;
}

void node__set_name(CUgraphNode n, const char *name)
{
	free(n->name);
	n->name = name ? strdup(name) : NULL;
}

void graph__free(CUgraph g)
{
	for (size_t i = 0; i < g->count; i++) {
		CUgraphNode n = g->nodes[i];

		if (n->child)
			graph__free(n->child);
		free(n->deps);
		free(n->name);
		store(&n->magic, M_DEAD);
		slab__put(&nodes, n);
	}
	free(g->nodes);
	store(&g->magic, M_DEAD);
	slab__put(&graphs, g);
}

CUgraph graph__copy(CUgraph g)
{
	CUgraph copy = graph__new();

	for (size_t i = 0; i < g->count; i++) {
		CUgraphNode from = g->nodes[i];
		CUgraphNode to = graph__add(copy, from->type, from->deps, from->dep_count);

		for (size_t k = 0; k < to->dep_count; k++)
			to->deps[k] = copy->nodes[from->deps[k]->index];
		to->params = from->params;
		to->full_ns = from->full_ns;
		to->off = from->off;
		node__set_name(to, from->name);
		to->event = from->event;
		if (from->child)
			to->child = graph__copy(from->child);
	}
	return copy;
}

/* --- making them ------------------------------------------------------------------------------ */
CUresult graph__check(CUgraph g)
{
	return g && g->magic == M_GRAPH ? CU_OK : CU_INVALID_VALUE;
}

static CUresult check_deps(CUgraph g, const CUgraphNode *deps, size_t n)
{
	CUresult r = graph__check(g);

	for (size_t i = 0; !r && i < n; i++)
		if (!deps || !deps[i] || deps[i]->magic != M_NODE ||
		    deps[i]->index >= g->count || g->nodes[deps[i]->index] != deps[i])
			r = CU_INVALID_VALUE;
	return r;
}

API(cuGraphCreate, CUgraph *g, unsigned flags)
{
	ENTER();
	if (!g || flags)
		RET(CU_INVALID_VALUE);
	*g = graph__new();
	RET(CU_OK);
}

API(cuGraphDestroy, CUgraph g)
{
	CUresult r = graph__check(g);

	ENTER();
	if (!r)
		graph__free(g);
	RET(r);
}

API(cuGraphClone, CUgraph *copy, CUgraph g)
{
	CUresult r = graph__check(g);

	ENTER();
	if (!r)
		*copy = graph__copy(g);
	RET(r);
}

static CUresult look(const CUkernelNodeParams *p, struct launchable *l)
{
	CUcontext c;
	CUresult r = ctx__current(thread__self(), &c);

	return r ? r : func__look(p->func ? p->func : (CUfunction)(void *)p->kern, c, l);
}

static void set_kernel(CUgraphNode n, const CUkernelNodeParams *p, const struct launchable *l)
{
	n->params = *p;
	n->params.func = l->function;
	n->params.kern = l->kernel;
	node__set_name(n, l->name);
	n->full_ns = func__length(l, p->params, p->extra);
}

CUresult node__set_kernel(CUgraphNode n, const CUkernelNodeParams *p)
{
	struct launchable l;
	CUresult r = n && n->magic == M_NODE && n->type == CU_NODE_KERNEL ? look(p, &l) : CU_INVALID_VALUE;

	if (!r)
		set_kernel(n, p, &l);
	return r;
}

static CUresult add_kernel(CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t n,
			   const CUkernelNodeParams *p)
{
	struct launchable l;
	CUresult r = check_deps(g, deps, n);

	if (!r)
		r = look(p, &l);
	if (r)
		return r;
	*out = graph__add(g, CU_NODE_KERNEL, deps, n);
	set_kernel(*out, p, &l);
	return CU_OK;
}

API(cuGraphAddKernelNode, CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t n,
    const CUkernelNodeParams *p)
{
	CUkernelNodeParams full = { 0 };

	ENTER();
	memcpy(&full, p, offsetof(CUkernelNodeParams, kern));
	RET(add_kernel(out, g, deps, n, &full));
}

API(cuGraphAddKernelNode_v2, CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t n,
    const CUkernelNodeParams *p)
{
	ENTER();
	RET(add_kernel(out, g, deps, n, p));
}

API(cuGraphAddEmptyNode, CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t n)
{
	CUresult r = check_deps(g, deps, n);

	ENTER();
	if (!r)
		*out = graph__add(g, CU_NODE_EMPTY, deps, n);
	RET(r);
}

API(cuGraphAddEventRecordNode, CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t n,
    CUevent e)
{
	CUresult r = check_deps(g, deps, n);

	ENTER();
	if (!r)
		r = event__check(e);
	if (r)
		RET(r);
	*out = graph__add(g, CU_NODE_EVENT_RECORD, deps, n);
	(*out)->event = e;
	RET(CU_OK);
}

API(cuGraphAddChildGraphNode, CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t n,
    CUgraph child)
{
	CUresult r = check_deps(g, deps, n);

	ENTER();
	if (!r)
		r = graph__check(child);
	if (r)
		RET(r);
	*out = graph__add(g, CU_NODE_GRAPH, deps, n);
	(*out)->child = graph__copy(child);
	RET(CU_OK);
}

/* --- asking ----------------------------------------------------------------------------------- */
API(cuGraphGetNodes, CUgraph g, CUgraphNode *v, size_t *n)
{
	CUresult r = graph__check(g);

	ENTER();
	if (!r && !n)
		r = CU_INVALID_VALUE;
	if (r)
		RET(r);
	for (size_t i = 0; v && i < *n && i < g->count; i++)
		v[i] = g->nodes[i];
	*n = g->count;
	RET(CU_OK);
}

API(cuGraphNodeGetType, CUgraphNode n, int *type)
{
	ENTER();
	if (!n || n->magic != M_NODE)
		RET(CU_INVALID_VALUE);
	*type = n->type;
	RET(CU_OK);
}

API(cuGraphKernelNodeGetParams, CUgraphNode n, CUkernelNodeParams *p)
{
	ENTER();
	if (!n || n->magic != M_NODE || n->type != CU_NODE_KERNEL)
		RET(CU_INVALID_VALUE);
	memcpy(p, &n->params, offsetof(CUkernelNodeParams, kern));
	RET(CU_OK);
}

API(cuGraphKernelNodeGetParams_v2, CUgraphNode n, CUkernelNodeParams *p)
{
	ENTER();
	if (!n || n->magic != M_NODE || n->type != CU_NODE_KERNEL)
		RET(CU_INVALID_VALUE);
	*p = n->params;
	RET(CU_OK);
}

API(cuGraphKernelNodeSetParams, CUgraphNode n, const CUkernelNodeParams *p)
{
	CUkernelNodeParams full = { 0 };

	ENTER();
	memcpy(&full, p, offsetof(CUkernelNodeParams, kern));
	RET(node__set_kernel(n, &full));
}

API(cuGraphKernelNodeSetParams_v2, CUgraphNode n, const CUkernelNodeParams *p)
{
	ENTER();
	RET(node__set_kernel(n, p));
}

API(cuGraphNodeSetParams, CUgraphNode n, CUgraphNodeParams *p)
{
	ENTER();
	RET(p->type == CU_NODE_KERNEL ? node__set_kernel(n, &p->kernel) : CU_NOT_SUPPORTED);
}

API(cuGraphChildGraphNodeGetGraph, CUgraphNode n, CUgraph *g)
{
	ENTER();
	if (!n || n->magic != M_NODE || n->type != CU_NODE_GRAPH)
		RET(CU_INVALID_VALUE);
	*g = n->child;
	RET(CU_OK);
}
