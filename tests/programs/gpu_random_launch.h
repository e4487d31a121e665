/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The launches of gpu_random: each is made by one entry and printed with its whole situation. */
#ifndef TESTS_PROGRAMS_GPU_RANDOM_LAUNCH_H
#define TESTS_PROGRAMS_GPU_RANDOM_LAUNCH_H
#include "tests/programs/gpu_random.h"

#define CU_ATTR_COOPERATIVE 2
#define MAX_MULTI 3

enum entry {
	KERNEL, KERNEL_PTSZ, EX, EX_PTSZ, COOP, COOP_PTSZ, OLD, OLD_GRID, OLD_ASYNC, GRAPH_LAUNCH,
	GRAPH_LAUNCH_PTSZ, MULTI, NR_ENTRIES,
};
static const char *const entry_names[NR_ENTRIES] = {
	"cuLaunchKernel", "cuLaunchKernel_ptsz", "cuLaunchKernelEx", "cuLaunchKernelEx_ptsz",
	"cuLaunchCooperativeKernel", "cuLaunchCooperativeKernel_ptsz", "cuLaunch", "cuLaunchGrid",
	"cuLaunchGridAsync", "cuGraphLaunch", "cuGraphLaunch_ptsz",
	"cuLaunchCooperativeKernelMultiDevice",
};

struct launch {
	int n;			/* its number: of one list several */
	enum entry entry;
	CUfunction f;
	const struct graph *graph;
	char name[16];
	unsigned dim[6], shared;	/* grid, block */
	struct where where;
	uint64_t ns;
	bool pdl, event, coop;	/* attributes */
	bool no_config, no_attributes, by_extra;
	int asked, status;	/* whether its stream captures, as the driver says */
	int ctx, current;
	char key[32];
};

static int launches;
static int avoided = -1;	/* an entry that is kept for the gate */
static int during;		/* the launch that another thread is inside of, or 0 */

static inline bool is_graph(const struct launch *l)
{
	return l->entry == GRAPH_LAUNCH || l->entry == GRAPH_LAUNCH_PTSZ;
}

static inline bool is_old(const struct launch *l)
{
	return l->entry == OLD || l->entry == OLD_GRID || l->entry == OLD_ASYNC;
}

/* A function of that context, or a kernel; sets the name. NULL: none was met. */
static inline CUfunction function__pick(int ctx, bool kernels, char name[16])
{
	for (int i = 0; i < 40; i++) {
		const struct module *m = module__pick();
		unsigned k = below(FUNCTIONS);

		if (!m || !m->f[k] || (m->ctx[k] ? m->ctx[k] != ctx : !kernels))
			continue;
		strcpy(name, m->name[k]);
		return m->f[k];
	}
	return NULL;
}

static inline CUresult launch__ex(struct launch *l, void **params, void **extra)
{
	CUlaunchAttribute a[3] = { { .id = CU_ATTR_PDL, .value.allowed = l->pdl } };
	CUlaunchConfig c = { .stream = l->where.h, .attrs = a, .numAttrs = 1,
			     .sharedBytes = l->shared };
	CUevent e = NULL;
	CUresult r;

	memcpy(&c.gridX, l->dim, sizeof(l->dim));
	if (l->coop)
		a[c.numAttrs++] = (CUlaunchAttribute){ .id = CU_ATTR_COOPERATIVE, .value.allowed = 1 };
	l->event = l->event && !cuEventCreate(&e, CU_EVENT_DISABLE_TIMING);
	if (l->event)
		a[c.numAttrs++] = (CUlaunchAttribute){ .id = CU_ATTR_PROGRAMMATIC_EVENT,
						       .value.event.event = e };
	if (l->no_attributes)
		c.attrs = NULL;
	r = l->entry == EX ? cuLaunchKernelEx(l->no_config ? NULL : &c, l->f, params, extra) :
			     cuLaunchKernelEx_ptsz(l->no_config ? NULL : &c, l->f, params, extra);
	if (e)
		cuEventDestroy_v2(e);
	return r;
}

