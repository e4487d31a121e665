// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Work whose time is not known when it is enqueued: all that comes after a wait for a value in
 * memory or a host function. It is kept in a list and placed on the time line once that is known.
 * A thread of its own looks after these lists; there is none as long as nobody needs it.
 */
#include "sim.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LOOKED_AT 1024

static pthread_mutex_t held_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t held_some = PTHREAD_COND_INITIALIZER;
static CUstream held;			/* streams with such work, or that had some a moment ago */
static bool started;

void mark__put(struct mark *m)
{
	if (m && __atomic_sub_fetch(&m->refs, 1, __ATOMIC_ACQ_REL) == 0)
		free(m);
}

struct mark *mark__new(int64_t when)
{
	struct mark *m = calloc(1, sizeof(*m));

	m->when = when;
	m->refs = 1;
	return m;
}

static bool value_is_there(const struct queue_item *i)
{
	unsigned v = __atomic_load_n(i->address, __ATOMIC_ACQUIRE);

	switch (i->flags & 3) {
	case CU_WAIT_GEQ:
		return (int)(v - i->value) >= 0;
	case CU_WAIT_EQ:
		return v == i->value;
	case CU_WAIT_AND:
		return (v & i->value) != 0;
	default:
		return ~(v | i->value) != 0;
	}
}

/* As measured. */
static unsigned entries(enum item_kind kind)
{
	switch (kind) {
	case I_MARK:
	case I_WAIT_MARK:
	case I_RECORD_UNTIMED:
		return 0;
	case I_WAIT_VALUE:
		return 2;
	default:
		return 1;
	}
}

static void item__work(CUstream s, struct queue_item *i)
{
	stream__place(s, &i->work, i->enqueued);
	if (i->truth) {
		trace__write(thread__self(), i->truth, i->work.start, i->work.end);
		free(i->truth->owned);
		free(i->truth);
	}
}

static void item__record(CUstream s, struct queue_item *i)
{
	int64_t base = stream__base(s), when = base > i->enqueued ? base : i->enqueued;
	CUevent e = i->event;

	if (e->magic == M_EVENT && e->seq == i->event_seq)
		event__place(e, s, when, false);
	if (entries(i->kind))
		stream__took_entry(s, when);
	if (i->mark)
		store(&i->mark->when, when);
}

static void stream__delay(CUstream s, int64_t until)
{
	if (until <= s->end)
		return;
	stream__close_events(s, SIM_NONE);
	s->pdl_from = SIM_NONE;
	s->end = until;
	if (stream__blocking(s) && s->ctx->blocking_end < until)
		s->ctx->blocking_end = until;
}

/* Done if its time is known now. */
static bool item__try(CUstream s, struct queue_item *i)
{
	int64_t now = now_ns(), when;

	switch (i->kind) {
	case I_WORK:
		item__work(s, i);
		return true;
	case I_RECORD:
	case I_RECORD_UNTIMED:
		item__record(s, i);
		return true;
	case I_MARK:
		when = stream__base(s);
		store(&i->mark->when, when == SIM_NONE ? i->enqueued : when);
		return true;
	case I_WAIT_MARK:
		when = load(&i->mark->when);
		if (when == SIM_NEVER)
			return false;
		stream__delay(s, when);
		return true;
	case I_WAIT_VALUE:
		if (s->end > now || !value_is_there(i))
			return false;
		stream__delay(s, now);
		return true;
	case I_WRITE_VALUE:
		if (s->end > now)
			return false;
		__atomic_store_n(i->address, i->value, __ATOMIC_SEQ_CST);
		break;
	case I_HOST:
		if (i->phase != 2)
			return false;
		stream__close_events(s, i->work.start);
		stream__delay(s, i->work.end);
		return true;
	}
	stream__took_entry(s, s->end);
	return true;
}

static void item__drop(CUstream s)
{
	struct queue_item *i = s->first;

	s->first = i->next;
	if (!s->first)
		s->last = &s->first;
	s->slots -= entries(i->kind);
	if (--s->queued == 0 && ctx__alive(s->ctx, s->generation))
		__atomic_sub_fetch(&s->ctx->held, 1, __ATOMIC_RELEASE);
	mark__put(i->mark);
	free(i);
}

void queue__advance(CUstream s)
{
	while (s->first && item__try(s, s->first))
		item__drop(s);
}

/* The context is gone: nothing of it will ever run. */
static void queue__abandon(CUstream s)
{
	while (s->first) {
		struct queue_item *i = s->first;

		if (i->mark && i->kind != I_WAIT_MARK)
			store(&i->mark->when, now_ns());
		if (i->truth) {
			trace__write(thread__self(), i->truth, SIM_NONE, SIM_NONE);
			free(i->truth->owned);
			free(i->truth);
		}
		item__drop(s);
	}
}

