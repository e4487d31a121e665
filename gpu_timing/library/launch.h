/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What every launch hook does around the driver's own function:
 *
 *	struct call call;
 *
 *	if (!launch__enter(&call, entry, stream, per_thread))
 *		return original(…);
 *	fill in call.t->launch: function, stream, shape, flags
 *	launch__begin(&call, stream);	(inside the session from launch__enter to its end)
 *	result = original(…);
 *	launch__end(&call, result);
 *
 * Of a copy more may be known once the driver has accepted it. What asks the driver for it comes behind
 * the second record, so that the bracket isn't longer for it:
 *
 *	struct launch_question q;
 *
 *	if (!result && launch__mark_end(&call, &q)) {
 *		call.t->launch.grid…
 *		launch__answered(&call, &q);
 *	}
 */
#ifndef LIBRARY_LAUNCH_H
#define LIBRARY_LAUNCH_H

#include <string.h>

#include "gpu_timing/library/crowd.h"
#include "gpu_timing/library/session.h"

struct call {
	struct thread *t;
	struct context *context;	/* of the bracket */
	CUstream stream;		/* as given to the driver's calls */
	uint32_t weight;
	uint32_t one_in;		/* 1 / the chance that run__meet gave it */
	uint32_t turn;
	uint32_t session;
	uint32_t was_inside;
	uint64_t begun;			/* CLOCK_MONOTONIC ns: the first record was made; or a copy's call */
	uint64_t spent;			/* ns, where a budget decides */
	uint64_t place;			/* crowd__place() */
	struct capture_answer answer;
	uint32_t every;			/* as the segment has it: 1: all are looked at, there are runs */
	uint32_t seq;			/* of the stream, when this launch began in it */
	bool counted;			/* and no more: another of its stratum stands for it */
	bool marked;			/* its end is recorded, if it is to be */
	bool waits;			/* a copy whose call returns when it is done, for all that is known */
	uint64_t took;			/* ns: that call; 0: not measured yet */
	bool alone;			/* of a run: no other launch was under way where it went */
	bool joined;			/* its bracket is that of a run (run.h) which was open */
	bool stays;			/* its bracket is to stay open behind it */
	bool apart;			/* it may overlap others, and has a bracket of its own nonetheless */
	bool ended;			/* the end of its bracket was recorded */
	enum launch_cause cause;
	CUresult error;
};

/* What the program must not notice of questions to the driver, and their cost. */
struct launch_question {
	uint64_t since;
	uint32_t fp;
	int saved;
};

void launch__begin(struct call *call, CUstream stream);
/* Gives it the thread's next id, and shows it to the probe: *l is memory of the thread. */
void launch__fire(struct thread *t, struct channel_launch *l, uint32_t session);
void launch__end(struct call *call, CUresult result);
/* False: nothing more is to be known of it: counted only, part of a graph, or no longer ours. */
bool launch__mark_end(struct call *call, struct launch_question *q);
void launch__answered(struct call *call, const struct launch_question *q);
/*
 * After the driver's call: false if the process was forked inside of it, or the hook was left by a
 * jump and others were entered: then call->t is of another.
 */
bool launch__is_ours(const struct call *call);
/* Whether the call of a copy of that kind, which has no stream, returns when that is done. */
bool launch__may_wait(uint32_t kind);
/* A copy that isn't known to wait, but whose call took longer than to queue one. */
bool launch__took_long(struct call *call);
/* No probe now: the driver's function may sleep, and its launches are only known after it. */
void launch__wait(struct call *call);
/*
 * After that: a probe and a RESULT for one launch that is never bracketed; `further`: it is another
 * one than that which launch__enter has counted.
 */
void launch__only_seen(struct call *call, CUresult result, bool further);
void launch__leave(struct call *call);
/* A hook was left by a jump out of a signal handler: gives back what it held. */
void launch__abandon(struct thread *t);

/* A launch from inside of another hook of t: it may come into brackets, t's own included. */
void launch__nested(struct thread *t, uint64_t place);

static inline void launch__leave_place(struct thread *t)
{
	if (likely(t))
		store_release(&t->at, 0ull);
}

/*
 * Counts the launch (enum launch_entry) or copy (enum channel_slot). False: nothing more to do than
 * to call the driver. The frame tells nesting: a launch from deeper in the same stack (our own calls
 * into the driver, a signal handler) isn't counted twice, one from further up means that the hook was
 * left by a jump. A handler on another stack may look like that too: so what was given up is known by
 * its turn.
 */
static inline bool launch__enter(struct call *call, uint32_t entry, CUstream stream, bool per_thread)
{
	struct memory *m = lib.memory;
	void *frame = __builtin_frame_address(0);
	struct thread *t;

	if (unlikely(!load_relaxed(&m->guard.active)))
		return false;
	t = thread__self();
	if (unlikely(t && t->frame)) {
		if ((uintptr_t)frame < (uintptr_t)t->frame) {
			thread__count(t, nested);
			launch__nested(t, crowd__place(t, stream, per_thread));
			return false;
		}
		launch__abandon(t);
	}
	/* Before the barrier of the session's. */
	if (likely(t)) {
		call->place = crowd__place(t, stream, per_thread);
		store_relaxed(&t->at, call->place);
	}
	call->session = load_relaxed(&m->guard.open);
	if (unlikely(!call->session) || !session__enter(t, call->session, &call->was_inside)) {
		launch__leave_place(t);
		return false;
	}
	if (entry < NR_LAUNCH_ENTRIES)
		thread__count(t, launches[entry]);
	else
		thread__count(t, copies);
	if (unlikely(!t) || load_relaxed(&lib.segment->site) == SITE_NONE) {
		session__leave(t, call->was_inside);
		launch__leave_place(t);
		return false;
	}
	t->frame = frame;
	call->t = t;
	call->turn = ++t->turn;
	t->launch.entry = (uint16_t)entry;
	return true;
}

#endif
