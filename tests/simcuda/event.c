// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Events. An event knows three times: when the stream reached it, when the work before it ended,
 * when the work behind it began. The time between two events of a stream with work between them
 * runs from the start of that work to its end, so that a bracket is exact and the host's own pace
 * does not count; the constants of a real device are added on request (STANDIN_BRACKET_NS).
 */
#include "sim.h"
#include <string.h>

static struct slab slab = SLAB(struct CUevent_st);

CUresult event__check(CUevent e)
{
	if (unlikely(!e || e->magic != M_EVENT)) {
		if (e) {
			count(thread__self(), C_stale);
			dev__stale();
		}
		return CU_INVALID_HANDLE;
	}
	if (likely(ctx__alive(e->ctx, e->generation))) {
		if (unlikely(load(&e->ctx->ending)))
			dev__stale();
		return CU_OK;
	}
	count(thread__self(), C_stale);
	return CU_CONTEXT_IS_DESTROYED;
}

/* Takes it out of the list of the stream that it waits in, or is going to wait in, whoever that is. */
void event__unlink(CUevent e)
{
	CUstream s;

	if (load(&e->when) == SIM_NEVER) {
		pthread_mutex_lock(e->pending->lock);
		e->seq++;
		pthread_mutex_unlock(e->pending->lock);
	}
	while ((s = load(&e->stream))) {
		CUevent *p;

		pthread_mutex_lock(s->lock);
		for (p = &s->open; e->stream == s && *p; p = &(*p)->next)
			if (*p == e) {
				*p = e->next;
				e->stream = NULL;
				break;
			}
		pthread_mutex_unlock(s->lock);
	}
}

void event__place(CUevent e, CUstream s, int64_t when, bool idle)
{
	e->after = s->end == SIM_NONE ? when : s->end;
	e->before = SIM_NONE;
	e->idle = idle;
	e->copy = false;
	e->stream_id = s->id;
	e->next = s->open;
	s->open = e;
	s->pdl_from = SIM_NONE;
	store(&e->stream, s);
	store(&e->when, when);
}

void event__set(CUevent e, int64_t when)
{
	event__unlink(e);
	e->seq++;
	e->capture_id = 0;
	e->after = e->before = when;
	e->idle = false;
	e->stream_id = 0;
	store(&e->when, when);
	store(&e->recorded, true);
}

API(cuEventCreate, CUevent *out, unsigned flags)
{
	struct thread *t = thread__self();
	CUcontext c;
	CUresult r;
	CUevent e;

	ENTER();
	r = ctx__current(t, &c);
	if (!r && (!out || flags & ~7u))
		r = CU_INVALID_VALUE;
	if (r)
		RET(r);
	e = slab__get(&slab);
	e->flags = flags;
	e->ctx = c;
	e->generation = c->generation;
	e->seq++;
	e->capture_id = 0;
	e->recorded = false;
	e->when = e->before = e->after = SIM_NONE;
	e->stream = NULL;
	store(&e->magic, M_EVENT);
	count(t, C_events_made);
	*out = e;
	RET(CU_OK);
}

static CUresult destroy(CUevent e)
{
	CUresult r = event__check(e);

	if (r)		/* of a context that is gone: 709, and the handle stays taken */
		return r;
	event__unlink(e);
	e->seq++;
	store(&e->magic, M_DEAD);
	count(thread__self(), C_events_freed);
	slab__put(&slab, e);
	return CU_OK;
}

API(cuEventDestroy, CUevent e) { ENTER(); RET(destroy(e)); }
API(cuEventDestroy_v2, CUevent e) { ENTER(); RET(destroy(e)); }

static void record_now(CUevent e, CUstream s)
{
	int64_t now, base;

	/* measured: a record takes a queue entry only if it takes the time */
	if (e->flags & CU_EVENT_DISABLE_TIMING)
		pthread_mutex_lock(s->lock);
	else
		stream__reserve(s, 1);
	e->seq++;
	e->capture_id = 0;
	if (unlikely(queue__holds(s))) {
		struct queue_item *i = queue__push(s, e->flags & CU_EVENT_DISABLE_TIMING ?
							I_RECORD_UNTIMED : I_RECORD);

		i->event = e;
		i->event_seq = e->seq;
		e->pending = s;
		store(&e->when, SIM_NEVER);
	} else {
		now = now_ns();
		base = stream__base(s);
		event__place(e, s, base > now ? base : now, base <= now);
		if (!(e->flags & CU_EVENT_DISABLE_TIMING))
			stream__took_entry(s, e->when);
	}
	store(&e->recorded, true);
	stream__unlock(s);
}

static CUresult record(CUevent e, CUstream handle, bool ptsz, unsigned flags)
{
	struct thread *t = thread__self();
	CUstream s;
	CUresult r = stream__resolve(t, handle, ptsz, &s);
	bool done = false;

	/* measured: without a context the event's counts, and a blocking capture in it breaks */
	if (r == CU_INVALID_CONTEXT && !handle && !ptsz && capture__any() && !event__check(e) &&
	    capture__legacy_used(e->ctx->legacy))
		return CU_CAPTURE_IMPLICIT;
	if (!r)
		r = event__check(e);
	if (!r && e->ctx != s->ctx)
		r = CU_INVALID_HANDLE;
	if (!r && flags & ~1u)
		r = CU_INVALID_VALUE;
	if (r)
		return r;
	count(t, C_records);
	if (capture__any())
		r = capture__record(e, s, flags & CU_EVENT_RECORD_EXTERNAL, &done);
	if (r || done)
		return r;
	if (flags & CU_EVENT_RECORD_EXTERNAL)
		return CU_INVALID_VALUE;
	if (unlikely(dev.record_blocks))
		dev__block_record();
	event__unlink(e);
	record_now(e, s);
	return CU_OK;
}

