// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What stands in the slots of the entries that do nothing but wait for the device: how long the thread
 * was inside, and from where it came. The stack is taken before the call, while the device works, so
 * that it costs the program nothing where it waits at all; and the stack of a wait that never ends is
 * known. While the call is under way nothing of the thread's element is in use: a signal handler may
 * launch, wait, or leave it by a jump. The driver is asked nothing about the wait.
 */
#include <errno.h>

#include "gpu_timing/library/harvest.h"
#include "gpu_timing/library/launch.h"
#include "gpu_timing/library/segment.h"
#include "gpu_timing/library/strata.h"

struct wait {
	struct thread *t;		/* NULL: nobody looks at this one */
	uint32_t session;
	uint64_t begun;			/* CLOCK_MONOTONIC ns */
	uint64_t spent;			/* ns, where a budget decides */
	struct channel_launch launch;	/* what the probe shows */
};

/* We are inside the session. */
static void choose(struct wait *w, struct thread *t, uint32_t slot, CUstream stream, void *frame)
{
	uint32_t every = load_relaxed(&lib.segment->every);
	uint64_t since;

	w->launch = (struct channel_launch){
		.stream = (uint64_t)stream, .entry = (uint16_t)slot, .flags = LAUNCH_WAIT,
	};
	if (!strata__choose_for(t, &w->launch, (uint64_t)frame, every))
		return;
	since = every ? 0 : clock__ns();
	launch__fire(t, &w->launch, w->session);
	store_release(&t->counters->waiting, w->launch.id);
	w->t = t;
	w->spent = since ? clock__ns() - since : 0;
}

/* Inline: it looks at the hook's own frame, as launch__enter does. */
static inline __attribute__((always_inline)) void begin(struct wait *w, uint32_t slot, CUstream stream)
{
	struct guard *g = &lib.memory->guard;
	void *frame = __builtin_frame_address(0);
	struct thread *t;
	uint32_t was = 0;

	w->t = NULL;
	if (unlikely(!load_relaxed(&g->active)))
		return;
	t = thread__self();
	if (unlikely(t && t->frame)) {
		/* From inside of a launch, by a signal handler: what is under way there stays as it is. */
		if ((uintptr_t)frame < (uintptr_t)t->frame)
			return;
		launch__abandon(t);
	}
	w->session = load_relaxed(&g->open);
	if (unlikely(!w->session) || !session__enter(t, w->session, &was))
		return;
	thread__count(t, waits);
	if (likely(t) && load_relaxed(&lib.segment->site) != SITE_NONE) {
		t->frame = frame;
		choose(w, t, slot, stream, frame);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		t->frame = NULL;
	}
	session__leave(t, was);
	if (w->t)
		w->begun = clock__ns();
}

static void report(struct wait *w, uint64_t ns, CUresult r)
{
	struct channel_result result = {
		.launch = w->launch.id,
		.stream = w->launch.stream,
		.duration = ns,
		.device = -1,
		.launches = 1,
		.weight = 1,
		.stands_for = w->launch.weight,
		.stratum = w->launch.stratum,
		.entry = w->launch.entry,
		.flags = LAUNCH_WAIT,
		.cause = CAUSE_NONE,
		.error = (uint32_t)r,
	};

	segment__result(w->t, &result, NULL);
}

static void spend(struct wait *w, uint64_t ended)
{
	uint32_t fp = fp__save();

	pace__spend(&w->t->pace, w->spent + clock__ns() - ended);
	fp__restore(fp);
}

/*
 * Whatever the result: the time has passed. The session of a wait that was over after it is not there to be
 * told: what `waiting` says stays, and its collector knows that the wait had not ended.
 */
static void end(struct wait *w, CUresult r)
{
	uint64_t now;
	uint32_t was = 0;

	if (!w->t)
		return;
	now = clock__ns();
	/* Not where the process was forked inside of the call. */
	if (!load_relaxed(&lib.memory->guard.owner) || !session__enter(w->t, w->session, &was))
		return;
	report(w, now - w->begun, r);
	store_release(&w->t->counters->waiting, 0ull);
	session__leave(w->t, was);
	if (w->spent)
		spend(w, now);
}

/*
 * What the program has waited for is complete: taken at once, so that it isn't lost if the program
 * ends by a signal or becomes another one by exec.
 */
static void harvest_after(CUresult r)
{
	int saved = errno;

	if (!r && library__is_active())
		harvest__all();
	errno = saved;
}

/*
 * Whose chains of launches are over is known of the thread that waits: `close` ends the runs, before
 * anything else, for the device works on towards that end.
 */
#define SYNCHRONIZE(name, slot, params, args, stream, close)			\
	static CUresult name params						\
	{									\
		CUresult (*original) params = lib.original[slot];		\
		struct wait wait;						\
		CUresult r;							\
										\
		close;								\
		begin(&wait, slot, stream);					\
		r = original args;						\
		end(&wait, r);							\
		harvest_after(r);						\
		return r;							\
	}

SYNCHRONIZE(stream_sync, SLOT_STREAM_SYNC, (CUstream stream), (stream), stream, run__close(stream, false))
SYNCHRONIZE(stream_sync_ptsz, SLOT_STREAM_SYNC_PTSZ, (CUstream stream), (stream), stream,
	    run__close(stream, true))
SYNCHRONIZE(event_sync, SLOT_EVENT_SYNC, (CUevent event), (event), NULL, run__close_own(NULL))
SYNCHRONIZE(ctx_sync, SLOT_CTX_SYNC, (void), (), NULL, run__close_own(NULL))
SYNCHRONIZE(ctx_sync_v2, SLOT_CTX_SYNC_V2, (CUcontext ctx), (ctx), NULL, run__close_own(ctx))

void *hook__wait(uint32_t slot)
{
	switch (slot) {
	case SLOT_STREAM_SYNC: return stream_sync;
	case SLOT_STREAM_SYNC_PTSZ: return stream_sync_ptsz;
	case SLOT_CTX_SYNC: return ctx_sync;
	case SLOT_CTX_SYNC_V2: return ctx_sync_v2;
	default: return event_sync;
	}
}
