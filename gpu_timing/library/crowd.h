/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether another thread's launch has come into a bracket: one in the same stream, or in one that this
 * waits for. Who only counts a launch says no more than where it goes, and looks at one word: are there
 * open brackets of others? Who opens one looks at what all others are just doing. Each says its own before
 * it looks at the other's, so that one of the two sees it.
 */
#ifndef LIBRARY_CROWD_H
#define LIBRARY_CROWD_H

#include "gpu_timing/library/library.h"

#define CROWD_LEGACY 1ull	/* no handle; a thread's own default stream has the top bit */

static inline uint64_t crowd__place(const struct thread *t, CUstream stream, bool per_thread)
{
	if (stream == CU_STREAM_PER_THREAD || (!stream && per_thread))
		return 1ull << 63 | (uint64_t)(t - lib.memory->threads.threads) << 4;
	return !stream || stream == CU_STREAM_LEGACY ? CROWD_LEGACY : (uint64_t)stream;
}

/* May a launch that goes to one place come into work at the other? */
bool crowd__may_meet(uint64_t place, uint64_t other);
/* A launch goes to `place`: open brackets of other threads that it may come into are told. */
void crowd__tell(struct thread *t, uint64_t place);

/*
 * The same where one is known to be under way: t->at was set before a full barrier (the session's). For
 * every launch.
 */
static inline void crowd__enter(struct thread *t)
{
	if (unlikely(load_relaxed(&lib.memory->crowd.open)))
		crowd__tell(t, t->at);
}

/*
 * A bracket of t opens, for what is under way at t->at, a stream of that order. One that is open stays so,
 * with what it was told.
 */
void crowd__open(struct thread *t, enum stream_order order);
/* It is closed. False: others may have come into it. No bracket was open: true. */
bool crowd__close(struct thread *t);

#endif
