// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* How runs end: by an event in front of what the program does next, or void. */
#include <errno.h>

#include "gpu_timing/library/harvest.h"
#include "gpu_timing/library/launch.h"
#include "gpu_timing/library/run_inside.h"
#include "gpu_timing/library/session.h"

/* How long a call or an event may take to get from the program to the device, or its news back. */
#define WAY_NS 16000ull
#define SHARE 32		/* of a run's time that may have been idle at most */

void run__end(struct thread *t)
{
	uint32_t bracket = t->closing;
	struct bracket *b = context__bracket(bracket);
	struct run *r = run__of(b);
	struct stream *s = r->of;
	CUresult e;
	bool alone;

	e = lib.driver.event_record(b->end, r->stream);
	/* In a child, forked by a signal handler meanwhile; or the handler has launched, and given it up. */
	if (unlikely(!load_relaxed(&lib.memory->guard.owner)) || unlikely(t->closing != bracket))
		return;
	alone = crowd__close(t);
	r->closed = clock__ns();
	b->half = e != CUDA_SUCCESS;
	b->cause = CAUSE_NONE;
	if (e)
		b->cause = CAUSE_RECORD_FAILED;
	else if (!alone || load_acquire(&s->seq) != r->seq)
		b->cause = CAUSE_DISTURBED;
	else if (!run__all_seen())
		b->cause = CAUSE_PDL;
	else if (lib.driver.cheap_elapsed ? b->load == LOAD_BUSY : r->nr > 1)
		r->sure = run__ask_begin(b) == CUDA_ERROR_NOT_READY;
	if (!e)
		store_relaxed(&s->place, (uint32_t)PLACE_END);
	t->closing = 0;
	run__end_closing(r);
	stream__publish(s, bracket);
	run__publish_last(s);
}

static bool is_busy(const struct bracket *b, uint64_t ns)
{
	uint64_t gap = b->load == LOAD_BUSY ? 0 : b->gap;
	const struct run *r = run__of(b);

	if (r->sure)
		return true;
	ns = ns > gap ? ns - gap : 0;
	/* It ended after the end was recorded, and can't have been idle long before its last launch. */
	return ns > r->closed - r->behind + WAY_NS && ns / SHARE >= r->last - r->behind;
}

bool run__judge(struct stream *s, const struct bracket *b, uint64_t ns)
{
	if (!b->run || is_busy(b, ns))
		return true;
	store_relaxed(&s->drains, 1u);
	return false;
}

/* A capture takes what is recorded into it; in a default stream the current context says which it is. */
static bool may_record(const struct bracket *b)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	CUstream stream = run__of(b)->stream;
	CUcontext current = NULL;

	if (__atomic_load_n(&context__at(b->context)->state, __ATOMIC_SEQ_CST) != CONTEXT_LIVE)
		return false;
	if (stream__is_default(stream) &&
	    (lib.driver.ctx_get_current(&current) || (uint64_t)current != context__at(b->context)->handle))
		return false;
	return !lib.driver.stream_is_capturing(stream, &status) && status == CU_STREAM_CAPTURE_STATUS_NONE;
}

/* True: whoever ends it counts down. */
static bool close_counted(struct stream *s, struct thread *t)
{
	uint32_t bracket = run__take(s);
	struct bracket *b;

	if (!bracket)
		return false;
	b = context__bracket(bracket);
	if (t->closing)		/* left by a jump */
		run__lose(t, true);
	if (run__is_whole(s, b, t) && session__of(b->launch) && may_record(b)) {
		run__of(b)->counted = true;
		t->closing = bracket;
		run__end(t);
		return true;
	}
	run__publish_void(s, bracket, run__of(b)->owner == t ? CAUSE_PDL : CAUSE_DISTURBED);
	run__publish_last(s);
	return false;
}

/*
 * The program's call is about another stream than the run's, perhaps, which other threads may destroy, or its
 * context: they take the run first, and then wait for those that are inside here. From before it is taken it
 * counts as an open bracket, as in run__meet; a launch under way is where that is for so long.
 */
static void close_as(struct stream *s, struct thread *t)
{
	uint64_t at = t->at;

	__atomic_add_fetch(&s->closers, 1, __ATOMIC_SEQ_CST);
	store_relaxed(&t->at, stream__place(s));
	crowd__open(t, load_relaxed(&s->order));
	if (!close_counted(s, t))
		__atomic_sub_fetch(&s->closers, 1, __ATOMIC_RELEASE);
	crowd__close(t);
	__atomic_store_n(&t->at, at, __ATOMIC_SEQ_CST);
	if (at)
		crowd__enter(t);
}

