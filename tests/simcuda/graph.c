// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Graphs. An executable one is a copy in which nodes have their start; branches run in parallel. */
#include "sim.h"
#include <stdlib.h>
#include <string.h>

static struct slab graphs = SLAB(struct CUgraph_st), nodes = SLAB(struct CUgraphNode_st);
static struct slab execs = SLAB(struct CUgraphExec_st);

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

void graph__free(CUgraph g)
{
	for (size_t i = 0; i < g->count; i++) {
		CUgraphNode n = g->nodes[i];

		if (n->child)
			graph__free(n->child);
		free(n->deps);
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
		to->ns = from->ns;
		to->event = from->event;
		if (from->child)
			to->child = graph__copy(from->child);
	}
	return copy;
}

/* Nodes depend on earlier ones only, so one pass over them is enough. */
static int64_t graph__schedule(CUgraph g)
{
	int64_t total = 0;

	for (size_t i = 0; i < g->count; i++) {
		CUgraphNode n = g->nodes[i];

		n->start = 0;
		if (n->child)
			n->ns = graph__schedule(n->child);
		for (size_t k = 0; k < n->dep_count; k++)
			if (n->start < n->deps[k]->start + n->deps[k]->ns)
				n->start = n->deps[k]->start + n->deps[k]->ns;
		if (total < n->start + n->ns)
			total = n->start + n->ns;
	}
	return total;
}

/* --- making them ------------------------------------------------------------------------------ */
static CUresult check(CUgraph g)
{
	return g && g->magic == M_GRAPH ? CU_OK : CU_INVALID_VALUE;
}

static CUresult check_deps(CUgraph g, const CUgraphNode *deps, size_t n)
{
	CUresult r = check(g);

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
	CUresult r = check(g);

	ENTER();
	if (!r)
		graph__free(g);
	RET(r);
}

API(cuGraphClone, CUgraph *copy, CUgraph g)
{
	CUresult r = check(g);

	ENTER();
	if (!r)
		*copy = graph__copy(g);
	RET(r);
}

static CUresult add_kernel(CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t n,
			   const CUkernelNodeParams *p)
{
	struct launchable l;
	CUcontext c;
	CUresult r = check_deps(g, deps, n);

	if (!r)
		r = ctx__current(thread__self(), &c);
	if (!r)
		r = func__look(p->func ? p->func : (CUfunction)(void *)p->kern, c, &l);
	if (r)
		return r;
	*out = graph__add(g, CU_NODE_KERNEL, deps, n);
	(*out)->params = *p;
	(*out)->params.func = l.function;
	(*out)->params.kern = l.kernel;
	(*out)->ns = func__length(&l, p->params, p->extra);
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
		r = check(child);
	if (r)
		RET(r);
	*out = graph__add(g, CU_NODE_GRAPH, deps, n);
	(*out)->child = graph__copy(child);
	RET(CU_OK);
}

/* --- asking ----------------------------------------------------------------------------------- */
API(cuGraphGetNodes, CUgraph g, CUgraphNode *v, size_t *n)
{
	CUresult r = check(g);

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

API(cuGraphChildGraphNodeGetGraph, CUgraphNode n, CUgraph *g)
{
	ENTER();
	if (!n || n->magic != M_NODE || n->type != CU_NODE_GRAPH)
		RET(CU_INVALID_VALUE);
	*g = n->child;
	RET(CU_OK);
}

/* --- executable graphs ------------------------------------------------------------------------ */
static CUresult instantiate(CUgraphExec *out, CUgraph g)
{
	CUresult r = check(g);
	CUgraphExec x;

	if (!r && !out)
		r = CU_INVALID_VALUE;
	if (r)
		return r;
	x = slab__get(&execs);
	x->graph = graph__copy(g);
	x->ns = graph__schedule(x->graph);
	x->busy_until = SIM_NONE;
	store(&x->magic, M_EXEC);
	*out = x;
	return CU_OK;
}

API(cuGraphInstantiate, CUgraphExec *x, CUgraph g, CUgraphNode *bad, char *text, size_t n)
{
	(void)bad, (void)text, (void)n;
	ENTER();
	RET(instantiate(x, g));
}

API(cuGraphInstantiate_v2, CUgraphExec *x, CUgraph g, CUgraphNode *bad, char *text, size_t n)
{
	(void)bad, (void)text, (void)n;
	ENTER();
	RET(instantiate(x, g));
}

API(cuGraphInstantiateWithFlags, CUgraphExec *x, CUgraph g, unsigned long long flags)
{
	(void)flags;
	ENTER();
	RET(instantiate(x, g));
}

API(cuGraphInstantiateWithParams, CUgraphExec *x, CUgraph g, void *params)
{
	(void)params;
	ENTER();
	RET(instantiate(x, g));
}

API(cuGraphInstantiateWithParams_ptsz, CUgraphExec *x, CUgraph g, void *params)
{
	(void)params;
	ENTER();
	RET(instantiate(x, g));
}

static bool same_shape(CUgraph a, CUgraph b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		CUgraphNode x = a->nodes[i], y = b->nodes[i];

		if (x->type != y->type || x->dep_count != y->dep_count)
			return false;
		for (size_t k = 0; k < x->dep_count; k++)
			if (x->deps[k]->index != y->deps[k]->index)
				return false;
	}
	return true;
}

API(cuGraphExecUpdate_v2, CUgraphExec x, CUgraph g, CUgraphUpdateInfo *info)
{
	enum { TOPOLOGY_CHANGED = 2 };
	CUgraph old;

	ENTER();
	if (!x || x->magic != M_EXEC || check(g))
		RET(CU_INVALID_VALUE);
	if (info)
		*info = (CUgraphUpdateInfo){ 0 };
	if (!same_shape(x->graph, g)) {
		if (info)
			info->result = TOPOLOGY_CHANGED;
		RET(CU_GRAPH_EXEC_UPDATE_FAILURE);
	}
	old = x->graph;
	x->graph = graph__copy(g);
	x->ns = graph__schedule(x->graph);
	graph__free(old);
	RET(CU_OK);
}

API(cuGraphExecDestroy, CUgraphExec x)
{
	ENTER();
	if (!x || x->magic != M_EXEC)
		RET(CU_INVALID_VALUE);
	graph__free(x->graph);
	store(&x->magic, M_DEAD);
	slab__put(&execs, x);
	RET(CU_OK);
}

static CUresult upload(CUgraphExec x, CUstream handle, bool ptsz)
{
	CUstream s;
	CUresult r = stream__resolve(thread__self(), handle, ptsz, &s);

	return r ? r : !x || x->magic != M_EXEC ? CU_INVALID_VALUE : CU_OK;
}

API(cuGraphUpload, CUgraphExec x, CUstream s) { ENTER(); RET(upload(x, s, false)); }
API(cuGraphUpload_ptsz, CUgraphExec x, CUstream s) { ENTER(); RET(upload(x, s, true)); }
