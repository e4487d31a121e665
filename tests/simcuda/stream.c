// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Streams: a time line each, on which work is placed the moment it is enqueued. */
#include "sim.h"
#include <stdlib.h>
#include <string.h>

static struct slab slab = SLAB(struct CUstream_st);
static unsigned long long ids = 16;

static void max_into(int64_t *p, int64_t v)
{
	int64_t old = __atomic_load_n(p, __ATOMIC_RELAXED);

	while (old < v && !__atomic_compare_exchange_n(p, &old, v, true, __ATOMIC_ACQ_REL,
						       __ATOMIC_RELAXED))
		;
}

bool stream__blocking(const struct CUstream_st *s)
{
	return s->kind != STREAM_LEGACY && !(s->flags & CU_STREAM_NONBLOCKING);
}

CUstream stream__new(CUcontext c, int kind, unsigned flags)
{
	CUstream s = slab__get(&slab);

	s->flags = flags;
	s->kind = kind;
	s->priority = 0;
	s->ctx = c;
	s->generation = c->generation;
	s->id = kind == STREAM_LEGACY ? 7 : __atomic_add_fetch(&ids, 1, __ATOMIC_RELAXED);
	if (!s->own_ready)
		pthread_mutex_init(&s->own, NULL);
	s->own_ready = true;
	s->lock = kind == STREAM_LEGACY || stream__blocking(s) ? &c->lock : &s->own;
	s->end = SIM_NONE;
	s->pdl_from = SIM_NONE;
	s->open = NULL;
	if (dev.queue && !s->ring)
		s->ring = calloc(dev.queue, sizeof(*s->ring));
	s->ring_head = s->ring_count = 0;
	s->first = NULL;
	s->last = &s->first;
	s->queued = s->slots = 0;
	s->destroyed = s->listed = false;
	s->capture = NULL;
	s->tail_count = 0;
	s->next_in_capture = s->next_own = s->next_held = NULL;
	store(&s->magic, M_STREAM);
	return s;
}

static void forget_events(CUstream s)
{
	while (s->open) {
		CUevent e = s->open;

		s->open = e->next;
		e->stream = NULL;
	}
}

/* The handle is dead at once, work goes on; a stream with work of unknown end is kept till then. */
void stream__free(CUstream s)
{
	bool busy;

	capture__forget_stream(s);
	pthread_mutex_lock(s->lock);
	store(&s->magic, M_DEAD);
	forget_events(s);
	s->destroyed = true;
	busy = s->listed;
	pthread_mutex_unlock(s->lock);
	if (!busy)
		slab__put(&slab, s);
}

/* That work may have reached records of events meanwhile. */
void stream__reclaim(CUstream s)
{
	pthread_mutex_lock(s->lock);
	forget_events(s);
	pthread_mutex_unlock(s->lock);
	slab__put(&slab, s);
}

static CUresult own_stream(struct thread *t, CUstream *out)
{
	CUcontext c;
	CUresult r = ctx__current(t, &c);
	CUstream *link = &t->streams;

	while (!r && *link) {
		CUstream s = *link;

		if (s->ctx == c && s->generation == c->generation) {
			*out = s;
			return CU_OK;
		}
		if (ctx__alive(s->ctx, s->generation)) {
			link = &s->next_own;
			continue;
		}
		*link = s->next_own;
		stream__free(s);
	}
	if (r)
		return r;
	*out = stream__new(c, STREAM_PER_THREAD, 0);
	(*out)->next_own = t->streams;
	t->streams = *out;
	return CU_OK;
}

CUresult stream__resolve(struct thread *t, CUstream handle, bool ptsz, CUstream *out)
{
	CUstream s = handle;
	CUcontext c;
	CUresult r;

	if (likely((uintptr_t)handle > 2)) {
		if (unlikely(s->magic != M_STREAM)) {
			count(t, C_stale);
			dev__stale();
			return CU_INVALID_HANDLE;
		}
		if (!ctx__alive(s->ctx, s->generation)) {
			count(t, C_stale);
			return CU_CONTEXT_IS_DESTROYED;
		}
		*out = s;
		return CU_OK;
	}
	if (handle == CU_STREAM_PER_THREAD || (ptsz && !handle))
		return own_stream(t, out);
	r = ctx__current(t, &c);
	if (!r)
		*out = c->legacy;
	return r;
}

