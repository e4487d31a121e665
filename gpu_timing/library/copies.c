// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What stands in the slots of the entries that copy or set memory: each call is seen and timed as a
 * launch is. A kind (channel.h) and the number of bytes stand for the function and its shape.
 */
#include <errno.h>

#include "gpu_timing/library/launch.h"

#define QUEUED_NS 10000	/* what it may take to queue a copy */
#define CALL_WAITS 0x10000u	/* beside LAUNCH_*: without a stream of its own it returns when it is done */

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
	call->waits = flags & CALL_WAITS;
	/* One that never ends is known by that. */
	if (call->waits && !call->counted && launch__may_wait(kind))
		store_release(&call->t->counters->waiting, l->id);
	return true;
}

enum place { PLACE_UNKNOWN, PLACE_PAGEABLE, PLACE_PINNED, PLACE_DEVICE };

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
		return PLACE_PAGEABLE;
	case CU_MEMORYTYPE_HOST:
		return PLACE_PINNED;
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
 * A copy with a stream waits, too, where the host's memory isn't pinned, as in Tensor.cpu(). What took no
 * longer than to queue one has not waited.
 */
static bool took_long(struct call *call)
{
	call->took = clock__ns() - call->begun;
	return !call->waits && call->took > QUEUED_NS;
}

/* Whether the driver may be asked about what it has accepted; not about what went into a graph. */
static bool may_ask(const struct call *call, CUresult r)
{
	return !r && launch__is_ours(call) && !call->counted && call->cause != CAUSE_CAPTURED &&
	       library__is_active();
}

/* `host`: the address of the two that is the host's. */
static void look_at_host(struct call *call, CUresult r, CUdeviceptr host)
{
	int saved = errno;

	if (may_ask(call, r) && took_long(call))
		call->waits = place_of(host) == PLACE_PAGEABLE;
	errno = saved;
}

/*
 * The driver has accepted a copy between any two places. Nothing is asked about one that went into a
 * graph: it isn't executed.
 */
static void settle(struct call *call, CUresult r, CUdeviceptr to, CUdeviceptr from, uint64_t bytes)
{
	enum place there, here;
	int saved = errno;
	bool long_one;

	if (!may_ask(call, r))
		return;
	long_one = took_long(call);
	there = place_of(to);
	here = place_of(from);
	describe(&call->t->launch, kind_between(there, here), bytes);
	if (long_one)
		call->waits = there == PLACE_PAGEABLE || here == PLACE_PAGEABLE;
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
	COPY_HOOK(name, slot, CALL_WAITS, kind, bytes, NULL, more, params, args)		\
	COPY_HOOK(name##_ptds, slot##_PTDS, LAUNCH_PTSZ | CALL_WAITS, kind, bytes, NULL, more,	\
		  params, args)

#define NOTHING (void)0
#define HOST(p) look_at_host(&call, r, (CUdeviceptr)(uintptr_t)(p))

COPY_HOOKS(htod, SLOT_HTOD, COPY_HTOD, n, HOST(from),
	   (CUdeviceptr to, const void *from, size_t n), (to, from, n))
COPY_HOOKS(dtoh, SLOT_DTOH, COPY_DTOH, n, HOST(to), (void *to, CUdeviceptr from, size_t n), (to, from, n))
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
