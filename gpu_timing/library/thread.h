/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the library keeps for each thread that launches. The thread finds it by the library's only
 * thread-local word; a `__thread` table would make the loader call malloc inside the hook. No
 * destructor: a dead thread's element is found by its tid and taken over.
 */
#ifndef LIBRARY_THREAD_H
#define LIBRARY_THREAD_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu_timing/channel.h"
#include "gpu_timing/library/sampler.h"

struct stream;

struct thread {
	struct channel_thread *counters;	/* in the segment; this thread alone writes it */
	uint32_t tid;			/* 0: free */
	uint32_t bracket;		/* taken and not yet published: its number + 1 */
	void *frame;			/* of the outermost hook that is under way, else NULL */
	uint32_t closing;		/* of a run that is being ended: as `bracket` */
	struct stream *stream;		/* of that launch */
	uint64_t at;			/* crowd.h: where its launch under way goes; 0: none is */
	uint32_t open;			/* bool: so does a bracket */
	uint32_t disturbed;		/* bool: another launch may have come into that */
	uint32_t looked;		/* `turn` when the keeper looked at it last */
	uint32_t entered;		/* bool: counted as active in it */
	uint32_t turn;			/* of that launch: another value means that it was given up */
	uint32_t inside;		/* bool: of the session (session.h) */
	uint32_t captures;		/* begun by it, and perhaps not ended (captures.h) */
	uint32_t in_vain;		/* launches since then that went into none */
	uint32_t captured;		/* that were looked at for their capture's sake alone */
	uint64_t next_id;		/* goes on when the element changes hands: ids are unique */
	uint64_t random;
	struct pace pace;
	struct stratum rest;		/* of its launches that found no room among the strata */
	/*
	 * Of the launch under way: what the probe shows, and what is left if a signal handler
	 * jumps out of it. The id is 0 when nothing is under way.
	 */
	struct channel_launch launch;
} __attribute__((aligned(128)));

struct thread_table {
	uint32_t free;			/* about how many elements are free */
	uint32_t hint;			/* where to look first */
	uint32_t looked_at;		/* for dead threads */
	uint64_t try_again;		/* CLOCK_MONOTONIC ns: not before, all were alive */
	uint64_t looked;		/* the same: when the keeper looked for dead ones */
	struct thread threads[CHANNEL_THREADS];	/* the first isn't used */
};

extern __thread struct thread *thread_self __attribute__((visibility("hidden")));

void thread__init(struct thread_table *table);
/* Finds an element for the calling thread; NULL: none is free. Makes system calls. */
struct thread *thread__find(void);
/*
 * Takes elements of dead threads back: if few are free or many are in use, since all are gone through now
 * and then, and of those that ended inside a launch. Only the library's own thread calls it.
 */
void thread__reclaim(void);
/* Gives the caller's element back: of a thread of ours that ends. */
void thread__leave(void);
/* Is any thread inside the session? Its tid, or 0 where it has no element; false: nobody. */
bool thread__any_inside(uint32_t *tid);

/* A thread that forked has that of its parent's table. */
static inline bool thread__is_ours(const struct thread_table *table, const struct thread *t)
{
	return (uintptr_t)t - (uintptr_t)table->threads < sizeof(table->threads);
}

#define thread__self()								\
	(__builtin_expect(thread__is_ours(&lib.memory->threads, thread_self), 1) ? \
		 thread_self : thread__find())

/* Adds to a counter of t, or of the shared element where there is no t. */
void thread__add_shared(size_t offset, uint64_t n);
#define thread__add(t, field, n)						\
	do {									\
		struct thread *t_ = (t);					\
		if (t_)								\
			__atomic_store_n(&t_->counters->field, t_->counters->field + (n), \
					 __ATOMIC_RELAXED);			\
		else								\
			thread__add_shared(offsetof(struct channel_thread, field), n); \
	} while (0)
#define thread__count(t, field) thread__add(t, field, 1)

uint64_t thread__random(struct thread *t);

#endif
