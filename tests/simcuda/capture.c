// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Stream capture: what becomes a node, who may call what meanwhile, what ends a capture early. */
#include "sim.h"
#include <stdlib.h>
#include <string.h>

struct capture *captures;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t ids;

void capture__lock(void) { pthread_mutex_lock(&lock); }
void capture__unlock(void) { pthread_mutex_unlock(&lock); }

static struct capture *capture__find(uint64_t id)
{
	struct capture *c = captures;

	while (c && c->id != id)
		c = c->next;
	return c;
}

/* Work on the legacy stream would come between the nodes of a capturing blocking stream. */
static bool capture__implies_legacy(const struct capture *c, CUcontext ctx)
{
	for (CUstream s = c->streams; s; s = s->next_in_capture)
		if (s->ctx == ctx && stream__blocking(s))
			return true;
	return false;
}

static CUresult legacy_rule(CUstream s)
{
	CUresult r = CU_OK;

	if (s->kind != STREAM_LEGACY)
		return CU_OK;
	for (struct capture *c = captures; c; c = c->next)
		if (capture__implies_legacy(c, s->ctx)) {
			c->dead = true;
			r = CU_CAPTURE_IMPLICIT;
		}
	return r;
}

static CUresult unsafe_rule(struct thread *t)
{
	CUresult r = CU_OK;

	if (t->capture_mode == CU_MODE_RELAXED)
		return CU_OK;
	for (struct capture *c = captures; c; c = c->next) {
		bool mine = c->tid == t->tid && c->mode != CU_MODE_RELAXED;
		bool anyone = t->capture_mode == CU_MODE_GLOBAL && c->mode == CU_MODE_GLOBAL;

		if (mine || anyone) {
			c->dead = true;
			r = CU_CAPTURE_UNSUPPORTED;
		}
	}
	return r;
}

static void tail__set(CUstream s, const CUgraphNode *nodes, size_t n)
{
	if (n > s->tail_room) {
		s->tail_room = n * 2;
		s->tail = realloc(s->tail, s->tail_room * sizeof(*s->tail));
	}
	if (n)
		memcpy(s->tail, nodes, n * sizeof(*nodes));
	s->tail_count = n;
}

static void tail__add(CUstream s, CUgraphNode node)
{
	CUgraphNode *all;

	for (size_t i = 0; i < s->tail_count; i++)
		if (s->tail[i] == node)
			return;
	all = malloc((s->tail_count + 1) * sizeof(*all));
	if (s->tail_count)
		memcpy(all, s->tail, s->tail_count * sizeof(*all));
	all[s->tail_count] = node;
	tail__set(s, all, s->tail_count + 1);
	free(all);
}

