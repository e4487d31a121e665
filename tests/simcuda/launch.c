// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* All ways to launch a kernel or a graph. */
#include "sim.h"
#include <stdlib.h>
#include <string.h>

#define MAX_BLOCK 1024

struct launch {
	const char *entry;
	bool ptsz;
	CUfunction function;
	unsigned dim[6], shared;
	CUstream stream;
	void **params, **extra;
	bool pdl;
	CUevent at_start, at_end;	/* of attributes 12 and 7 */
};

static void *copy_of(const void *p, size_t n)
{
	void *copy = malloc(n);

	memcpy(copy, p, n);
	return copy;
}

/* Work of unknown time: its line is written when it has been placed, by whoever does that. */
static void push_work(CUstream s, const struct work *w, const struct truth_line *l)
{
	struct queue_item *i = queue__push(s, I_WORK);

	i->work = *w;
	if (!truth_on)
		return;
	i->truth = copy_of(l, sizeof(*l));
	if (l->name)
		i->truth->name = i->truth->owned = strdup(l->name);
}

static void place_work(struct thread *t, CUstream s, struct work *w, const struct truth_line *l)
{
	stream__reserve(s, 1);
	if (unlikely(queue__holds(s))) {
		push_work(s, w, l);
		stream__unlock(s);
		return;
	}
	stream__place(s, w, now_ns());
	stream__unlock(s);
	if (truth_on)
		trace__write(t, l, w->start, w->end);
}

static bool dims_bad(const unsigned *d)
{
	return !d[0] || !d[1] || !d[2] || !d[3] || !d[4] || !d[5] ||
	       (uint64_t)d[3] * d[4] * d[5] > MAX_BLOCK;
}

static CUresult launch_check(const struct launch *a, struct thread *t, CUstream *s,
			     struct launchable *l)
{
	CUresult r = stream__resolve(t, a->stream, a->ptsz, s);

	if (!r)
		r = func__look(a->function, (*s)->ctx, l);
	if (!r && dims_bad(a->dim))
		r = CU_INVALID_VALUE;
	return r;
}

/* Capturing: the launch becomes a node and *done is set. */
static CUresult launch_captured(const struct launch *a, CUstream s, const struct launchable *l,
				bool *done)
{
	CUgraphNode n;
	CUresult r = capture__node(s, CU_NODE_KERNEL, &n);

	if (!n)
		return r;
	n->params.func = l->function;
	n->params.kern = l->kernel;
	node__set_name(n, l->name);
	memcpy(&n->params.gridX, a->dim, sizeof(a->dim));
	n->params.sharedBytes = a->shared;
	n->params.ctx = s->ctx;
	n->full_ns = func__length(l, a->params, a->extra);
	capture__unlock();
	*done = true;
	return CU_OK;
}

static CUresult launch__run(const struct launch *a, struct thread *t)
{
	struct truth_line line;
	struct launchable l;
	struct work w;
	CUstream s;
	CUresult r = launch_check(a, t, &s, &l);
	bool captured = false;

	if (!r && unlikely(capture__any()))
		r = launch_captured(a, s, &l, &captured);
	if (r)
		return r;
	line = (struct truth_line){
		.entry = a->entry, .name = l.name, .shared = a->shared, .stream = a->stream,
		.ctx_id = s->ctx->id, .tid = t->tid, .kernel = true,
	};
	memcpy(line.dim, a->dim, sizeof(line.dim));
	if (captured) {
		count(t, C_captured);
		trace__write(t, &line, SIM_NONE, SIM_NONE);
		return CU_OK;
	}
	w = (struct work){ .ns = func__length(&l, a->params, a->extra), .kernel = true,
			   .pdl = a->pdl };
	place_work(t, s, &w, &line);
	if (w.end)
		func__tell(&l, a->params, w.start, w.end);
	if (a->pdl)
		count(t, C_pdl);
	if (a->at_start)
		event__set(a->at_start, w.start);
	if (a->at_end)
		event__set(a->at_end, w.end);
	return CU_OK;
}

static CUresult launch(const struct launch *a)
{
	struct thread *t = thread__self();
	CUresult r = launch__run(a, t);

	if (r) {
		count(t, C_failed);
		return r;
	}
	count(t, C_launches);
	if (unlikely(dev.count_globally))
		dev__count_launch();
	return CU_OK;
}