/* --- the time line ---------------------------------------------------------------------------- */
static void ring__retire(CUstream s, int64_t now)
{
	while (s->ring_count && s->ring[s->ring_head] <= now) {
		s->ring_head = (s->ring_head + 1) % dev.queue;
		s->ring_count--;
	}
}

void stream__reserve(CUstream s, unsigned entries)
{
	bool waited = false;

	pthread_mutex_lock(s->lock);
	if (likely(!dev.queue))
		return;
	for (;;) {
		int64_t until;

		ring__retire(s, now_ns());
		if (s->ring_count + s->slots + entries <= dev.queue)
			return;
		until = s->ring_count ? s->ring[s->ring_head] : SIM_NEVER;
		pthread_mutex_unlock(s->lock);
		if (!waited) {
			count(thread__self(), C_queue_waits);
			trace__flush(thread__self());
		}
		waited = true;
		if (until != SIM_NEVER)
			sim__sleep_until(until);
		else
			sim__nap();
		pthread_mutex_lock(s->lock);
	}
}

void stream__unlock(CUstream s)
{
	pthread_mutex_unlock(s->lock);
}

void stream__took_entry(CUstream s, int64_t end)
{
	if (likely(!dev.queue) || !s->ring)
		return;
	/* items that leave the waiting part keep their entry, so there is always room */
	s->ring[(s->ring_head + s->ring_count++) % dev.queue] = end;
}

int64_t stream__base(CUstream s)
{
	int64_t base = s->end, other = SIM_NONE;

	if (s->kind == STREAM_LEGACY)
		other = s->ctx->blocking_end;
	else if (stream__blocking(s))
		other = s->ctx->legacy->end;
	return base > other ? base : other;
}

void stream__close_events(CUstream s, int64_t start)
{
	while (s->open) {
		CUevent e = s->open;

		s->open = e->next;
		e->stream = NULL;
		store(&e->before, start == SIM_NONE ? e->when : start);
	}
}

void stream__place(CUstream s, struct work *w, int64_t now)
{
	int64_t base = stream__base(s);

	if (w->pdl && s->pdl_from != SIM_NONE) {
		/* may overlap the launch before it, but nothing of another stream */
		base = s->kind == STREAM_LEGACY ? s->ctx->blocking_end :
		       stream__blocking(s) ? s->ctx->legacy->end : SIM_NONE;
		if (base < s->pdl_from + SIM_PDL_LEAD)
			base = s->pdl_from + SIM_PDL_LEAD;
	}
	w->start = base > now ? base : now;
	w->end = w->start + w->ns;
	if (s->end < w->end)
		s->end = w->end;
	s->pdl_from = w->kernel ? w->start : SIM_NONE;
	if (stream__blocking(s) && s->ctx->blocking_end < s->end)
		s->ctx->blocking_end = s->end;
	max_into(&s->ctx->any_end, s->end);
	for (CUevent e = s->open; e; e = e->next)
		e->copy = w->copy;
	stream__close_events(s, w->start);
	stream__took_entry(s, w->end);
}

/* --- waiting ---------------------------------------------------------------------------------- */
bool stream__idle(CUstream s)
{
	bool idle;

	pthread_mutex_lock(s->lock);
	queue__advance(s);
	idle = !queue__holds_below(s) && s->end <= now_ns() &&
	       (s->kind != STREAM_LEGACY || s->ctx->blocking_end <= now_ns());
	pthread_mutex_unlock(s->lock);
	return idle;
}

static void synced(int64_t until)
{
	if (dev.always_busy)
		max_into(&dev.synced_until, until);
}

CUresult stream__wait_done(CUstream s)
{
	int64_t begun = now_ns(), until;

	for (;;) {
		bool held;

		pthread_mutex_lock(s->lock);
		queue__advance(s);
		held = queue__holds_below(s);
		until = s->end;
		if (s->kind == STREAM_LEGACY && s->ctx->blocking_end > until)
			until = s->ctx->blocking_end;
		pthread_mutex_unlock(s->lock);
		if (!held)
			break;
		if (!ctx__alive(s->ctx, s->generation))
			return CU_CONTEXT_IS_DESTROYED;
		sim__nap();
	}
	sim__sleep_until(until);
	synced(until);
	trace__waited(begun);
	return dev__sticky_error();
}