static bool is_blocking(const struct stream *s)
{
	return load_relaxed(&s->order) == ORDER_BLOCKING;
}

struct part {
	const struct stream *legacy;
	struct thread *t;	/* that ends it; NULL: too late for an end, it is void */
};

static void end_or_void(struct stream *s, struct thread *t)
{
	if (t && !t->open) {
		close_as(s, t);
	} else {
		run__void(s, CAUSE_PDL);
		run__publish_last(s);
	}
}

static void part_one(struct stream *s, void *ctx)
{
	const struct part *part = ctx;

	if (load_relaxed(&s->run) && s != part->legacy && is_blocking(s) &&
	    load_relaxed(&s->serial) == load_relaxed(&part->legacy->serial))
		end_or_void(s, part->t);
}

void run__part(struct stream *s, struct thread *t)
{
	struct part part = { .legacy = s, .t = t };
	struct stream *legacy;

	if (stream__is_legacy(s)) {
		stream__each(part_one, &part);
		return;
	}
	legacy = stream__context(s) ? stream__find(NULL, stream__context(s), NULL) : NULL;
	if (legacy && load_relaxed(&legacy->run) && is_blocking(s))
		end_or_void(legacy, t);
}

/* The caller's thread, unless it is inside of a launch; *handle as the driver's calls take it. */
static struct thread *caller(CUstream *handle, bool per_thread, struct context **current)
{
	struct thread *t;
	CUcontext ctx;

	*current = NULL;
	if (likely(!run__any()) || !library__is_active())
		return NULL;
	t = thread__self();
	if (!t || t->frame)
		return NULL;
	if (!*handle && per_thread)
		*handle = CU_STREAM_PER_THREAD;
	if (stream__is_default(*handle) && !lib.driver.ctx_get_current(&ctx))
		*current = context__find(ctx);
	return t;
}

void run__close(CUstream handle, bool per_thread)
{
	struct context *current;
	int saved = errno;
	struct thread *t = caller(&handle, per_thread, &current);
	struct stream *s = t ? stream__find(handle, current, t) : NULL;
	uint32_t fp;

	if (s) {
		fp = fp__save();
		close_as(s, t);
		run__part(s, t);
		fp__restore(fp);
	}
	errno = saved;
}

void run__parted(CUstream handle, bool per_thread)
{
	struct context *current;
	int saved = errno;
	struct thread *t = caller(&handle, per_thread, &current);
	struct stream *s = t ? stream__get(handle, current, t) : NULL;

	if (s)
		run__part(s, NULL);
	errno = saved;
}

void run__disturb(CUstream handle)
{
	struct stream *s = stream__find(handle, NULL, NULL);

	if (s)
		__atomic_add_fetch(&s->seq, 1, __ATOMIC_ACQ_REL);
	s = run__any() ? stream__get(handle, NULL, NULL) : NULL;
	if (!s)
		return;
	run__void(s, CAUSE_DISTURBED);
	run__publish_last(s);
	run__part(s, NULL);
}

static void void_met(struct stream *s, void *ctx)
{
	const uint64_t *place = ctx;

	if (!load_relaxed(&s->run) || !crowd__may_meet(*place, stream__place(s)))
		return;
	run__void(s, CAUSE_DISTURBED);
	run__publish_last(s);
}

void run__nested(uint64_t place)
{
	stream__each(void_met, &place);
}

static void lose(struct stream *s, void *ctx)
{
	(void)ctx;
	if (!load_relaxed(&s->run))
		return;
	run__void(s, CAUSE_PDL);
	run__publish_last(s);
}

void run__lose_all(void)
{
	stream__each(lose, NULL);
}

struct own {
	struct thread *t;
	const struct context *in;
};

static void close_own(struct stream *s, void *ctx)
{
	const struct own *own = ctx;
	const struct run *r = run__peek(s);

	if (r && load_relaxed(&r->owner) == own->t && stream__context(s) == own->in)
		close_as(s, own->t);
}

void run__close_own(CUcontext ctx)
{
	CUstream handle = NULL;
	struct context *current;
	int saved = errno;
	struct own own = { .t = caller(&handle, false, &current) };
	uint32_t fp;

	own.in = ctx && own.t ? context__find(ctx) : current;
	if (own.t && own.in) {
		fp = fp__save();
		stream__each(close_own, &own);
		fp__restore(fp);
	}
	errno = saved;
}
