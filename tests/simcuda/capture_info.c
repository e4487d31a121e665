// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Questions about captures, and waits for events, which may be part of one. */
#include "sim.h"

struct info {
	int status;
	unsigned long long id;
	CUgraph graph;
	const CUgraphNode *deps;
	size_t count;
};

static CUresult ask(CUstream handle, bool ptsz, struct info *info)
{
	struct thread *t = thread__self();
	CUstream s;
	CUresult r = stream__resolve(t, handle, ptsz, &s);

	*info = (struct info){ .status = CU_CAPTURE_NONE };
	count(t, C_capturing_asked);
	if (r || likely(!capture__any()))
		return r;
	capture__lock();
	if (s->capture) {
		info->status = s->capture->dead ? CU_CAPTURE_DEAD : CU_CAPTURE_ACTIVE;
		info->id = s->capture->id;
		info->graph = s->capture->graph;
		info->deps = s->tail;
		info->count = s->tail_count;
	}
	/* the legacy stream may not be asked while a blocking stream captures; nothing breaks */
	for (struct capture *c = captures; c && s->kind == STREAM_LEGACY; c = c->next)
		for (CUstream o = c->streams; o; o = o->next_in_capture)
			if (o->ctx == s->ctx && stream__blocking(o))
				r = CU_CAPTURE_IMPLICIT;
	capture__unlock();
	return r;
}

static CUresult is_capturing(CUstream s, bool ptsz, int *status)
{
	struct info info;
	CUresult r = status ? ask(s, ptsz, &info) : CU_INVALID_VALUE;

	if (!r)
		*status = info.status;
	else if (r == CU_CAPTURE_IMPLICIT)	/* measured: one line more than other errors */
		sim__log("operation would make the legacy stream depend on a capturing stream");
	return r;
}

API(cuStreamIsCapturing, CUstream s, int *status)
{
	ENTER_IN_CHILD_TOO();
	RET(is_capturing(s, false, status));
}

API(cuStreamIsCapturing_ptsz, CUstream s, int *status)
{
	ENTER_IN_CHILD_TOO();
	RET(is_capturing(s, true, status));
}

static CUresult get_info(CUstream s, bool ptsz, int *status, unsigned long long *id, CUgraph *g,
			 const CUgraphNode **deps, size_t *n)
{
	struct info info;
	CUresult r = status ? ask(s, ptsz, &info) : CU_INVALID_VALUE;

	if (r)
		return r;
	*status = info.status;
	if (id)
		*id = info.id;
	if (g)
		*g = info.graph;
	if (deps)
		*deps = info.deps;
	if (n)
		*n = info.count;
	return CU_OK;
}

#define INFO(suffix, ptsz)                                                                        \
	API(cuStreamGetCaptureInfo##suffix, CUstream s, int *status, unsigned long long *id)      \
	{                                                                                         \
		ENTER();                                                                          \
		RET(get_info(s, ptsz, status, id, NULL, NULL, NULL));                             \
	}                                                                                         \
	API(cuStreamGetCaptureInfo_v2##suffix, CUstream s, int *status, unsigned long long *id,   \
	    CUgraph *g, const CUgraphNode **deps, size_t *n)                                      \
	{                                                                                         \
		ENTER();                                                                          \
		RET(get_info(s, ptsz, status, id, g, deps, n));                                   \
	}                                                                                         \
	API(cuStreamGetCaptureInfo_v3##suffix, CUstream s, int *status, unsigned long long *id,   \
	    CUgraph *g, const CUgraphNode **deps, const void **edges, size_t *n)                  \
	{                                                                                         \
		ENTER();                                                                          \
		if (edges)                                                                        \
			*edges = NULL;                                                            \
		RET(get_info(s, ptsz, status, id, g, deps, n));                                   \
	}
INFO(, false)
INFO(_ptsz, true)

static void wait_now(CUstream s, CUevent e)
{
	struct mark *m = queue__mark_event(e);
	int64_t when = load(&e->when);

	pthread_mutex_lock(s->lock);
	if (m) {
		queue__wait_for(s, m);
	} else if (queue__holds(s)) {
		queue__wait_for(s, mark__new(when));
	} else if (when > s->end && when > now_ns()) {
		stream__close_events(s, SIM_NONE);
		s->pdl_from = SIM_NONE;
		s->end = when;
		if (stream__blocking(s) && s->ctx->blocking_end < when)
			s->ctx->blocking_end = when;
	}
	pthread_mutex_unlock(s->lock);
}

static CUresult wait_event(CUstream handle, bool ptsz, CUevent e, unsigned flags)
{
	CUstream s;
	CUresult r = stream__resolve(thread__self(), handle, ptsz, &s);
	bool done = false;

	if (!r)
		r = event__check(e);
	if (!r && flags & ~1u)
		r = CU_INVALID_VALUE;
	if (!r && (capture__any() || e->capture_id))
		r = capture__wait(s, e, flags & CU_EVENT_WAIT_EXTERNAL, &done);
	if (r || done || !load(&e->recorded))
		return r;
	wait_now(s, e);
	return CU_OK;
}

API(cuStreamWaitEvent, CUstream s, CUevent e, unsigned flags)
{
	ENTER();
	RET(wait_event(s, false, e, flags));
}

API(cuStreamWaitEvent_ptsz, CUstream s, CUevent e, unsigned flags)
{
	ENTER();
	RET(wait_event(s, true, e, flags));
}