#define KERNEL_ENTRY(name, per_thread)                                                            \
	API(name, CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,  \
	    unsigned bz, unsigned shared, CUstream s, void **params, void **extra)                \
	{                                                                                         \
		ENTER();                                                                          \
		RET(launch(&(struct launch){                                                      \
			.entry = #name, .ptsz = per_thread, .function = f,                        \
			.dim = { gx, gy, gz, bx, by, bz }, .shared = shared, .stream = s,         \
			.params = params, .extra = extra }));                                     \
	}
KERNEL_ENTRY(cuLaunchKernel, false)
KERNEL_ENTRY(cuLaunchKernel_ptsz, true)

#define COOPERATIVE_ENTRY(name, per_thread)                                                       \
	API(name, CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,  \
	    unsigned bz, unsigned shared, CUstream s, void **params)                              \
	{                                                                                         \
		ENTER();                                                                          \
		RET(launch(&(struct launch){                                                      \
			.entry = #name, .ptsz = per_thread, .function = f,                        \
			.dim = { gx, gy, gz, bx, by, bz }, .shared = shared, .stream = s,         \
			.params = params }));                                                     \
	}
COOPERATIVE_ENTRY(cuLaunchCooperativeKernel, false)
COOPERATIVE_ENTRY(cuLaunchCooperativeKernel_ptsz, true)

/* An event that is to be recorded by the launch itself can't carry a time. */
static CUresult attribute_event(const CUlaunchAttribute *attribute, CUevent *out)
{
	CUevent e = attribute->value.event.event;
	CUresult r = event__check(e);

	if (!r && !(e->flags & CU_EVENT_DISABLE_TIMING))
		r = CU_INVALID_VALUE;
	if (!r)
		*out = e;
	return r;
}

static CUresult read_attributes(const CUlaunchConfig *c, struct launch *a)
{
	const CUlaunchAttribute *attrs = c->attrs;
	CUresult r = CU_OK;

	if (c->numAttrs && !attrs)
		return CU_INVALID_VALUE;
	for (unsigned i = 0; !r && i < c->numAttrs; i++) {
		switch (attrs[i].id) {
		case CU_ATTR_PDL:
			a->pdl = attrs[i].value.allowed != 0;
			break;
		case CU_ATTR_PROGRAMMATIC_EVENT:
			r = attribute_event(&attrs[i], &a->at_end);
			break;
		case CU_ATTR_COMPLETION_EVENT:
			r = attribute_event(&attrs[i], &a->at_start);
			break;
		}
	}
	return r;
}

static CUresult launch_ex(const char *entry, bool ptsz, const CUlaunchConfig *c, CUfunction f,
			  void **params, void **extra)
{
	struct launch a = { .entry = entry, .ptsz = ptsz, .function = f, .params = params,
			    .extra = extra };
	CUresult r;

	if (!c)
		return CU_INVALID_VALUE;
	memcpy(a.dim, &c->gridX, sizeof(a.dim));
	a.shared = c->sharedBytes;
	a.stream = c->stream;
	r = read_attributes(c, &a);
	return r ? r : launch(&a);
}

API(cuLaunchKernelEx, const CUlaunchConfig *c, CUfunction f, void **params, void **extra)
{
	ENTER();
	RET(launch_ex("cuLaunchKernelEx", false, c, f, params, extra));
}

API(cuLaunchKernelEx_ptsz, const CUlaunchConfig *c, CUfunction f, void **params, void **extra)
{
	ENTER();
	RET(launch_ex("cuLaunchKernelEx_ptsz", true, c, f, params, extra));
}

API(cuLaunchCooperativeKernelMultiDevice, CUmultiDeviceLaunch *list, unsigned n, unsigned flags)
{
	CUresult r = CU_OK;

	(void)flags;
	ENTER();
	if (!list || !n)
		RET(CU_INVALID_VALUE);
	for (unsigned i = 0; i < n; i++)	/* default streams are not allowed here */
		if ((uintptr_t)list[i].stream <= 2)
			RET(CU_INVALID_VALUE);
	for (unsigned i = 0; !r && i < n; i++) {
		const CUmultiDeviceLaunch *p = &list[i];
		struct launch a = { .entry = "cuLaunchCooperativeKernelMultiDevice",
				    .function = p->func, .shared = p->sharedBytes,
				    .stream = p->stream, .params = p->params };

		memcpy(a.dim, &p->gridX, sizeof(a.dim));
		r = launch(&a);
	}
	RET(r);
}

