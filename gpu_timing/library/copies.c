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

	if (!launch__enter(call, slot))
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

	if (r || !launch__is_ours(call) || call->cause == CAUSE_CAPTURED || !library__is_active())
		return;
	describe(&call->t->launch, kind_between(place_of(to), place_of(from)), bytes);
	errno = saved;
}

#define COPY_HOOK(name, slot, flags, kind, to_type, from_type)					\
	static CUresult name(to_type to, from_type from, size_t bytes, CUstream stream)		\
	{											\
		CUresult (*original)(to_type, from_type, size_t, CUstream) = lib.original[slot];	\
		struct call call;								\
		CUresult r;									\
												\
		if (!begin(&call, slot, flags, kind, bytes, stream))				\
			return original(to, from, bytes, stream);				\
		r = original(to, from, bytes, stream);						\
		launch__end(&call, r);								\
		return r;									\
	}

COPY_HOOK(htod_async, SLOT_HTOD_ASYNC, 0, COPY_HTOD, CUdeviceptr, const void *)
COPY_HOOK(htod_async_ptsz, SLOT_HTOD_ASYNC_PTSZ, LAUNCH_PTSZ, COPY_HTOD, CUdeviceptr, const void *)
COPY_HOOK(dtoh_async, SLOT_DTOH_ASYNC, 0, COPY_DTOH, void *, CUdeviceptr)
COPY_HOOK(dtoh_async_ptsz, SLOT_DTOH_ASYNC_PTSZ, LAUNCH_PTSZ, COPY_DTOH, void *, CUdeviceptr)
COPY_HOOK(dtod_async, SLOT_DTOD_ASYNC, 0, COPY_DTOD, CUdeviceptr, CUdeviceptr)
COPY_HOOK(dtod_async_ptsz, SLOT_DTOD_ASYNC_PTSZ, LAUNCH_PTSZ, COPY_DTOD, CUdeviceptr, CUdeviceptr)

#define UNIFIED_HOOK(name, slot, flags)								\
	static CUresult name(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)	\
	{											\
		CUresult (*original)(CUdeviceptr, CUdeviceptr, size_t, CUstream) =		\
			lib.original[slot];							\
		struct call call;								\
		CUresult r;									\
												\
		if (!begin(&call, slot, flags, COPY_UNKNOWN, bytes, stream))			\
			return original(to, from, bytes, stream);				\
		r = original(to, from, bytes, stream);						\
		settle(&call, r, to, from, bytes);						\
		launch__end(&call, r);								\
		return r;									\
	}

UNIFIED_HOOK(copy_async, SLOT_COPY_ASYNC, 0)
UNIFIED_HOOK(copy_async_ptsz, SLOT_COPY_ASYNC_PTSZ, LAUNCH_PTSZ)

#define PEER_HOOK(name, slot, flags)								\
	static CUresult name(CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from,		\
			     CUcontext from_ctx, size_t bytes, CUstream stream)			\
	{											\
		CUresult (*original)(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t,	\
				     CUstream) = lib.original[slot];				\
		struct call call;								\
		CUresult r;									\
												\
		if (!begin(&call, slot, flags, COPY_PTOP, bytes, stream))			\
			return original(to, to_ctx, from, from_ctx, bytes, stream);		\
		r = original(to, to_ctx, from, from_ctx, bytes, stream);			\
		launch__end(&call, r);								\
		return r;									\
	}

PEER_HOOK(peer_async, SLOT_PEER_ASYNC, 0)
PEER_HOOK(peer_async_ptsz, SLOT_PEER_ASYNC_PTSZ, LAUNCH_PTSZ)

#define SET_HOOK(name, slot, flags, type)							\
	static CUresult name(CUdeviceptr to, type value, size_t nr, CUstream stream)		\
	{											\
		CUresult (*original)(CUdeviceptr, type, size_t, CUstream) = lib.original[slot];	\
		struct call call;								\
		CUresult r;									\
												\
		if (!begin(&call, slot, flags, COPY_SET, nr * sizeof(type), stream))		\
			return original(to, value, nr, stream);					\
		r = original(to, value, nr, stream);						\
		launch__end(&call, r);								\
		return r;									\
	}

SET_HOOK(set8_async, SLOT_SET8_ASYNC, 0, uint8_t)
SET_HOOK(set8_async_ptsz, SLOT_SET8_ASYNC_PTSZ, LAUNCH_PTSZ, uint8_t)
SET_HOOK(set16_async, SLOT_SET16_ASYNC, 0, uint16_t)
SET_HOOK(set16_async_ptsz, SLOT_SET16_ASYNC_PTSZ, LAUNCH_PTSZ, uint16_t)
SET_HOOK(set32_async, SLOT_SET32_ASYNC, 0, uint32_t)
SET_HOOK(set32_async_ptsz, SLOT_SET32_ASYNC_PTSZ, LAUNCH_PTSZ, uint32_t)

void *hook__copy(uint32_t slot)
{
	static void *const hooks[NR_CHANNEL_SLOTS - SLOT_COPIES] = {
#define HOOK(slot, hook) [slot - SLOT_COPIES] = hook, [slot##_PTSZ - SLOT_COPIES] = hook##_ptsz
		HOOK(SLOT_HTOD_ASYNC, htod_async),
		HOOK(SLOT_DTOH_ASYNC, dtoh_async),
		HOOK(SLOT_DTOD_ASYNC, dtod_async),
		HOOK(SLOT_COPY_ASYNC, copy_async),
		HOOK(SLOT_PEER_ASYNC, peer_async),
		HOOK(SLOT_SET8_ASYNC, set8_async),
		HOOK(SLOT_SET16_ASYNC, set16_async),
		HOOK(SLOT_SET32_ASYNC, set32_async),
#undef HOOK
	};

	return hooks[slot - SLOT_COPIES];
}
