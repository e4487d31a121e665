// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "gpu_timing/library/crowd.h"

static enum stream_order order_at(uint64_t place)
{
	const struct stream *s;

	if (place == CROWD_LEGACY)
		return ORDER_LEGACY;
	if (place >> 63)
		return ORDER_BLOCKING;
	s = stream__find((CUstream)place, NULL, NULL);
	return s ? load_relaxed(&s->order) : ORDER_BLOCKING;
}

/* The contexts of default streams aren't asked for: two of them seem one. */
static bool may_meet(uint64_t a, enum stream_order order, uint64_t b)
{
	if (a == b)
		return true;
	return order == ORDER_LEGACY ? order_at(b) == ORDER_BLOCKING :
	       order == ORDER_BLOCKING && b == CROWD_LEGACY;
}

bool crowd__may_meet(uint64_t place, uint64_t other)
{
	return may_meet(place, order_at(place), other);
}

static struct thread *others(uint32_t *nr)
{
	*nr = load_acquire(&lib.segment->nr_threads);
	return lib.memory->threads.threads;
}

void crowd__tell(struct thread *t, uint64_t place)
{
	enum stream_order order = order_at(place);
	uint32_t nr;
	struct thread *all = others(&nr);

	for (uint32_t i = 1; i < nr; i++) {
		uint64_t at = &all[i] != t && load_acquire(&all[i].open) ? load_relaxed(&all[i].at) : 0;

		if (at && may_meet(place, order, at))
			store_release(&all[i].disturbed, 1u);
	}
}

void crowd__open(struct thread *t, enum stream_order order)
{
	struct thread *all;
	uint32_t nr;

	if (t->open)
		return;
	t->disturbed = 0;
	store_relaxed(&t->open, 1u);
	__atomic_add_fetch(&lib.memory->crowd.open, 1, __ATOMIC_SEQ_CST);
	all = others(&nr);	/* who comes later sees that one is open */
	for (uint32_t i = 1; i < nr; i++) {
		uint64_t at = &all[i] != t ? load_acquire(&all[i].at) : 0;

		if (at && may_meet(t->at, order, at))
			t->disturbed = 1;
	}
}

bool crowd__close(struct thread *t)
{
	if (!t->open)
		return true;
	store_release(&t->open, 0u);
	__atomic_sub_fetch(&lib.memory->crowd.open, 1, __ATOMIC_RELEASE);
	return !load_acquire(&t->disturbed);
}