CUresult capture__node(CUstream s, int type, CUgraphNode *node)
{
	CUresult r;

	*node = NULL;
	pthread_mutex_lock(&lock);
	if (s->capture && !s->capture->dead) {
		*node = graph__add(s->capture->graph, type, s->tail, s->tail_count);
		tail__set(s, node, 1);
		return CU_OK;
	}
	r = s->capture ? CU_CAPTURE_INVALIDATED : legacy_rule(s);
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult capture__legacy_used(CUstream s)
{
	CUresult r;

	if (!capture__any())
		return CU_OK;
	pthread_mutex_lock(&lock);
	r = legacy_rule(s);
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult capture__unsafe(struct thread *t)
{
	CUresult r;

	if (!capture__any())
		return CU_OK;
	pthread_mutex_lock(&lock);
	r = unsafe_rule(t);
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult capture__stream_used(CUstream s, struct thread *t)
{
	CUresult r;

	pthread_mutex_lock(&lock);
	if (s->capture) {
		s->capture->dead = true;
		r = CU_CAPTURE_UNSUPPORTED;
	} else {
		r = legacy_rule(s);
	}
	if (!r)
		r = unsafe_rule(t);
	pthread_mutex_unlock(&lock);
	return r;
}

/* Waiting for a whole context breaks every capture in it, whatever the mode. */
CUresult capture__ctx_waits(CUcontext ctx)
{
	CUresult r = CU_OK;

	if (!capture__any())
		return CU_OK;
	pthread_mutex_lock(&lock);
	for (struct capture *c = captures; c; c = c->next)
		if (c->origin->ctx == ctx) {
			c->dead = true;
			r = CU_CAPTURE_UNSUPPORTED;
		}
	if (!r)
		r = unsafe_rule(thread__self());
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult capture__event_used(CUevent e, struct thread *t)
{
	struct capture *c;
	CUresult r;

	if (likely(!capture__any() && !e->capture_id))
		return CU_OK;
	pthread_mutex_lock(&lock);
	if (e->capture_id) {
		c = capture__find(e->capture_id);
		if (c)
			c->dead = true;
		r = CU_CAPTURED_EVENT;
	} else {
		r = unsafe_rule(t);
	}
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult capture__record(CUevent e, CUstream s, bool external, bool *done)
{
	struct capture *c;
	CUresult r = CU_OK;

	pthread_mutex_lock(&lock);
	c = s->capture;
	if (!c) {
		r = legacy_rule(s);
	} else if (c->dead) {
		r = CU_CAPTURE_INVALIDATED;
	} else if (external) {
		CUgraphNode n = graph__add(c->graph, CU_NODE_EVENT_RECORD, s->tail, s->tail_count);

		n->event = e;
		tail__set(s, &n, 1);
		*done = true;
	} else {
		event__unlink(e);
		e->seq++;
		e->capture_id = c->id;
		e->tail = realloc(e->tail, (s->tail_count + 1) * sizeof(*e->tail));
		if (s->tail_count)
			memcpy(e->tail, s->tail, s->tail_count * sizeof(*e->tail));
		e->tail_count = s->tail_count;
		e->recorded = true;
		*done = true;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

/* The event was recorded in a capture: the stream joins that capture or waits inside it. */
static CUresult wait_inside(CUstream s, CUevent e)
{
	struct capture *c = capture__find(e->capture_id);

	if (!c)
		return CU_CAPTURED_EVENT;
	if (s->kind == STREAM_LEGACY) {
		c->dead = true;
		return CU_CAPTURE_IMPLICIT;
	}
	if (s->capture && s->capture != c) {
		s->capture->dead = c->dead = true;
		return CU_CAPTURE_MERGE;
	}
	if (c->dead)
		return CU_CAPTURE_INVALIDATED;
	if (!s->capture) {
		s->capture = c;
		s->next_in_capture = c->streams;
		c->streams = s;
		tail__set(s, NULL, 0);
	}
	for (size_t i = 0; i < e->tail_count; i++)
		tail__add(s, e->tail[i]);
	return CU_OK;
}

CUresult capture__wait(CUstream s, CUevent e, bool external, bool *done)
{
	CUresult r = CU_OK;

	pthread_mutex_lock(&lock);
	if (e->capture_id) {
		r = wait_inside(s, e);
		*done = true;
	} else if (s->capture && s->capture->dead) {
		r = CU_CAPTURE_INVALIDATED;
	} else if (s->capture && external) {
		CUgraphNode n = graph__add(s->capture->graph, CU_NODE_WAIT_EVENT, s->tail,
					   s->tail_count);

		n->event = e;
		tail__set(s, &n, 1);
		*done = true;
	} else if (s->capture) {
		s->capture->dead = true;
		r = CU_CAPTURE_ISOLATION;
	} else {
		r = legacy_rule(s);
	}
	pthread_mutex_unlock(&lock);
	return r;
}

void capture__forget_stream(CUstream s)
{
	if (!capture__any())
		return;
	pthread_mutex_lock(&lock);
	if (s->capture)
		s->capture->dead = true;
	for (struct capture *c = captures; c; c = c->next)
		for (CUstream *p = &c->streams; *p; p = &(*p)->next_in_capture)
			if (*p == s) {
				*p = s->next_in_capture;
				break;
			}
	s->capture = NULL;
	pthread_mutex_unlock(&lock);
}

/* --- begin and end ---------------------------------------------------------------------------- */
static CUresult begin(CUstream handle, bool ptsz, CUgraph graph, const CUgraphNode *deps,
		      size_t dep_count, int mode)
{
	struct thread *t = thread__self();
	struct capture *c;
	CUstream s;
	CUresult r = stream__resolve(t, handle, ptsz, &s);

	if (!r && s->kind == STREAM_LEGACY)
		r = CU_CAPTURE_UNSUPPORTED;
	if (!r && (mode < CU_MODE_GLOBAL || mode > CU_MODE_RELAXED))
		r = CU_INVALID_VALUE;
	if (r)
		return r;
	pthread_mutex_lock(&lock);
	if (s->capture) {
		pthread_mutex_unlock(&lock);
		return CU_ILLEGAL_STATE;
	}
	c = calloc(1, sizeof(*c));
	c->id = ++ids;
	c->own_graph = !graph;
	c->graph = graph ? graph : graph__new();
	c->first_node = c->graph->count;
	c->mode = mode;
	c->tid = t->tid;
	c->origin = c->streams = s;
	s->next_in_capture = NULL;
	s->capture = c;
	tail__set(s, deps, dep_count);
	c->next = captures;
	store(&captures, c);
	pthread_mutex_unlock(&lock);
	return CU_OK;
}

/* Every node of the capture has to lie before the end of the stream that began it. */
static bool all_joined(const struct capture *c)
{
	size_t n = c->graph->count;
	bool *reached = calloc(n + 1, 1), all = true;

	for (size_t i = 0; i < c->origin->tail_count; i++)
		reached[c->origin->tail[i]->index] = true;
	for (size_t i = n; i-- > c->first_node;) {
		CUgraphNode node = c->graph->nodes[i];

		all &= reached[i];
		for (size_t k = 0; reached[i] && k < node->dep_count; k++)
			reached[node->deps[k]->index] = true;
	}
	free(reached);
	return all;
}

static void capture__unlink(struct capture *c)
{
	for (struct capture **p = &captures; *p; p = &(*p)->next)
		if (*p == c) {
			store(p, c->next);
			break;
		}
	while (c->streams) {
		CUstream s = c->streams;

		c->streams = s->next_in_capture;
		s->capture = NULL;
		s->tail_count = 0;
	}
}

static CUresult end(CUstream handle, bool ptsz, CUgraph *graph)
{
	struct thread *t = thread__self();
	struct capture *c;
	CUstream s;
	CUresult r = stream__resolve(t, handle, ptsz, &s);

	if (!r && !graph)
		r = CU_INVALID_VALUE;
	if (r)
		return r;
	pthread_mutex_lock(&lock);
	c = s->capture;
	if (!c)
		r = CU_ILLEGAL_STATE;
	else if (c->origin != s)
		r = CU_CAPTURE_UNMATCHED;
	else if (c->mode != CU_MODE_RELAXED && c->tid != t->tid)
		r = CU_CAPTURE_WRONG_THREAD;
	if (r)
		goto out;
	*graph = NULL;
	r = c->dead ? CU_CAPTURE_INVALIDATED : all_joined(c) ? CU_OK : CU_CAPTURE_UNJOINED;
	capture__unlink(c);
	if (!r)
		*graph = c->graph;
	else if (c->own_graph)
		graph__free(c->graph);
	free(c);
out:
	pthread_mutex_unlock(&lock);
	return r;
}

API(cuStreamBeginCapture, CUstream s) { ENTER(); RET(begin(s, false, NULL, NULL, 0, 0)); }
API(cuStreamBeginCapture_ptsz, CUstream s) { ENTER(); RET(begin(s, true, NULL, NULL, 0, 0)); }

API(cuStreamBeginCapture_v2, CUstream s, int mode)
{
	ENTER();
	RET(begin(s, false, NULL, NULL, 0, mode));
}

API(cuStreamBeginCapture_v2_ptsz, CUstream s, int mode)
{
	ENTER();
	RET(begin(s, true, NULL, NULL, 0, mode));
}

API(cuStreamBeginCaptureToGraph, CUstream s, CUgraph g, const CUgraphNode *deps, const void *data,
    size_t n, int mode)
{
	(void)data;
	ENTER();
	RET(!g || g->magic != M_GRAPH ? CU_INVALID_VALUE : begin(s, false, g, deps, n, mode));
}

API(cuStreamBeginCaptureToGraph_ptsz, CUstream s, CUgraph g, const CUgraphNode *deps,
    const void *data, size_t n, int mode)
{
	(void)data;
	ENTER();
	RET(!g || g->magic != M_GRAPH ? CU_INVALID_VALUE : begin(s, true, g, deps, n, mode));
}

API(cuStreamEndCapture, CUstream s, CUgraph *g) { ENTER(); RET(end(s, false, g)); }
API(cuStreamEndCapture_ptsz, CUstream s, CUgraph *g) { ENTER(); RET(end(s, true, g)); }

API(cuThreadExchangeStreamCaptureMode, int *mode)
{
	struct thread *t = thread__self();
	int old = t->capture_mode;

	ENTER();
	if (!mode || *mode < CU_MODE_GLOBAL || *mode > CU_MODE_RELAXED)
		RET(CU_INVALID_VALUE);
	t->capture_mode = *mode;
	*mode = old;
	RET(CU_OK);
}