/* --- the device thread ------------------------------------------------------------------------ */
static bool host_function_due(CUstream s)
{
	struct queue_item *i = s->first;

	return i && i->kind == I_HOST && i->phase == 0 && s->end <= now_ns();
}

static void run_host_function(CUstream s)
{
	struct queue_item *i = s->first;

	i->phase = 1;
	i->work.start = now_ns();
	pthread_mutex_unlock(s->lock);
	i->function(i->arg);
	pthread_mutex_lock(s->lock);
	i->work.end = now_ns();
	i->phase = 2;
}

static void look_after(CUstream s)
{
	bool reclaim = false;

	pthread_mutex_lock(s->lock);
	for (;;) {
		if (!ctx__alive(s->ctx, s->generation))
			queue__abandon(s);
		queue__advance(s);
		if (!host_function_due(s))
			break;
		run_host_function(s);
	}
	if (!s->queued) {
		pthread_mutex_lock(&held_lock);
		for (CUstream *p = &held; *p; p = &(*p)->next_held)
			if (*p == s) {
				*p = s->next_held;
				break;
			}
		s->listed = false;
		reclaim = s->destroyed;
		pthread_mutex_unlock(&held_lock);
	}
	pthread_mutex_unlock(s->lock);
	if (reclaim)
		stream__reclaim(s);
}

static void *device_thread(void *arg)
{
	static CUstream look[MAX_LOOKED_AT];

	(void)arg;
	while (load(&dev.state) == SIM_READY) {
		int n = 0;

		pthread_mutex_lock(&held_lock);
		while (!held)
			pthread_cond_wait(&held_some, &held_lock);
		for (CUstream s = held; s && n < MAX_LOOKED_AT; s = s->next_held)
			look[n++] = s;
		pthread_mutex_unlock(&held_lock);
		for (int i = 0; i < n; i++)
			look_after(look[i]);
		sim__nap();
	}
	return NULL;
}

