/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A session: one collector's recording, from the hello to PASSIVE. What belongs to one is exact,
 * because who counts, fires a probe or writes a record is inside the session, by a word of its own
 * thread, and a session is over only when nobody is inside any more. Nobody is inside while the
 * program's own call runs: a thread may sleep in there for seconds, over the end of one session and
 * the start of the next; what it brings back belongs to none and is dropped.
 */
#ifndef LIBRARY_SESSION_H
#define LIBRARY_SESSION_H

#include "gpu_timing/library/library.h"

#define SESSION_MASK ((1u << (64 - CHANNEL_SESSION_SHIFT)) - 1)

/*
 * The segment and our memory, made at the first call in this process. 0 or negative errno.
 */
int session__open(void);
/*
 * Somebody records, and the program has closed the descriptor by which others would see it. For a
 * process that has called session__open.
 */
bool session__is_hidden(void);
/*
 * All of the session before is forgotten, the segment's descriptor made anew if it was closed, the driver
 * looked at: REASON_NONE or why not, with *detail. `caller` is a code address in the driver, or NULL.
 * Only one thread at a time.
 */
enum channel_reason session__begin(const void *caller, uint32_t *detail);
/* Swaps the slots. REASON_NONE: launches are recorded from here on. */
enum channel_reason session__arm(uint32_t *detail);
/* Makes the outcome known: the state, in the segment, and the hello. */
void session__publish(enum channel_state state, enum channel_reason reason, uint32_t detail);
/* The slots could not be swapped after all. */
void session__refuse(enum channel_reason reason, uint32_t detail);
/*
 * The end, on the collector's behalf: the program is as it was before. False: the program's own end
 * has come first.
 */
bool session__retire(enum channel_reason reason);
/* Of the keeper: has the program's exit handler ended it? */
bool session__is_over(void);
/* The program has launched for the first time in this session. */
void session__first_launch(void);

static inline void session__leave(struct thread *t, uint32_t was)
{
	if (likely(t))
		store_release(&t->inside, was);
	else
		__atomic_sub_fetch(&lib.memory->guard.inside, 1, __ATOMIC_RELEASE);
}

/*
 * False: that session takes nothing any more. Else session__leave must follow, with the same *was:
 * what t was before, since signal handlers nest, and leave by jumps.
 */
static inline bool session__enter(struct thread *t, uint32_t session, uint32_t *was)
{
	struct guard *g = &lib.memory->guard;

	/* Both this and the look below in one order for all: the one who closes looks for us. */
	if (likely(t)) {
		*was = t->inside;
		__atomic_store_n(&t->inside, 1u, __ATOMIC_SEQ_CST);
	} else {
		__atomic_add_fetch(&g->inside, 1, __ATOMIC_SEQ_CST);
	}
	if (likely(__atomic_load_n(&g->open, __ATOMIC_SEQ_CST) == session))
		return true;
	session__leave(t, *was);
	return false;
}

/* The open session, if it is the one that this launch belongs to, else 0. */
static inline uint32_t session__of(uint64_t launch)
{
	uint32_t open = load_relaxed(&lib.memory->guard.open);

	return (open & SESSION_MASK) == launch >> CHANNEL_SESSION_SHIFT ? open : 0;
}

#endif
