/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the hooks of copies and sets of memory have in common (copies.c, shapes.c). */
#ifndef LIBRARY_COPIES_H
#define LIBRARY_COPIES_H

#include "gpu_timing/library/launch.h"

/* Where a copy begins or ends. */
enum place { PLACE_UNKNOWN, PLACE_HOST, PLACE_DEVICE, PLACE_ARRAY, NR_PLACES };

/* Of any address: asks the driver, for which it must have accepted the copy. */
enum place place__of(CUdeviceptr at);
enum copy_kind copy__kind(enum place to, enum place from);

static inline void copy__describe(struct channel_launch *l, enum copy_kind kind, uint64_t bytes)
{
	l->grid[0] = (uint32_t)bytes;
	l->grid[1] = (uint32_t)(bytes >> 32);
	l->grid[2] = kind;
}

/* Inline: launch__enter looks at the hook's own frame. */
static inline __attribute__((always_inline)) bool copy__begin(struct call *call, uint32_t slot,
							      unsigned int flags, enum copy_kind kind,
							      uint64_t bytes, size_t nr, CUstream stream)
{
	struct channel_launch *l;

	if (!launch__enter(call, slot, stream, flags & LAUNCH_PTSZ))
		return false;
	l = &call->t->launch;
	l->function = 0;
	l->stream = (uint64_t)stream;
	memset(l->block, 0, sizeof(l->block));
	l->block[0] = (uint32_t)nr;
	l->shared_bytes = 0;
	l->flags = (uint16_t)(LAUNCH_COPY | flags);
	copy__describe(l, kind, bytes);
	launch__begin(call, stream);
	return true;
}

/*
 * nr: copies of a batch, so that batches alike are known by it before their bytes are; `more`: what is to be
 * done once the driver has returned r.
 */
#define COPY_HOOK(name, slot, flags, kind, bytes, nr, in, more, params, args)			\
	static CUresult name params								\
	{											\
		CUresult (*original) params = lib.original[slot];				\
		struct call call;								\
		CUresult r;									\
												\
		if (!copy__begin(&call, slot, flags, kind, bytes, nr, in))			\
			return original args;							\
		r = original args;								\
		more;										\
		launch__end(&call, r);								\
		return r;									\
	}

#define LIST(...) __VA_ARGS__
#define NOTHING (void)0

/* Kind and bytes as they are known of a copy that the driver has accepted. */
#define SETTLE(kind, bytes)									\
	do {											\
		struct launch_question q;							\
												\
		if (!r && launch__mark_end(&call, &q)) {					\
			copy__describe(&call.t->launch, kind, bytes);				\
			launch__answered(&call, &q);						\
		}										\
	} while (0)

/* With a stream and without, each with its per-thread twin. */
#define COPY_HOOKS_ASYNC(name, slot, kind, bytes, more, params, args)				\
	COPY_HOOK(name##_async, slot##_ASYNC, 0, kind, bytes, 0, stream, more,			\
		  (LIST params, CUstream stream), (LIST args, stream))				\
	COPY_HOOK(name##_async_ptsz, slot##_ASYNC_PTSZ, LAUNCH_PTSZ, kind, bytes, 0, stream,	\
		  more, (LIST params, CUstream stream), (LIST args, stream))
#define BATCH_HOOKS(name, slot, nr, more, params, args)						\
	COPY_HOOK(name##_async, slot##_ASYNC, 0, COPY_UNKNOWN, 0, nr, stream, more,		\
		  (LIST params, CUstream stream), (LIST args, stream))				\
	COPY_HOOK(name##_async_ptsz, slot##_ASYNC_PTSZ, LAUNCH_PTSZ, COPY_UNKNOWN, 0, nr,	\
		  stream, more, (LIST params, CUstream stream), (LIST args, stream))
#define COPY_HOOKS_SYNC(name, slot, kind, bytes, more, params, args)				\
	COPY_HOOK(name, slot, 0, kind, bytes, 0, NULL, more, params, args)				\
	COPY_HOOK(name##_ptds, slot##_PTDS, LAUNCH_PTSZ, kind, bytes, 0, NULL, more, params, args)
#define COPY_HOOKS(name, slot, kind, bytes, more, params, args)					\
	COPY_HOOKS_ASYNC(name, slot, kind, bytes, more, params, args)				\
	COPY_HOOKS_SYNC(name, slot, kind, bytes, more, params, args)

/* The same of a table of hooks. */
#define COPY_HOOKED_ASYNC(slot, hook)								\
	COPY_AT(slot##_ASYNC) = hook##_async, COPY_AT(slot##_ASYNC_PTSZ) = hook##_async_ptsz
#define COPY_HOOKED_SYNC(slot, hook) COPY_AT(slot) = hook, COPY_AT(slot##_PTDS) = hook##_ptds
#define COPY_HOOKED(slot, hook) COPY_HOOKED_ASYNC(slot, hook), COPY_HOOKED_SYNC(slot, hook)

#endif