static void device_thread__start(void)
{
	sigset_t all, old;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (!pthread_create(&thread, NULL, device_thread, NULL))
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* --- what the rest calls, stream locked ------------------------------------------------------- */
struct queue_item *queue__push(CUstream s, enum item_kind kind)
{
	struct queue_item *i = calloc(1, sizeof(*i));

	i->kind = kind;
	i->enqueued = now_ns();
	*s->last = i;
	s->last = &i->next;
	s->slots += entries(kind);
	if (s->queued++ == 0)
		__atomic_add_fetch(&s->ctx->held, 1, __ATOMIC_RELEASE);
	if (s->listed)
		return i;
	s->listed = true;
	pthread_mutex_lock(&held_lock);
	s->next_held = held;
	held = s;
	if (!started)
		device_thread__start();
	started = true;
	pthread_cond_signal(&held_some);
	pthread_mutex_unlock(&held_lock);
	return i;
}

struct mark *queue__mark(CUstream s)
{
	struct queue_item *i = queue__push(s, I_MARK);

	i->mark = mark__new(SIM_NEVER);
	i->mark->refs++;
	return i->mark;
}

void queue__wait_for(CUstream s, struct mark *m)
{
	queue__push(s, I_WAIT_MARK)->mark = m;
}

/* A blocking stream comes after what the legacy stream holds, and the legacy stream after all. */
static void queue__join(CUstream s)
{
	CUstream others[64];
	int n = 0;

	if (s->kind == STREAM_LEGACY) {
		pthread_mutex_lock(&held_lock);
		for (CUstream o = held; o && n < 64; o = o->next_held)
			if (o != s && o->lock == s->lock && o->queued)
				others[n++] = o;
		pthread_mutex_unlock(&held_lock);
	} else if (stream__blocking(s) && s->ctx->legacy->queued) {
		others[n++] = s->ctx->legacy;
	}
	while (n-- > 0)
		queue__wait_for(s, queue__mark(others[n]));
}

bool queue__holds(CUstream s)
{
	if (likely(!load(&s->ctx->held)))
		return false;
	queue__advance(s);
	queue__join(s);
	return s->queued > 0;
}

bool queue__holds_below(CUstream s)
{
	bool holds = s->queued > 0;

	if (s->kind != STREAM_LEGACY)
		return holds;
	pthread_mutex_lock(&held_lock);
	for (CUstream o = held; o; o = o->next_held)
		holds |= o->lock == s->lock && o->queued > 0;
	pthread_mutex_unlock(&held_lock);
	return holds;
}

struct mark *queue__mark_event(CUevent e)
{
	while (load(&e->when) == SIM_NEVER) {
		CUstream s = e->pending;
		struct mark *m = NULL;

		pthread_mutex_lock(s->lock);
		for (struct queue_item *i = s->first; i; i = i->next)
			if (i->event == e && i->event_seq == e->seq) {
				if (!i->mark)
					i->mark = mark__new(SIM_NEVER);
				m = i->mark;
				m->refs++;
			}
		pthread_mutex_unlock(s->lock);
		if (m)
			return m;
	}
	return NULL;
}

/* --- entries ---------------------------------------------------------------------------------- */
static CUresult memory_op(CUstream handle, bool ptsz, enum item_kind kind, CUdeviceptr address,
			  unsigned value, unsigned flags)
{
	struct queue_item *i;
	CUgraphNode node = NULL;
	CUstream s;
	CUresult r = stream__resolve(thread__self(), handle, ptsz, &s);

	if (!r && (!address || address & 3))
		r = CU_INVALID_VALUE;
	if (!r && capture__any())
		r = capture__node(s, CU_NODE_EMPTY, &node);
	if (node)
		capture__unlock();
	if (r || node)
		return r;
	stream__reserve(s, entries(kind));
	queue__holds(s);
	i = queue__push(s, kind);
	i->address = (volatile unsigned *)(uintptr_t)address;
	i->value = value;
	i->flags = flags;
	queue__advance(s);
	stream__unlock(s);
	return CU_OK;
}

#define MEMORY_OP(name, ptsz, kind)                                                               \
	API(name, CUstream s, CUdeviceptr address, unsigned value, unsigned flags)                \
	{                                                                                         \
		ENTER();                                                                          \
		RET(memory_op(s, ptsz, kind, address, value, flags));                             \
	}
MEMORY_OP(cuStreamWaitValue32, false, I_WAIT_VALUE)
MEMORY_OP(cuStreamWaitValue32_ptsz, true, I_WAIT_VALUE)
MEMORY_OP(cuStreamWaitValue32_v2, false, I_WAIT_VALUE)
MEMORY_OP(cuStreamWaitValue32_v2_ptsz, true, I_WAIT_VALUE)
MEMORY_OP(cuStreamWriteValue32, false, I_WRITE_VALUE)
MEMORY_OP(cuStreamWriteValue32_ptsz, true, I_WRITE_VALUE)
MEMORY_OP(cuStreamWriteValue32_v2, false, I_WRITE_VALUE)
MEMORY_OP(cuStreamWriteValue32_v2_ptsz, true, I_WRITE_VALUE)

static CUresult host_function(CUstream handle, bool ptsz, CUhostFn function, void *arg)
{
	struct queue_item *i;
	CUgraphNode node = NULL;
	CUstream s;
	CUresult r = stream__resolve(thread__self(), handle, ptsz, &s);

	if (!r && !function)
		r = CU_INVALID_VALUE;
	if (!r && capture__any())
		r = capture__node(s, CU_NODE_HOST, &node);
	if (node)
		capture__unlock();
	if (r || node)
		return r;
	stream__reserve(s, 1);
	queue__holds(s);
	i = queue__push(s, I_HOST);
	i->function = function;
	i->arg = arg;
	stream__unlock(s);
	return CU_OK;
}

API(cuLaunchHostFunc, CUstream s, CUhostFn f, void *a)
{
	ENTER();
	RET(host_function(s, false, f, a));
}

API(cuLaunchHostFunc_ptsz, CUstream s, CUhostFn f, void *a)
{
	ENTER();
	RET(host_function(s, true, f, a));
}

struct callback {
	CUstreamCallback function;
	CUstream stream;
	void *arg;
};

static void call_back(void *arg)
{
	struct callback *c = arg;

	c->function(c->stream, CU_OK, c->arg);
	free(c);
}

static CUresult add_callback(CUstream s, bool ptsz, CUstreamCallback function, void *arg)
{
	struct callback *c;
	CUresult r;

	if (!function)
		return CU_INVALID_VALUE;
	c = malloc(sizeof(*c));
	*c = (struct callback){ function, s, arg };
	r = host_function(s, ptsz, call_back, c);
	if (r)
		free(c);
	return r;
}

API(cuStreamAddCallback, CUstream s, CUstreamCallback f, void *arg, unsigned flags)
{
	(void)flags;
	ENTER();
	RET(add_callback(s, false, f, arg));
}

API(cuStreamAddCallback_ptsz, CUstream s, CUstreamCallback f, void *arg, unsigned flags)
{
	(void)flags;
	ENTER();
	RET(add_callback(s, true, f, arg));
}
