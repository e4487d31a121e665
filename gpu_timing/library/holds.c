// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What stands in the slots of the entries that put a wait into a stream which the program itself may
 * have to end: for a value in memory, for a function of the program's, for another device. While one
 * is under way, few brackets are put behind it. Waits for events don't count: what they wait for is work, and
 * in programs that use several streams they would be under way all the time. But a run must not hold one.
 */
#include <errno.h>

#include "gpu_timing/library/library.h"

/*
 * Until the driver has taken the wait nothing is asked about stream or context, which may be gone: that would
 * leave a line in its error log. A stream that isn't known yet has had no launch.
 */
static void note(CUstream handle, bool per_thread, bool taken)
{
	const struct thread *t = thread__self();
	struct context *current = NULL;
	int saved = errno;
	struct stream *s;
	CUcontext ctx;

	if (!library__is_active() || !t)
		return;
	if (!handle && per_thread)
		handle = CU_STREAM_PER_THREAD;
	if (stream__is_default(handle) && !lib.driver.ctx_get_current(&ctx))
		current = taken ? context__get(ctx) : context__find(ctx);
	s = taken ? stream__get(handle, current, t) : stream__find(handle, current, t);
	if (s) {
		stream__hold(s);
		store_relaxed(&s->place, (uint32_t)PLACE_OTHER);
	}
	errno = saved;
}

/*
 * Before the call, for another thread may launch behind the wait at once; and after it, for a bracket taken
 * between the two may be before the wait: only the end of one taken later shows that the wait is over.
 */
#define HOLDING(stream, per_thread, call)							\
	do {											\
		CUresult r_;									\
												\
		run__close(stream, per_thread);							\
		note(stream, per_thread, false);						\
		r_ = call;									\
		if (!r_) {									\
			run__parted(stream, per_thread);					\
			note(stream, per_thread, true);						\
		}										\
		return r_;									\
	} while (0)

#define WAIT_VALUE(name, slot, type, per_thread)						\
	static CUresult name(CUstream stream, CUdeviceptr at, type value, unsigned int flags)	\
	{											\
		CUresult (*original)(CUstream, CUdeviceptr, type, unsigned int) =		\
			lib.original[slot];							\
												\
		HOLDING(stream, per_thread, original(stream, at, value, flags));		\
	}

WAIT_VALUE(wait_value32, SLOT_WAIT_VALUE32, uint32_t, false)
WAIT_VALUE(wait_value32_ptsz, SLOT_WAIT_VALUE32_PTSZ, uint32_t, true)
WAIT_VALUE(wait_value32_v2, SLOT_WAIT_VALUE32_V2, uint32_t, false)
WAIT_VALUE(wait_value32_v2_ptsz, SLOT_WAIT_VALUE32_V2_PTSZ, uint32_t, true)
WAIT_VALUE(wait_value64, SLOT_WAIT_VALUE64, uint64_t, false)
WAIT_VALUE(wait_value64_ptsz, SLOT_WAIT_VALUE64_PTSZ, uint64_t, true)
WAIT_VALUE(wait_value64_v2, SLOT_WAIT_VALUE64_V2, uint64_t, false)
WAIT_VALUE(wait_value64_v2_ptsz, SLOT_WAIT_VALUE64_V2_PTSZ, uint64_t, true)

#define BATCH_MEM_OP(name, slot, per_thread)							\
	static CUresult name(CUstream stream, unsigned int count, void *ops, unsigned int flags) \
	{											\
		CUresult (*original)(CUstream, unsigned int, void *, unsigned int) =		\
			lib.original[slot];							\
												\
		HOLDING(stream, per_thread, original(stream, count, ops, flags));		\
	}

BATCH_MEM_OP(batch_mem_op, SLOT_BATCH_MEM_OP, false)
BATCH_MEM_OP(batch_mem_op_ptsz, SLOT_BATCH_MEM_OP_PTSZ, true)
BATCH_MEM_OP(batch_mem_op_v2, SLOT_BATCH_MEM_OP_V2, false)
BATCH_MEM_OP(batch_mem_op_v2_ptsz, SLOT_BATCH_MEM_OP_V2_PTSZ, true)

#define HOST_FUNC(name, slot, per_thread)							\
	static CUresult name(CUstream stream, void (*fn)(void *), void *arg)			\
	{											\
		CUresult (*original)(CUstream, void (*)(void *), void *) = lib.original[slot];	\
												\
		HOLDING(stream, per_thread, original(stream, fn, arg));				\
	}

HOST_FUNC(host_func, SLOT_HOST_FUNC, false)
HOST_FUNC(host_func_ptsz, SLOT_HOST_FUNC_PTSZ, true)

