// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Executable graphs: a copy in which nodes have their start; branches run in parallel. */
#include "sim.h"
#include <string.h>

static struct slab execs = SLAB(struct CUgraphExec_st);

/* Nodes depend on earlier ones only, so one pass over them is enough. */
static int64_t graph__schedule(CUgraph g)
{
	int64_t total = 0;

	for (size_t i = 0; i < g->count; i++) {
		CUgraphNode n = g->nodes[i];

		n->start = 0;
		if (n->type == CU_NODE_KERNEL && !func__is(&n->params, n->name))
			node__set_name(n, "?");
		if (n->child)
			n->ns = graph__schedule(n->child);
		else
			n->ns = n->off ? 0 : n->full_ns;
		for (size_t k = 0; k < n->dep_count; k++)
			if (n->start < n->deps[k]->start + n->deps[k]->ns)
				n->start = n->deps[k]->start + n->deps[k]->ns;
		if (total < n->start + n->ns)
			total = n->start + n->ns;
	}
	return total;
}

static CUresult instantiate(CUgraphExec *out, CUgraph g)
{
	CUresult r = graph__check(g);
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

static CUresult update(CUgraphExec x, CUgraph g, int *result)
{
	enum { TOPOLOGY_CHANGED = 2 };
	CUgraph old;

	if (!x || x->magic != M_EXEC || graph__check(g))
		return CU_INVALID_VALUE;
	*result = 0;
	if (!same_shape(x->graph, g)) {
		*result = TOPOLOGY_CHANGED;
		return CU_GRAPH_EXEC_UPDATE_FAILURE;
	}
	old = x->graph;
	x->graph = graph__copy(g);
	x->ns = graph__schedule(x->graph);
	graph__free(old);
	return CU_OK;
}

API(cuGraphExecUpdate, CUgraphExec x, CUgraph g, CUgraphNode *bad, int *result)
{
	int ignored;

	(void)bad;
	ENTER();
	RET(update(x, g, result ? result : &ignored));
}

API(cuGraphExecUpdate_v2, CUgraphExec x, CUgraph g, CUgraphUpdateInfo *info)
{
	CUgraphUpdateInfo ignored;

	ENTER();
	if (!info)
		info = &ignored;
	*info = (CUgraphUpdateInfo){ 0 };
	RET(update(x, g, &info->result));
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

/* --- changing single nodes ------------------------------------------------------------------------ */
/* The node of an executable graph that was made from this one. */
static CUresult find(CUgraphExec x, CUgraphNode n, CUgraphNode *own)
{
	if (!x || x->magic != M_EXEC || !n || n->magic != M_NODE || n->index >= x->graph->count ||
	    x->graph->nodes[n->index]->type != n->type)
		return CU_INVALID_VALUE;
	*own = x->graph->nodes[n->index];
	return CU_OK;
}

static CUresult set_kernel(CUgraphExec x, CUgraphNode n, const CUkernelNodeParams *p)
{
	CUgraphNode own;
	CUresult r = find(x, n, &own);

	if (!r)
		r = node__set_kernel(own, p);
	if (!r)
		x->ns = graph__schedule(x->graph);
	return r;
}

API(cuGraphExecKernelNodeSetParams, CUgraphExec x, CUgraphNode n, const CUkernelNodeParams *p)
{
	CUkernelNodeParams full = { 0 };

	ENTER();
	memcpy(&full, p, offsetof(CUkernelNodeParams, kern));
	RET(set_kernel(x, n, &full));
}

API(cuGraphExecKernelNodeSetParams_v2, CUgraphExec x, CUgraphNode n, const CUkernelNodeParams *p)
{
	ENTER();
	RET(set_kernel(x, n, p));
}

API(cuGraphExecNodeSetParams, CUgraphExec x, CUgraphNode n, CUgraphNodeParams *p)
{
	ENTER();
	RET(p->type == CU_NODE_KERNEL ? set_kernel(x, n, &p->kernel) : CU_NOT_SUPPORTED);
}

API(cuGraphExecChildGraphNodeSetParams, CUgraphExec x, CUgraphNode n, CUgraph child)
{
	CUgraphNode own;
	CUresult r = find(x, n, &own);

	ENTER();
	if (!r && (n->type != CU_NODE_GRAPH || graph__check(child) || !same_shape(own->child, child)))
		r = CU_INVALID_VALUE;
	if (r)
		RET(r);
	graph__free(own->child);
	own->child = graph__copy(child);
	x->ns = graph__schedule(x->graph);
	RET(CU_OK);
}

API(cuGraphNodeSetEnabled, CUgraphExec x, CUgraphNode n, unsigned enabled)
{
	CUgraphNode own;
	CUresult r = find(x, n, &own);

	ENTER();
	if (!r && n->type > CU_NODE_MEMSET)
		r = CU_INVALID_VALUE;
	if (r)
		RET(r);
	own->off = !enabled;
	x->ns = graph__schedule(x->graph);
	RET(CU_OK);
}