static inline CUresult launch__multi(const struct launch *l, int n, void **params)
{
	CUmultiDeviceLaunch list[MAX_MULTI];

	for (int i = 0; i < n; i++) {
		list[i] = (CUmultiDeviceLaunch){ .func = l->f, .sharedBytes = l->shared,
						 .stream = l->where.h, .params = params };
		memcpy(&list[i].gridX, l->dim, sizeof(l->dim));
		list[i].gridX += (unsigned)i;
	}
	return cuLaunchCooperativeKernelMultiDevice(list, (unsigned)n, 0);
}

static inline CUresult launch__old(const struct launch *l)
{
	uint64_t ns = l->ns;

	cuFuncSetBlockShape(l->f, (int)l->dim[3], (int)l->dim[4], (int)l->dim[5]);
	cuFuncSetSharedSize(l->f, l->shared);
	cuParamSetSize(l->f, sizeof(ns));
	cuParamSetv(l->f, 0, &ns, sizeof(ns));
	if (l->entry == OLD)
		return cuLaunch(l->f);
	if (l->entry == OLD_GRID)
		return cuLaunchGrid(l->f, (int)l->dim[0], (int)l->dim[1]);
	return cuLaunchGridAsync(l->f, (int)l->dim[0], (int)l->dim[1], l->where.h);
}

static inline CUresult launch__call(struct launch *l, int n)
{
	uint64_t ns = l->ns;
	size_t size = sizeof(ns);
	void *of_ns[] = { &ns }, *by_extra[] = { (void *)1, &ns, (void *)2, &size, NULL };
	void **params = l->by_extra ? NULL : of_ns, **extra = l->by_extra ? by_extra : NULL;
	const unsigned *d = l->dim;
	CUstream s = l->where.h;

	switch (l->entry) {
	case KERNEL:
		return cuLaunchKernel(l->f, d[0], d[1], d[2], d[3], d[4], d[5], l->shared, s, params, extra);
	case KERNEL_PTSZ:
		return cuLaunchKernel_ptsz(l->f, d[0], d[1], d[2], d[3], d[4], d[5], l->shared, s, params,
					   extra);
	case EX:
	case EX_PTSZ:
		return launch__ex(l, params, extra);
	case COOP:
		return cuLaunchCooperativeKernel(l->f, d[0], d[1], d[2], d[3], d[4], d[5], l->shared, s,
						 of_ns);
	case COOP_PTSZ:
		return cuLaunchCooperativeKernel_ptsz(l->f, d[0], d[1], d[2], d[3], d[4], d[5], l->shared,
						      s, of_ns);
	case MULTI:
		return launch__multi(l, n, of_ns);
	case GRAPH_LAUNCH:
		return cuGraphLaunch(l->graph ? l->graph->x : NULL, s);
	case GRAPH_LAUNCH_PTSZ:
		return cuGraphLaunch_ptsz(l->graph ? l->graph->x : NULL, s);
	default:
		return launch__old(l);
	}
}

static inline void launch__print(const struct launch *l, int i, int inside, CUresult r)
{
	const unsigned *d = l->dim;

	printf("t%d launch n=%d entry=%s kernel=%s ", me, l->n + i, entry_names[l->entry], l->name);
	if (is_graph(l))
		printf("grid=- block=- shared=- ns=- ");
	else
		printf("grid=%u,%u,%u block=%u,%u,%u shared=%u ns=%llu ", d[0] + (unsigned)i, d[1], d[2],
		       d[3], d[4], d[5], l->shared, (unsigned long long)l->ns);
	printf("attributes=%d%d%d hooked=%d stream=%s key=%s ctx=%d current=%d asked=%d:%d during=%d = %d\n",
	       l->pdl && !l->no_attributes, l->event && !l->no_attributes, l->coop && !l->no_attributes,
	       !l->no_config, l->where.text, l->key, l->ctx, l->current,
	       l->asked, l->status, inside, r);
}