#define HOST_FUNC_V2(name, slot, per_thread)							\
	static CUresult name(CUstream stream, void (*fn)(void *), void *arg, unsigned int mode)	\
	{											\
		CUresult (*original)(CUstream, void (*)(void *), void *, unsigned int) =	\
			lib.original[slot];							\
												\
		HOLDING(stream, per_thread, original(stream, fn, arg, mode));			\
	}

HOST_FUNC_V2(host_func_v2, SLOT_HOST_FUNC_V2, false)
HOST_FUNC_V2(host_func_v2_ptsz, SLOT_HOST_FUNC_V2_PTSZ, true)

#define CALLBACK(name, slot, per_thread)							\
	static CUresult name(CUstream stream, void *fn, void *arg, unsigned int flags)		\
	{											\
		CUresult (*original)(CUstream, void *, void *, unsigned int) = lib.original[slot]; \
												\
		HOLDING(stream, per_thread, original(stream, fn, arg, flags));			\
	}

CALLBACK(callback, SLOT_CALLBACK, false)
CALLBACK(callback_ptsz, SLOT_CALLBACK_PTSZ, true)

#define WAIT_EXTERNAL(name, slot, per_thread)							\
	static CUresult name(const void *semaphores, const void *params, unsigned int count,	\
			     CUstream stream)							\
	{											\
		CUresult (*original)(const void *, const void *, unsigned int, CUstream) =	\
			lib.original[slot];							\
												\
		HOLDING(stream, per_thread, original(semaphores, params, count, stream));	\
	}

WAIT_EXTERNAL(wait_external, SLOT_WAIT_EXTERNAL, false)
WAIT_EXTERNAL(wait_external_ptsz, SLOT_WAIT_EXTERNAL_PTSZ, true)

#define WAIT_EVENT(name, slot, per_thread)							\
	static CUresult name(CUstream stream, CUevent event, unsigned int flags)		\
	{											\
		CUresult (*original)(CUstream, CUevent, unsigned int) = lib.original[slot];	\
												\
		CUresult r;									\
												\
		run__close(stream, per_thread);							\
		r = original(stream, event, flags);						\
		if (!r)										\
			run__parted(stream, per_thread);					\
		return r;									\
	}

WAIT_EVENT(wait_event, SLOT_WAIT_EVENT, false)
WAIT_EVENT(wait_event_ptsz, SLOT_WAIT_EVENT_PTSZ, true)

void *hook__order(uint32_t slot)
{
	return slot == SLOT_WAIT_EVENT ? (void *)wait_event : (void *)wait_event_ptsz;
}

void *hook__hold(uint32_t slot)
{
	static void *const hooks[SLOT_ORDERS - SLOT_HOLDS] = {
		[SLOT_WAIT_VALUE32 - SLOT_HOLDS] = wait_value32,
		[SLOT_WAIT_VALUE32_PTSZ - SLOT_HOLDS] = wait_value32_ptsz,
		[SLOT_WAIT_VALUE32_V2 - SLOT_HOLDS] = wait_value32_v2,
		[SLOT_WAIT_VALUE32_V2_PTSZ - SLOT_HOLDS] = wait_value32_v2_ptsz,
		[SLOT_WAIT_VALUE64 - SLOT_HOLDS] = wait_value64,
		[SLOT_WAIT_VALUE64_PTSZ - SLOT_HOLDS] = wait_value64_ptsz,
		[SLOT_WAIT_VALUE64_V2 - SLOT_HOLDS] = wait_value64_v2,
		[SLOT_WAIT_VALUE64_V2_PTSZ - SLOT_HOLDS] = wait_value64_v2_ptsz,
		[SLOT_BATCH_MEM_OP - SLOT_HOLDS] = batch_mem_op,
		[SLOT_BATCH_MEM_OP_PTSZ - SLOT_HOLDS] = batch_mem_op_ptsz,
		[SLOT_BATCH_MEM_OP_V2 - SLOT_HOLDS] = batch_mem_op_v2,
		[SLOT_BATCH_MEM_OP_V2_PTSZ - SLOT_HOLDS] = batch_mem_op_v2_ptsz,
		[SLOT_HOST_FUNC - SLOT_HOLDS] = host_func,
		[SLOT_HOST_FUNC_PTSZ - SLOT_HOLDS] = host_func_ptsz,
		[SLOT_HOST_FUNC_V2 - SLOT_HOLDS] = host_func_v2,
		[SLOT_HOST_FUNC_V2_PTSZ - SLOT_HOLDS] = host_func_v2_ptsz,
		[SLOT_CALLBACK - SLOT_HOLDS] = callback,
		[SLOT_CALLBACK_PTSZ - SLOT_HOLDS] = callback_ptsz,
		[SLOT_WAIT_EXTERNAL - SLOT_HOLDS] = wait_external,
		[SLOT_WAIT_EXTERNAL_PTSZ - SLOT_HOLDS] = wait_external_ptsz,
	};

	return hooks[slot - SLOT_HOLDS];
}