/* --- the first form: shape and parameters set before ------------------------------------------ */
static CUresult launch_grid(const char *entry, CUfunction f, int x, int y, CUstream s)
{
	void *params[1];
	struct launch a = { .entry = entry, .function = f, .stream = s, .params = params };

	if (!f || f->magic != M_FUNC)
		return CU_INVALID_HANDLE;
	if (x < 1 || y < 1)
		return CU_INVALID_VALUE;
	params[0] = &f->param;
	a.dim[0] = (unsigned)x;
	a.dim[1] = (unsigned)y;
	a.dim[2] = 1;
	memcpy(&a.dim[3], f->block, sizeof(f->block));
	a.shared = f->shared;
	return launch(&a);
}

API(cuLaunch, CUfunction f) { ENTER(); RET(launch_grid("cuLaunch", f, 1, 1, NULL)); }

API(cuLaunchGrid, CUfunction f, int x, int y)
{
	ENTER();
	RET(launch_grid("cuLaunchGrid", f, x, y, NULL));
}

API(cuLaunchGridAsync, CUfunction f, int x, int y, CUstream s)
{
	ENTER();
	RET(launch_grid("cuLaunchGridAsync", f, x, y, s));
}

/* --- graphs ----------------------------------------------------------------------------------- */
/* One executable graph runs once at a time. */
static int64_t place_graph(struct thread *t, CUgraphExec x, CUstream s,
			   const struct truth_line *l)
{
	struct work w = { .ns = x->ns };
	int64_t now;

	stream__reserve(s, 1);
	if (unlikely(queue__holds(s))) {
		push_work(s, &w, l);
		stream__unlock(s);
		return SIM_NEVER;
	}
	now = now_ns();
	stream__place(s, &w, now > x->busy_until ? now : x->busy_until);
	x->busy_until = w.end;
	stream__unlock(s);
	trace__write(t, l, w.start, w.end);
	return w.start;
}

static void record_inside(CUgraph g, int64_t start)
{
	for (size_t i = 0; i < g->count; i++) {
		CUgraphNode n = g->nodes[i];

		if (n->type == CU_NODE_EVENT_RECORD && !event__check(n->event))
			event__set(n->event, start + n->start);
		else if (n->child)
			record_inside(n->child, start + n->start);
	}
}

static CUresult graph_launch(const char *entry, CUgraphExec x, CUstream handle, bool ptsz)
{
	struct thread *t = thread__self();
	struct truth_line line = { .entry = entry, .stream = handle, .tid = t->tid };
	CUgraphNode n = NULL;
	CUstream s;
	CUresult r = stream__resolve(t, handle, ptsz, &s);
	int64_t start;

	if (!r && (!x || x->magic != M_EXEC))
		r = CU_INVALID_HANDLE;
	if (!r && capture__any())
		r = capture__node(s, CU_NODE_GRAPH, &n);
	if (r) {
		count(t, C_failed);
		return r;
	}
	trace__graph(t, x->graph);
	line.nodes = x->graph->count;
	line.ctx_id = s->ctx->id;
	if (n) {
		n->child = graph__copy(x->graph);
		capture__unlock();
		count(t, C_captured);
		trace__write(t, &line, SIM_NONE, SIM_NONE);
	} else {
		start = place_graph(t, x, s, &line);
		if (start != SIM_NEVER)
			record_inside(x->graph, start);
	}
	count(t, C_graph_launches);
	if (unlikely(dev.count_globally))
		dev__count_launch();
	return CU_OK;
}

API(cuGraphLaunch, CUgraphExec x, CUstream s)
{
	ENTER();
	RET(graph_launch("cuGraphLaunch", x, s, false));
}

API(cuGraphLaunch_ptsz, CUgraphExec x, CUstream s)
{
	ENTER();
	RET(graph_launch("cuGraphLaunch_ptsz", x, s, true));
}
