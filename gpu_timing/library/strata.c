// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "gpu_timing/library/strata.h"

#include <string.h>
#include <sys/mman.h>

#include "gpu_timing/library/library.h"

#define SETS (CHANNEL_SHAPES / STRATA_WAYS)
#define LATELY_NS 100000000ull

/* An element for the key, taken if there is none; NULL: no room. The first one is none: 0 means all. */
static struct stratum *find(uint64_t key)
{
	uint32_t set = (uint32_t)(key >> 40) % SETS * STRATA_WAYS;
	struct stratum *s = &lib.memory->strata.at[set];

	for (uint32_t i = set ? 0 : 1; i < STRATA_WAYS; i++) {
		uint64_t there = load_relaxed(&s[i].key);

		if (likely(there == key))
			return &s[i];
		if (!there && __atomic_compare_exchange_n(&s[i].key, &there, key, false,
							  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return &s[i];
		if (there == key)
			return &s[i];
	}
	return NULL;
}

/*
 * A block of `s`, or of what is left over: a thread that owes much can't look at the first launches of every
 * new shape, which a program may have at each launch. Waits from new places are together by then, not among
 * launches, whose number is exact.
 */
static struct stratum *begin_block(struct thread *t, struct stratum *s, const struct channel_launch *l,
				   uint32_t every)
{
	struct sampling how = { every, load_relaxed(&lib.segment->budget) };
	uint32_t fp = fp__save();
	uint64_t now = clock__ns();

	store_relaxed(&lib.memory->strata.used, 1u);
	if (s && !s->launches && !every && pace__is_broke(&t->pace, how, now))
		s = l->flags & LAUNCH_WAIT ? find(sampler__key(l, 0)) : NULL;
	if (!s)
		s = &t->rest;
	if (!s->left)
		stratum__begin(s, pace__weight(&t->pace, s, how, s == &t->rest, now), thread__random(t), now);
	fp__restore(fp);
	return s;
}

uint32_t strata__choose_for(struct thread *t, struct channel_launch *l, uint64_t sp, uint32_t every)
{
	uint32_t index, weight;
	struct stratum *s;

	l->stratum = 0;
	l->weight = 1;
	if (every == 1)
		return 1;
	s = find(sampler__key(l, sp));
	if (unlikely(!s || !s->left))
		s = begin_block(t, s, l, every);
	index = s == &t->rest ? CHANNEL_SHAPES + (uint32_t)(t - lib.memory->threads.threads) :
				(uint32_t)(s - lib.memory->strata.at);
	weight = stratum__launch(s);
	store_relaxed(&lib.segment->strata[index], s->launches);
	l->weight = weight;
	l->stratum = index | s->blocks << CHANNEL_BLOCK_SHIFT;
	return weight;
}

uint32_t strata__choose(struct thread *t, uint32_t every)
{
	return strata__choose_for(t, &t->launch, (uint64_t)t->frame, every);
}

static void forget(void *at, size_t len, int advice)
{
	if (madvise(at, len, advice))
		memset(at, 0, len);
}

void strata__begin(void)
{
	struct strata *s = &lib.memory->strata;
	uint32_t nr = load_acquire(&lib.segment->nr_threads);

	if (!s->used)
		return;
	s->used = s->threads = 0;
	s->counted = 0;
	memset(s->at, 0, sizeof(s->at));
	forget(lib.segment->strata, sizeof(lib.segment->strata), MADV_REMOVE);
	for (uint32_t i = 1; i < nr; i++) {
		struct thread *t = &lib.memory->threads.threads[i];

		t->pace = (struct pace){ 0 };
		t->rest = (struct stratum){ 0 };
	}
}

void strata__count_threads(void)
{
	struct strata *s = &lib.memory->strata;
	uint32_t nr = load_acquire(&lib.segment->nr_threads), active = 0;
	uint64_t now = clock__ns();

	if (!load_relaxed(&s->used) || now < s->counted + LATELY_NS)
		return;
	for (uint32_t i = 1; i < nr; i++)
		active += now < load_relaxed(&lib.memory->threads.threads[i].pace.last) + LATELY_NS;
	store_relaxed(&s->threads, active);
	s->counted = now;
}
