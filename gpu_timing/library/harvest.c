// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "gpu_timing/library/harvest.h"

#include <sched.h>
#include <time.h>

#include "gpu_timing/library/library.h"
#include "gpu_timing/library/segment.h"

#define MAX_MS 9007199254.0f	/* 2^53 ns */
#define NO_TIME UINT64_MAX

/* *ns: between its events; NO_TIME: it can't be a time. Also in the program's calls that wait. */
static CUresult ask(const struct bracket *b, uint64_t *ns)
{
	uint32_t fp = fp__save();
	float ms = 0;
	CUresult r;

	r = lib.driver.elapsed(&ms, b->begin, b->half ? b->begin : b->end);
	*ns = ms >= 0 && ms < MAX_MS ? (uint64_t)((double)ms * 1e6 + 0.5) : NO_TIME;	/* of a NaN, too */
	fp__restore(fp);
	return r;
}

void harvest__report(const struct bracket *b, enum launch_cause cause, CUresult error, uint64_t ns)
{
	const struct channel_member *more;
	struct channel_result result = {
		.launch = b->launch,
		.function = b->function,
		.stream = b->stream,
		.duration = cause ? 0 : ns,
		.name = b->name,
		.context = b->serial,
		.device = b->device,
		.launches = run__launches(b, &more),
		.weight = b->weight,
		.entry = b->entry,
		.flags = b->flags,
		.cause = (uint16_t)cause,
		.load = b->load,
		.error = (uint32_t)error,
		.gap = b->gap,
		.copy = b->copy,
		.bytes = b->bytes,
		.waited = b->waited,
		.stands_for = b->stands_for,
		.stratum = b->stratum,
	};

	segment__result(thread__self(), &result, more);
}

enum launch_cause harvest__meaning(const struct bracket *b, CUresult r, bool *forget)
{
	struct context *c = context__at(b->context);
	enum launch_cause cause = CAUSE_CONTEXT_ERROR;

	*forget = true;
	switch (r) {
	case CUDA_ERROR_INVALID_HANDLE:
		return CAUSE_RECORD_FAILED;
	case CUDA_ERROR_NOT_INITIALIZED:
	case CUDA_ERROR_DEINITIALIZED:
		cause = CAUSE_NO_END;
		break;
	case CUDA_ERROR_INVALID_CONTEXT:
	case CUDA_ERROR_CONTEXT_IS_DESTROYED:
		cause = CAUSE_CONTEXT_GONE;
		break;
	default:
		break;
	}
	context__fail(c, b->serial, cause, r);
	return cause;
}

/* False: the oldest bracket is still under way, or there is none. */
static bool take_oldest(struct stream *s, bool suspended)
{
	uint16_t *place = &s->pending[s->tail % STREAM_RING];
	uint32_t bracket = load_acquire(place);
	enum launch_cause cause = CAUSE_NONE;
	CUresult r = CUDA_SUCCESS;
	const struct context *c;
	struct bracket *b;
	bool forget = false;
	uint32_t state;
	uint64_t ns = 0;

	if (!bracket || __atomic_load_n(&lib.memory->guard.quiet, __ATOMIC_SEQ_CST))
		return false;
	b = context__bracket(bracket);
	c = context__at(b->context);
	state = __atomic_load_n(&c->state, __ATOMIC_SEQ_CST);
	if (state == CONTEXT_SUSPENDED) {
		if (!suspended)
			return false;
		state = c->before;
	}
	if (load_acquire(&c->serial) != b->serial || state == CONTEXT_FREE) {
		cause = CAUSE_CONTEXT_GONE;
		forget = true;
	} else if (state == CONTEXT_ERROR) {
		cause = load_relaxed(&c->cause);
		r = load_relaxed(&c->error);
		forget = true;
	} else {
		r = ask(b, &ns);
		if (r == CUDA_ERROR_NOT_READY)
			return false;
		cause = r ? harvest__meaning(b, r, &forget) : (enum launch_cause)b->cause;
		if (!cause && ns == NO_TIME)
			cause = CAUSE_BAD_TIME;
		if (!cause && !run__judge(s, b, ns))
			cause = CAUSE_PDL;
	}
	harvest__report(b, cause, r, ns);
	if (b->hold)
		stream__let_go(s, b->hold);
	store_relaxed(place, (uint16_t)0);
	s->tail++;
	context__give(bracket, forget);
	__atomic_sub_fetch(&s->outstanding, 1, __ATOMIC_RELEASE);
	return true;
}

bool harvest__is_drained(struct stream *s)
{
	bool drained = false;
	uint32_t bracket;
	struct context *c;
	CUevent end;
	float ms;

	if (!lib.driver.cheap_elapsed || !stream__try_lock(s, STREAM_HARVESTED))
		return false;
	bracket = load_acquire(&s->pending[(load_relaxed(&s->head) - 1) % STREAM_RING]);
	c = bracket ? context__at(context__bracket(bracket)->context) : NULL;
	end = bracket ? context__bracket(bracket)->end : NULL;
	if (!bracket)
		drained = !load_acquire(&s->outstanding);
	else if (!context__bracket(bracket)->half &&
		 __atomic_load_n(&c->state, __ATOMIC_SEQ_CST) == CONTEXT_LIVE &&
		 load_acquire(&c->serial) == context__bracket(bracket)->serial)
		drained = !lib.driver.elapsed(&ms, end, end);
	stream__unlock(s);
	return drained;
}

void harvest__locked(struct stream *s, bool suspended)
{
	while (take_oldest(s, suspended))
		;
}

bool harvest__own(struct stream *s, unsigned int max)
{
	bool found = false;

	if (!stream__try_lock(s, STREAM_HARVESTED))
		return false;
	while (max-- && take_oldest(s, false))
		found = true;
	stream__unlock(s);
	return found;
}

static void harvest_stream(struct stream *s, void *ctx)
{
	uint64_t *outstanding = ctx;

	run__void_old(s);
	if (load_acquire(&s->outstanding))
		harvest__own(s, STREAM_RING);
	*outstanding += load_acquire(&s->outstanding);
	stream__free_if_done(s);
}

uint64_t harvest__all(void)
{
	uint64_t outstanding = 0;

	stream__each(harvest_stream, &outstanding);
	return outstanding;
}

void harvest__give_up(struct stream *s, enum launch_cause cause, CUresult error, bool forget)
{
	uint16_t *place, bracket;

	run__void(s, cause);
	while (place = &s->pending[s->tail % STREAM_RING], bracket = load_acquire(place)) {
		harvest__report(context__bracket(bracket), cause, error, 0);
		store_relaxed(place, (uint16_t)0);
		s->tail++;
		context__give(bracket, forget);
		__atomic_sub_fetch(&s->outstanding, 1, __ATOMIC_RELEASE);
	}
}

void harvest__last(struct stream *s, uint64_t deadline)
{
	while (!stream__try_lock(s, STREAM_HARVESTED)) {
		if (clock__ns() > deadline)
			return;
		sched_yield();
	}
	/* Their context lives: the events can be recorded again, whether they are over or not. */
	harvest__give_up(s, CAUSE_NO_END, CUDA_SUCCESS, false);
	stream__unlock(s);
}

uint64_t clock__ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}