API(cuEventRecord, CUevent e, CUstream s)
{
	ENTER_IN_CHILD_TOO();
	RET(record(e, s, false, 0));
}

API(cuEventRecord_ptsz, CUevent e, CUstream s)
{
	ENTER_IN_CHILD_TOO();
	RET(record(e, s, true, 0));
}


API(cuEventRecordWithFlags, CUevent e, CUstream s, unsigned flags)
{
	ENTER();
	RET(record(e, s, false, flags));
}

API(cuEventRecordWithFlags_ptsz, CUevent e, CUstream s, unsigned flags)
{
	ENTER();
	RET(record(e, s, true, flags));
}

static bool event__ready(CUevent e)
{
	int64_t when = load(&e->when);

	if (!load(&e->recorded))
		return true;
	if (unlikely(dev.always_busy))
		return when <= load(&dev.synced_until);
	return when <= now_ns();
}

API(cuEventQuery, CUevent e)
{
	struct thread *t = thread__self();
	CUresult r;

	ENTER();
	count(t, C_queries);
	r = event__check(e);
	if (!r)
		r = capture__event_used(e, t);
	if (!r)
		r = dev__sticky_error();
	if (!r && !event__ready(e))
		r = CU_NOT_READY;
	RET(r);
}

API(cuEventSynchronize, CUevent e)
{
	struct thread *t = thread__self();
	int64_t begun = now_ns();
	uint64_t seq;
	CUresult r;

	ENTER();
	r = event__check(e);
	if (!r)
		r = capture__event_used(e, t);
	if (!r)
		r = dev__sticky_error();
	if (r || !load(&e->recorded))
		RET(r);
	trace__flush(t);
	seq = e->seq;
	while (load(&e->when) == SIM_NEVER && e->seq == seq && !event__check(e))
		sim__nap();
	if (load(&e->when) != SIM_NEVER) {
		sim__sleep_until(e->when);
		if (dev.always_busy && dev.synced_until < e->when)
			dev.synced_until = e->when;
	}
	trace__waited(begun);
	RET(dev__sticky_error());
}

static int64_t on_grain(int64_t t)
{
	return dev.event_grain > 1 ? t - t % dev.event_grain : t;
}

/* What the bracket that begins with this event has too many. */
static int64_t event__more(const struct CUevent_st *a)
{
	if (a->copy)
		return a->idle ? dev.copy_idle : dev.copy_busy;
	return a->idle ? dev.bracket_idle : dev.bracket_busy;
}

static int64_t event__between(CUevent a, CUevent b)
{
	int64_t start = load(&a->before), end = b->after;

	if (a != b && a->stream_id == b->stream_id && start != SIM_NONE && start <= end)
		return on_grain(end) - on_grain(start) + event__more(a);
	return on_grain(b->when) - on_grain(a->when) + (a != b ? dev.bracket_empty : 0);
}

static CUresult elapsed_now(float *ms, CUevent a, CUevent b)
{
	struct thread *t = thread__self();
	CUresult r = event__check(a);

	count(t, C_elapsed);
	if (!r)
		r = event__check(b);
	if (!r && !ms)
		r = CU_INVALID_VALUE;
	if (!r && (a->ctx != b->ctx || !a->recorded || !b->recorded ||
		   (a->flags | b->flags) & CU_EVENT_DISABLE_TIMING))
		r = CU_INVALID_HANDLE;
	if (!r && (a->capture_id || b->capture_id))
		r = CU_CAPTURED_EVENT;
	if (!r)
		r = dev__sticky_error();
	if (!r && (!event__ready(a) || !event__ready(b)))
		r = CU_NOT_READY;
	if (!r)
		*ms = (float)((double)event__between(a, b) / 1e6);
	else if (r == CU_NOT_READY)
		count(t, C_not_ready);
	return r;
}

/* Measured: the driver reads freed memory if the context goes while a thread is in here. */
static CUresult elapsed(float *ms, CUevent a, CUevent b)
{
	CUcontext c = dev.crash && a && a->magic == M_EVENT ? a->ctx : NULL;
	CUresult r;

	if (unlikely(c != NULL))
		__atomic_add_fetch(&c->asking, 1, __ATOMIC_SEQ_CST);
	r = elapsed_now(ms, a, b);
	if (unlikely(c != NULL))
		__atomic_sub_fetch(&c->asking, 1, __ATOMIC_SEQ_CST);
	return r;
}

API(cuEventElapsedTime, float *ms, CUevent a, CUevent b)
{
	ENTER_IN_CHILD_TOO();
	RET(elapsed(ms, a, b));
}

API(cuEventElapsedTime_v2, float *ms, CUevent a, CUevent b)
{
	ENTER_IN_CHILD_TOO();
	RET(elapsed(ms, a, b));
}

