// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What stands in the slots of the entries that copy or set memory: each call is seen and timed as a
 * launch is. A kind (channel.h) and the number of bytes stand for the function and its shape.
 */
#include <errno.h>

#include "gpu_timing/library/launch.h"

static void describe(struct channel_launch *l, enum copy_kind kind, uint64_t bytes)
{
	l->grid[0] = (uint32_t)bytes;
	l->grid[1] = (uint32_t)(bytes >> 32);
	l->grid[2] = kind;
}

/* Inline: launch__enter looks at the hook's own frame. */
static inline __attribute__((always_inline)) bool begin(struct call *call, uint32_t slot,
							unsigned int flags, enum copy_kind kind,
							uint64_t bytes, CUstream stream)
{
	struct channel_launch *l;

	if (!launch__enter(call, slot, stream, flags & LAUNCH_PTSZ))
		return false;
	l = &call->t->launch;
	l->function = 0;
	l->stream = (uint64_t)stream;
	memset(l->block, 0, sizeof(l->block));
	l->shared_bytes = 0;
	l->flags = (uint16_t)(LAUNCH_COPY | flags);
	describe(l, kind, bytes);
	launch__begin(call, stream);
	return true;
}

enum place { PLACE_UNKNOWN, PLACE_HOST, PLACE_DEVICE };

/* Memory that the driver doesn't know is the host's. The question fails for no address. */
static enum place place_of(CUdeviceptr at)
{
	CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
	unsigned int type = 0;
	void *value = &type;

	if (!lib.driver.pointer_attributes ||
	    lib.driver.pointer_attributes(1, &attribute, &value, at))
		return PLACE_UNKNOWN;
	switch (type) {
	case 0:
	case CU_MEMORYTYPE_HOST:
		return PLACE_HOST;
	case CU_MEMORYTYPE_DEVICE:
		return PLACE_DEVICE;
	default:
		return PLACE_UNKNOWN;
	}
}

static enum copy_kind kind_between(enum place to, enum place from)
{
	if (!to || !from)
		return COPY_UNKNOWN;
	if (to == PLACE_DEVICE)
		return from == PLACE_DEVICE ? COPY_DTOD : COPY_HTOD;
	return from == PLACE_DEVICE ? COPY_DTOH : COPY_HTOH;
}

/*
 * The driver has accepted a copy between any two places. Nothing is asked about one that went into a
 * graph: it isn't executed.
 */
static void settle(struct call *call, CUresult r, CUdeviceptr to, CUdeviceptr from, uint64_t bytes)
{
	int saved = errno;

	if (r || !launch__is_ours(call) || call->counted || call->cause == CAUSE_CAPTURED ||
	    !library__is_active())
		return;
	describe(&call->t->launch, kind_between(place_of(to), place_of(from)), bytes);
	errno = saved;
}

/* `more`: what is to be done about a copy once the driver has returned r. */
#define COPY_HOOK(name, slot, flags, kind, bytes, in, more, params, args)			\
	static CUresult name params								\
	{											\
		CUresult (*original) params = lib.original[slot];				\
		struct call call;								\
		CUresult r;									\
												\
		if (!begin(&call, slot, flags, kind, bytes, in))				\
			return original args;							\
		r = original args;								\
		more;										\
		launch__end(&call, r);								\
		return r;									\
	}

#define LIST(...) __VA_ARGS__

/* With a stream and without, each with its per-thread twin. */
#define COPY_HOOKS(name, slot, kind, bytes, more, params, args)					\
	COPY_HOOK(name##_async, slot##_ASYNC, 0, kind, bytes, stream, more,			\
		  (LIST params, CUstream stream), (LIST args, stream))				\
	COPY_HOOK(name##_async_ptsz, slot##_ASYNC_PTSZ, LAUNCH_PTSZ, kind, bytes, stream, more,	\
		  (LIST params, CUstream stream), (LIST args, stream))				\
	COPY_HOOK(name, slot, 0, kind, bytes, NULL, more, params, args)				\
	COPY_HOOK(name##_ptds, slot##_PTDS, LAUNCH_PTSZ, kind, bytes, NULL, more, params, args)

#define NOTHING (void)0

COPY_HOOKS(htod, SLOT_HTOD, COPY_HTOD, n, NOTHING,
	   (CUdeviceptr to, const void *from, size_t n), (to, from, n))
COPY_HOOKS(dtoh, SLOT_DTOH, COPY_DTOH, n, NOTHING, (void *to, CUdeviceptr from, size_t n), (to, from, n))
COPY_HOOKS(dtod, SLOT_DTOD, COPY_DTOD, n, NOTHING,
	   (CUdeviceptr to, CUdeviceptr from, size_t n), (to, from, n))
COPY_HOOKS(copy, SLOT_COPY, COPY_UNKNOWN, n, settle(&call, r, to, from, n),
	   (CUdeviceptr to, CUdeviceptr from, size_t n), (to, from, n))
COPY_HOOKS(peer, SLOT_PEER, COPY_PTOP, n, NOTHING,
	   (CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from, CUcontext from_ctx, size_t n),
	   (to, to_ctx, from, from_ctx, n))
COPY_HOOKS(set8, SLOT_SET8, COPY_SET, n, NOTHING,
	   (CUdeviceptr to, uint8_t value, size_t n), (to, value, n))
COPY_HOOKS(set16, SLOT_SET16, COPY_SET, n * 2, NOTHING,
	   (CUdeviceptr to, uint16_t value, size_t n), (to, value, n))
COPY_HOOKS(set32, SLOT_SET32, COPY_SET, n * 4, NOTHING,
	   (CUdeviceptr to, uint32_t value, size_t n), (to, value, n))

void *hook__copy(uint32_t slot)
{
	static void *const hooks[NR_CHANNEL_SLOTS - SLOT_COPIES] = {
#define AT(slot) [slot - SLOT_COPIES]
#define HOOKS(slot, hook)									\
	AT(slot##_ASYNC) = hook##_async, AT(slot##_ASYNC_PTSZ) = hook##_async_ptsz,		\
	AT(slot) = hook, AT(slot##_PTDS) = hook##_ptds
		HOOKS(SLOT_HTOD, htod), HOOKS(SLOT_DTOH, dtoh), HOOKS(SLOT_DTOD, dtod),
		HOOKS(SLOT_COPY, copy), HOOKS(SLOT_PEER, peer), HOOKS(SLOT_SET8, set8),
		HOOKS(SLOT_SET16, set16), HOOKS(SLOT_SET32, set32),
#undef HOOKS
#undef AT
	};

	return hooks[slot - SLOT_COPIES];
}
