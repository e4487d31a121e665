/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is known of each stream: its context, who works in it, and the brackets under way, oldest
 * first. Found by handle in a table of small sets, without locks.
 */
#ifndef LIBRARY_STREAM_H
#define LIBRARY_STREAM_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu_timing/channel.h"
#include "gpu_timing/cuda_types.h"

#define STREAM_SETS 256
#define STREAM_WAYS 16
#define MAX_STREAMS (STREAM_SETS * STREAM_WAYS)
#define STREAM_RING 512		/* a power of two above CHANNEL_MAX_OUTSTANDING */
/*
 * After a programmatic dependent launch a record behind the launch before the next one would
 * destroy their overlap, and the next one can't be foreseen: where not every launch is looked at, so many
 * that are stay without a bracket, but for a few (run.h). Where every one is, there are runs.
 */
#define STREAM_PDL_QUIET 1024

struct context;
struct thread;

/* The legacy stream waits for all blocking streams of its context, and they for it. */
enum stream_order {
	ORDER_BLOCKING = 0,	/* or not known yet */
	ORDER_LEGACY = 1,
	ORDER_FREE = 2,
};

struct stream {
	uint32_t context;	/* number + 1 of its context; 0: not asked yet */
	uint32_t serial;	/* of that context */
	uint32_t active;	/* launches under way in it that are looked at */
	uint32_t seq;		/* those ever begun: all launches while a run is open */
	uint32_t order;		/* enum stream_order */
	uint32_t pdl;		/* launches still to stay without a bracket, where not all are looked at */
	uint32_t run;		/* a bracket that is open around a run: its number + 1 (run.h) */
	uint32_t chained;	/* bool: it had a programmatic dependent launch */
	uint32_t place;		/* enum stream_place */
	uint32_t left_out;	/* bool: the last launch was, by chance */
	uint32_t drains;	/* bool: a run was void as the stream may have been idle inside of it */
	uint32_t closers;	/* threads that end a run here by another call than a launch into it */
	uint64_t function;	/* of the last launch, if that was of a kernel and no dependent one; or 0 */
	uint32_t outstanding;	/* brackets taken and not yet reported */
	uint32_t since;		/* brackets taken since an end was last seen, or behind a wait */
	uint32_t holds;		/* waits ever put into it that the program itself may have to end */
	uint32_t held;		/* the last of them, unless a bracket behind it has ended; or 0 */
	uint32_t dead;		/* destroyed: freed when nothing is outstanding */
	uint32_t lock;		/* of tail: tried, never waited for on the launch path */
	uint32_t tail;
	uint32_t head;
	uint16_t pending[STREAM_RING];	/* number + 1 of a bracket; 0: not published yet */
} __attribute__((aligned(64)));

struct stream_table {
	uint64_t used[MAX_STREAMS / 64];	/* bit set */
	uint64_t keys[MAX_STREAMS];		/* 0: free */
	struct stream streams[MAX_STREAMS];
};

#define STREAM_NO_CONTEXT (~0u)	/* in `context`: the driver would not tell */

enum stream_lock {
	STREAM_UNLOCKED = 0,
	STREAM_HARVESTED = 1,
	STREAM_SUSPENDED = 2,	/* held across a call that may destroy its context */
};

static inline bool stream__is_default(CUstream handle)
{
	return !handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
}

/*
 * The element of a stream, made if need be; NULL: no room. Default streams (NULL, 1, 2) are those
 * of `current`, CU_STREAM_PER_THREAD also of t; `current` isn't needed for others.
 */
struct stream *stream__get(CUstream handle, struct context *current, const struct thread *t);
/* The same if there is one; nobody is asked. */
struct stream *stream__find(CUstream handle, const struct context *current, const struct thread *t);
bool stream__is_legacy(const struct stream *s);
/* As crowd.h has it. */
uint64_t stream__place(const struct stream *s);
/* Its context, as long as that lives, else NULL. */
struct context *stream__context(const struct stream *s);

/* One more bracket? If yes it counts as outstanding, and *weight is set. */
bool stream__admit(struct stream *s, struct thread *t, uint32_t *weight);
/* How many ends the launching thread should look for first, at most; 0: none. */
unsigned int stream__wants_ends(const struct stream *s);
/* An end was seen by the launching thread, right now. */
void stream__moved(struct stream *s);
/* A wait is put into it that the program itself may have to end (holds.c). */
void stream__hold(struct stream *s);
/* A bracket has ended that was taken when `hold` was the last such wait. */
void stream__let_go(struct stream *s, uint32_t hold);
void stream__publish(struct stream *s, uint32_t bracket);

/* Before the driver destroys it: its handle may come again at once. */
void stream__retire(CUstream handle);
void stream__retire_at(struct stream *s);
/* Frees a retired one in which nothing is under way any more. */
void stream__free_if_done(struct stream *s);

/* Of the session before: their handles may stand for others by now. */
void stream__retire_all(void);

void stream__each(void (*fn)(struct stream *s, void *ctx), void *ctx);

bool stream__try_lock(struct stream *s, enum stream_lock as);
void stream__unlock(struct stream *s);

#endif