void ctx__wait_done(CUcontext c)
{
	unsigned generation = c->generation;
	int64_t begun = now_ns(), until;

	while (load(&c->held) && ctx__alive(c, generation))
		sim__nap();
	until = load(&c->any_end);
	sim__sleep_until(until);
	synced(until);
	trace__waited(begun);
}

/* --- entries ---------------------------------------------------------------------------------- */
static CUresult create(CUstream *out, unsigned flags, int priority)
{
	CUcontext c;
	CUresult r = ctx__current(thread__self(), &c);

	if (r)
		return r;
	if (!out || flags & ~(unsigned)CU_STREAM_NONBLOCKING)
		return CU_INVALID_VALUE;
	*out = stream__new(c, STREAM_PLAIN, flags);
	(*out)->priority = priority;
	return CU_OK;
}

API(cuStreamCreate, CUstream *s, unsigned flags) { ENTER(); RET(create(s, flags, 0)); }

API(cuStreamCreateWithPriority, CUstream *s, unsigned flags, int priority)
{
	ENTER();
	RET(create(s, flags, priority));
}

static CUresult destroy(CUstream s)
{
	if ((uintptr_t)s <= 2 || s->magic != M_STREAM)
		return CU_INVALID_HANDLE;
	stream__free(s);
	return CU_OK;
}

API(cuStreamDestroy, CUstream s) { ENTER(); RET(destroy(s)); }
API(cuStreamDestroy_v2, CUstream s) { ENTER(); RET(destroy(s)); }

static CUresult synchronize(CUstream handle, bool ptsz)
{
	struct thread *t = thread__self();
	CUstream s;
	CUresult r = stream__resolve(t, handle, ptsz, &s);

	if (!r && capture__any())
		r = capture__stream_used(s, t);
	if (r)
		return r;
	trace__flush(t);
	return stream__wait_done(s);
}

API(cuStreamSynchronize, CUstream s) { ENTER(); RET(synchronize(s, false)); }
API(cuStreamSynchronize_ptsz, CUstream s) { ENTER(); RET(synchronize(s, true)); }

static CUresult query(CUstream handle, bool ptsz)
{
	struct thread *t = thread__self();
	CUstream s;
	CUresult r = stream__resolve(t, handle, ptsz, &s);

	if (!r && capture__any())
		r = capture__stream_used(s, t);
	if (!r)
		r = dev__sticky_error();
	if (!r && !stream__idle(s))
		r = CU_NOT_READY;
	return r;
}

API(cuStreamQuery, CUstream s) { ENTER(); RET(query(s, false)); }
API(cuStreamQuery_ptsz, CUstream s) { ENTER(); RET(query(s, true)); }

#define ASK(name, type, rule, expression)                                                         \
	API(name, CUstream handle, type *out)                                                     \
	{                                                                                         \
		CUstream s;                                                                       \
		CUresult r;                                                                       \
												  \
		ENTER();                                                                          \
		r = stream__resolve(thread__self(), handle, false, &s);                           \
		if (!r)                                                                           \
			r = (rule);                                                               \
		if (!r)                                                                           \
			*out = (expression);                                                      \
		RET(r);                                                                           \
	}                                                                                         \
	API(name##_ptsz, CUstream handle, type *out)                                              \
	{                                                                                         \
		CUstream s;                                                                       \
		CUresult r;                                                                       \
												  \
		ENTER();                                                                          \
		r = stream__resolve(thread__self(), handle, true, &s);                            \
		if (!r)                                                                           \
			r = (rule);                                                               \
		if (!r)                                                                           \
			*out = (expression);                                                      \
		RET(r);                                                                           \
	}

/* Asking for the legacy stream's context breaks the capture of a blocking stream (measured). */
ASK(cuStreamGetCtx, CUcontext, capture__legacy_used(s), s->ctx)
ASK(cuStreamGetId, unsigned long long, CU_OK, s->id)
ASK(cuStreamGetFlags, unsigned, CU_OK, s->flags)
ASK(cuStreamGetPriority, int, CU_OK, s->priority)
ASK(cuStreamGetDevice, CUdevice, CU_OK, s->ctx->device)