/* Number and situation, then the call. A thread that sleeps inside of it keeps nothing in common data. */
static inline CUresult launch__run(struct launch *l)
{
	int n = l->entry == MULTI ? 1 + (int)below(MAX_MULTI) : 1, self = me, inside = during;
	CUresult r;

	l->current = ctx__now();
	strcpy(l->key, where__key(&l->where, &l->ctx));
	l->asked = l->where.own ? cuStreamIsCapturing_ptsz(l->where.h, &l->status) :
				  cuStreamIsCapturing(l->where.h, &l->status);
	if (l->entry == MULTI && l->status)
		return CU_CAPTURE_UNSUPPORTED;
	l->n = launches + 1;
	launches += n;
	if (!is_graph(l) && l->entry != OLD && l->dim[0])
		l->dim[0] = (unsigned)l->n;	/* known by it in every account */
	r = launch__call(l, n);
	me = self;
	for (int i = 0; i < (r ? 1 : n); i++)
		launch__print(l, i, inside, r);
	return r;
}

/* One of the ways to make it fail. */
static inline void launch__spoil(struct launch *l)
{
	switch (l->entry == OLD ? 2 : below(5)) {
	case 0:
		l->dim[0] = 0;
		break;
	case 1:
		l->dim[3] = 2048;
		break;
	case 2:
		l->f = NULL;
		l->graph = NULL;
		strcpy(l->name, "-");
		break;
	case 3:
		l->no_config = l->entry == EX || l->entry == EX_PTSZ;
		break;
	default:
		l->no_attributes = l->entry == EX || l->entry == EX_PTSZ;
		break;
	}
}

static inline enum entry entry__pick(void)
{
	enum entry e;

	do
		e = (enum entry)below(NR_ENTRIES);
	while ((int)e == avoided || (e >= GRAPH_LAUNCH && one_in(2)));
	return e;
}

static inline bool entry__is_own(enum entry e)
{
	return e == KERNEL_PTSZ || e == EX_PTSZ || e == COOP_PTSZ || e == GRAPH_LAUNCH_PTSZ;
}

/* All but entry and stream by chance. False: there is nothing to launch in that context. */
static inline bool launch__fill(struct launch *l, enum entry entry, struct where w)
{
	int ctx;

	*l = (struct launch){ .entry = entry, .dim = { 1, 1, 1, 32, 1, 1 } };
	l->where = entry == OLD || entry == OLD_GRID ? where__of(NULL, false) : w;
	l->where.own = entry__is_own(entry);
	where__key(&l->where, &ctx);
	if (is_graph(l)) {
		l->graph = graph__pick();
		if (!l->graph || !l->graph->x)
			return false;
		snprintf(l->name, sizeof(l->name), "graph%d", l->graph->nodes);
	} else {
		l->f = function__pick(one_in(60) ? 1 + (int)below((unsigned)ids[CTX]) : ctx,
				      !is_old(l), l->name);
		if (!l->f)
			return false;
	}
	l->ns = one_in(25) ? 100000 + below(200000) : 500 + below(20000);
	if (entry == OLD)
		l->dim[3] = 1 + below(64);
	else
		l->dim[1] = 1 + below(4);
	l->dim[2] = is_old(l) ? 1 : 1 + below(2);
	l->shared = below(3) * 256;
	l->by_extra = entry <= EX_PTSZ && one_in(4);
	if (entry == EX || entry == EX_PTSZ) {
		l->coop = one_in(6);
		l->pdl = one_in(5);
		l->event = one_in(80);
	}
	/* A list that is refused from its second on would be half done. */
	if (one_in(30) && entry != MULTI)
		launch__spoil(l);
	return true;
}

static CUresult launch_into(enum entry entry, struct where w)
{
	struct launch l;

	return launch__fill(&l, entry, w) ? launch__run(&l) : CU_INVALID_VALUE;
}

#endif
