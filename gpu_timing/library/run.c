// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "gpu_timing/library/run.h"

#include <errno.h>
#include <sched.h>

#include "gpu_timing/library/harvest.h"
#include "gpu_timing/library/launch.h"
#include "gpu_timing/library/run_inside.h"

/* After so long a stream is empty, or its kernels are so long that one overlap is nothing. */
#define REST_NS 1000000ull
#define OLD_NS 100000000ull
#define LAST_WAIT_NS 1000000ull
#define AWAIT_NS 1000000000ull
#ifndef APART_ONE_IN		/* a power of two, or 0: none; tests have their own */
#define APART_ONE_IN 256u	/* where every launch is looked at */
#define APART_FIRST 2
#endif
#define APART_SOME (4 * APART_ONE_IN)	/* of all launches, where not every one is: there a budget holds */

static struct run_table *table(void)
{
	return &lib.memory->runs;
}

struct run *run__of(const struct bracket *b)
{
	return &table()->runs[b->run - 1];
}

void run__begin(void)
{
	memset(table()->first, 0, sizeof(table()->first));
}

bool run__any(void)
{
	return load_relaxed(&lib.memory->crowd.runs);
}

bool run__new(struct bracket *b)
{
	for (uint32_t w = 0; w < MAX_RUNS / 64; w++) {
		uint64_t *word = &table()->used[w], bits = load_relaxed(word);

		while (~bits) {
			uint32_t bit = (uint32_t)__builtin_ctzll(~bits);

			if (!__atomic_compare_exchange_n(word, &bits, bits | 1ull << bit, true,
							 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
				continue;
			store_relaxed(&b->run, w * 64 + bit + 1);
			run__of(b)->nr = 0;
			return true;
		}
	}
	return false;
}

void run__free(struct bracket *b)
{
	uint32_t i = b->run - 1;

	if (!b->run)
		return;
	store_relaxed(&b->run, 0u);
	__atomic_and_fetch(&table()->used[i / 64], ~(1ull << i % 64), __ATOMIC_RELEASE);
}

uint32_t run__launches(const struct bracket *b, const struct channel_member **more)
{
	*more = NULL;
	if (!b->run)
		return 1;
	*more = run__of(b)->launches + 1;
	return run__of(b)->nr;
}

/* --- who has it ------------------------------------------------------------------------------- */

uint32_t run__take(struct stream *s)
{
	uint32_t bracket = load_relaxed(&s->run);

	if (likely(!bracket))
		return 0;
	bracket = __atomic_exchange_n(&s->run, 0u, __ATOMIC_SEQ_CST);
	if (bracket)
		__atomic_sub_fetch(&lib.memory->crowd.runs, 1, __ATOMIC_RELAXED);
	return bracket;
}

const struct run *run__peek(const struct stream *s)
{
	uint32_t bracket = load_acquire(&s->run), run = 0;

	if (bracket)
		run = load_relaxed(&context__bracket(bracket)->run);
	return run ? &table()->runs[run - 1] : NULL;
}

bool run__all_seen(void)
{
	return __atomic_load_n(&lib.segment->every, __ATOMIC_SEQ_CST) == 1;
}

static bool is_over(void)
{
	const struct guard *g = &lib.memory->guard;

	return !__atomic_load_n(&g->active, __ATOMIC_SEQ_CST) || __atomic_load_n(&g->quiet, __ATOMIC_SEQ_CST);
}

void run__publish_void(struct stream *s, uint32_t bracket, enum launch_cause cause)
{
	struct bracket *b = context__bracket(bracket);

	b->half = true;
	b->cause = (uint16_t)cause;
	stream__publish(s, bracket);
}

void run__publish_last(struct stream *s)
{
	if (unlikely(is_over()))
		harvest__last(s, clock__ns() + LAST_WAIT_NS);
}

/* The last thing that its thread does with it: then it is anybody's. */
static void put_back(struct stream *s, uint32_t bracket)
{
	enum launch_cause cause = CAUSE_DISTURBED;
	uint32_t none = 0;
	bool all;

	if (__atomic_compare_exchange_n(&s->run, &none, bracket, false, __ATOMIC_SEQ_CST,
					__ATOMIC_RELAXED)) {
		__atomic_add_fetch(&lib.memory->crowd.runs, 1, __ATOMIC_RELAXED);
		/* Whoever ends all that is open may have been here before. */
		all = run__all_seen();
		if (likely(all) && likely(!is_over()) && likely(!__atomic_load_n(&s->dead, __ATOMIC_SEQ_CST)))
			return;
		bracket = run__take(s);
		cause = all ? CAUSE_NO_END : CAUSE_PDL;
	}
	if (bracket)
		run__publish_void(s, bracket, cause);
	run__publish_last(s);
}

void run__void(struct stream *s, enum launch_cause cause)
{
	uint32_t bracket = run__take(s);

	if (bracket)
		run__publish_void(s, bracket, cause);
}

void run__void_old(struct stream *s)
{
	const struct run *r = run__peek(s);

	if (r && clock__ns() - load_relaxed(&r->last) > OLD_NS)
		run__void(s, CAUSE_PDL);
}

static void void_one(struct stream *s, void *ctx)
{
	run__void(s, *(const enum launch_cause *)ctx);
}

void run__void_all(enum launch_cause cause)
{
	if (run__any())
		stream__each(void_one, &cause);
}

void run__end_closing(struct run *r)
{
	if (r->counted)
		__atomic_sub_fetch(&r->of->closers, 1, __ATOMIC_RELEASE);
	r->counted = false;
}

void run__await(const struct stream *s)
{
	uint64_t deadline;

	if (likely(!__atomic_load_n(&s->closers, __ATOMIC_SEQ_CST)))
		return;
	deadline = clock__ns() + AWAIT_NS;
	while (load_acquire(&s->closers) && clock__ns() < deadline)
		sched_yield();
}

static void lose(uint32_t bracket, bool forget)
{
	struct bracket *b = context__bracket(bracket);
	struct stream *s = run__of(b)->of;

	run__end_closing(run__of(b));
	harvest__report(b, CAUSE_NO_END, CUDA_SUCCESS, 0);
	context__give(bracket, forget);
	__atomic_sub_fetch(&s->outstanding, 1, __ATOMIC_RELEASE);
}

void run__lose(struct thread *t, bool forget)
{
	uint32_t bracket = t->closing;

	t->closing = 0;
	if (bracket)
		lose(bracket, forget);
	bracket = t->bracket;
	if (!bracket || !context__bracket(bracket)->run || !run__of(context__bracket(bracket))->nr)
		return;
	t->bracket = 0;
	lose(bracket, forget);
}

/* --- a launch --------------------------------------------------------------------------------- */

static uint32_t hash_of(uint64_t function)
{
	return (uint32_t)(function * 0x9e3779b97f4a7c15ull >> 54);
}

_Static_assert(RUN_KERNELS == 1u << 10, "the hash above");

bool run__is_whole(const struct stream *s, const struct bracket *b, const struct thread *t)
{
	const struct run *r = run__of(b);

	return r->owner == t && load_acquire(&s->seq) == r->seq &&
	       load_relaxed(&context__at(b->context)->serial) == b->serial;
}

/*
 * From before it is taken from the stream, where it tells what comes in between, until it is ended or the
 * launch made, it counts as an open bracket of t, which is told the same.
 */
static bool join(struct call *call)
{
	struct thread *t = call->t;
	struct stream *s = t->stream;
	uint32_t bracket;
	struct bracket *b;

	crowd__open(t, load_relaxed(&s->order));
	bracket = run__take(s);
	if (!bracket)
		goto none;
	b = context__bracket(bracket);
	if (!run__is_whole(s, b, t)) {
		run__publish_void(s, bracket, CAUSE_DISTURBED);
		goto none;
	}
	if (!(t->launch.flags & LAUNCH_PDL) || call->apart || run__of(b)->nr == RUN_MOST ||
	    clock__ns() - run__of(b)->last > REST_NS) {
		t->closing = bracket;
		return false;
	}
	t->bracket = bracket;
	t->launch.flags |= LAUNCH_TIMED;
	call->context = context__at(b->context);
	call->joined = true;
	return true;
none:
	crowd__close(t);
	return false;
}

/*
 * Whether a launch that may overlap others has a bracket of its own nonetheless, which ends those overlaps:
 * of each kernel the first few have, then chance decides, so rarely that it hardly matters. Without that
 * nothing would be known of the kernels one by one.
 */
static bool is_apart(struct call *call)
{
	struct channel_launch *l = &call->t->launch;
	uint8_t *first = &table()->first[hash_of(l->function)];
	uint32_t one_in = call->every == 1 ? APART_ONE_IN : APART_SOME;

	if (load_relaxed(first) + 1 <= APART_FIRST) {
		store_relaxed(first, (uint8_t)(load_relaxed(first) + 1));
		return true;
	}
	/* One that stands for many has been chosen by chance already. */
	for (uint32_t others = l->weight; others > 1 && one_in > 1; others /= 2)
		one_in /= 2;
	if (!one_in || thread__random(call->t) >> 32 & (one_in - 1))
		return false;
	call->one_in = one_in;
	return true;
}

/*
 * Where the stream has run empty inside of runs, launches are bracketed one by one, as long as each finds the
 * one before it over: then there is no overlap that an event could end.
 */
static bool stays_open(struct call *call)
{
	struct stream *s = call->t->stream;

	if (!load_relaxed(&s->drains))
		return true;
	if (!call->t->closing && load_relaxed(&s->place) == PLACE_END && harvest__is_drained(s))
		return false;
	store_relaxed(&s->drains, 0u);
	return true;
}

static enum launch_cause meet_dependent(struct call *call)
{
	struct stream *s = call->t->stream;

	if (call->apart)
		return CAUSE_NONE;
	/* Behind a kernel that has no event behind it a begin would end the overlap. */
	if (load_relaxed(&s->place) == PLACE_KERNEL && !call->t->closing)
		return load_relaxed(&s->left_out) ? CAUSE_OUTSTANDING : CAUSE_PDL;
	call->stays = stays_open(call);
	return CAUSE_NONE;
}

/* A run must not hold a wait for another stream's work. */
static bool waits_are_seen(void)
{
	_Static_assert(SLOT_WAIT_EVENT / 64 == SLOT_WAIT_EVENT_PTSZ / 64, "both in one word");

	return (load_relaxed(&lib.segment->slots[SLOT_WAIT_EVENT / 64]) >> SLOT_WAIT_EVENT % 64 & 3) == 3;
}

/* Where there are no runs: a dependent launch, or one that may be followed by one. */
static enum launch_cause meet_some(struct call *call)
{
	struct stream *s = call->t->stream;
	uint32_t pdl = load_relaxed(&s->pdl);

	if (call->t->launch.flags & LAUNCH_PDL)
		store_relaxed(&s->pdl, (uint32_t)STREAM_PDL_QUIET);
	else if (likely(!pdl))
		return CAUSE_NONE;
	else
		store_relaxed(&s->pdl, pdl - 1);
	return is_apart(call) ? CAUSE_NONE : CAUSE_PDL;
}

enum launch_cause run__meet(struct call *call)
{
	const struct channel_launch *l = &call->t->launch;
	struct stream *s = call->t->stream;
	bool dependent = l->flags & LAUNCH_PDL, head = false;
	uint64_t before = load_relaxed(&s->function);

	if (unlikely(call->every != 1) || unlikely(!waits_are_seen()))
		return meet_some(call);
	store_relaxed(&s->function, l->flags & (LAUNCH_PDL | LAUNCH_GRAPH | LAUNCH_COPY) ? 0 : l->function);
	if (unlikely(dependent)) {
		store_relaxed(&s->chained, 1u);
		if (before)
			store_relaxed(&table()->heads[hash_of(before)], (uint8_t)1);
	} else if (unlikely(load_relaxed(&s->chained))) {
		head = load_relaxed(&s->function) && load_relaxed(&table()->heads[hash_of(l->function)]) &&
		       !load_relaxed(&s->drains);
	}
	if (unlikely(dependent || head))
		call->apart = is_apart(call);
	if (unlikely(load_relaxed(&s->run)) && join(call))
		return CAUSE_NONE;
	if (unlikely(dependent))
		return meet_dependent(call);
	call->stays = head && !call->apart;
	return CAUSE_NONE;
}

CUresult run__ask_begin(const struct bracket *b)
{
	CUresult r;
	bool forget;
	float ms;

	r = lib.driver.elapsed(&ms, b->begin, b->begin);
	if (r && r != CUDA_ERROR_NOT_READY)	/* at once: each further question leaves a line in the log */
		harvest__meaning(b, r, &forget);
	return r;
}

static void begin(struct call *call)
{
	struct bracket *b = context__bracket(call->t->bracket);
	struct run *r = run__of(b);
	uint64_t gap;
	CUresult e;

	r->owner = call->t;
	r->of = call->t->stream;
	r->stream = call->stream;
	r->sure = r->counted = false;
	r->last = r->behind = clock__ns();
	gap = r->last - call->begun;
	b->gap = gap < UINT32_MAX ? (uint32_t)gap : UINT32_MAX;
	b->load = LOAD_UNKNOWN;
	if (lib.driver.cheap_elapsed) {
		e = run__ask_begin(b);
		b->load = !e ? LOAD_IDLE : e == CUDA_ERROR_NOT_READY ? LOAD_BUSY : LOAD_UNKNOWN;
	}
}

/* Nobody else launched where it goes during this launch, nor since the run's one before. */
static bool is_alone(const struct call *call, struct run *r)
{
	bool next = !call->joined || call->seq == r->seq + 1;

	r->seq = call->seq;
	return next && call->alone && load_acquire(&call->t->stream->seq) == call->seq;
}

void run__stay(struct call *call)
{
	struct thread *t = call->t;
	struct bracket *b = context__bracket(t->bracket);
	struct run *r = run__of(b);

	if (!call->joined) {
		begin(call);
	} else {
		r->last = clock__ns();
		if (b->load == LOAD_BUSY && run__ask_begin(b) == CUDA_ERROR_NOT_READY)
			r->behind = r->last;
	}
	if (!is_alone(call, r))
		call->cause = CAUSE_DISTURBED;
}

void run__keep(struct call *call, uint32_t name)
{
	struct thread *t = call->t;
	struct bracket *b = context__bracket(t->bracket);
	struct run *r = run__of(b);
	uint32_t bracket = t->bracket;
	struct stream *s = t->stream;

	r->launches[r->nr++] = (struct channel_member){ .launch = t->launch.id, .name = name };
	t->launch.id = 0;
	t->bracket = 0;
	if (call->cause) {
		run__publish_void(s, bracket, call->cause);
		run__publish_last(s);
	} else {
		put_back(s, bracket);
	}
}

void run__return(struct call *call)
{
	struct thread *t = call->t;
	uint32_t bracket = t->bracket;
	struct stream *s = t->stream;

	t->bracket = 0;
	if (!is_alone(call, run__of(context__bracket(bracket)))) {
		run__publish_void(s, bracket, CAUSE_DISTURBED);
		run__publish_last(s);
	} else {
		put_back(s, bracket);
	}
}
