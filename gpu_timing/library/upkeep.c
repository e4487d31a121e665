// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What stands in the slots of the entries that end something we keep: what belongs to it is given
 * up before the driver's own function frees it, since handles are addresses that come again. The
 * result is always that of the driver's own function, and errno as that left it.
 */
#include <errno.h>

#include "gpu_timing/library/library.h"
#include "gpu_timing/waits.h"

static CUresult module_unload(CUmodule module)
{
	CUresult (*original)(CUmodule) = lib.original[SLOT_MODULE_UNLOAD];

	if (library__is_active())
		name__forget_all();
	return original(module);
}

static CUresult library_unload(CUlibrary library)
{
	CUresult (*original)(CUlibrary) = lib.original[SLOT_LIBRARY_UNLOAD];

	if (library__is_active())
		name__forget_all();
	return original(library);
}

static CUresult module_get_function(CUfunction *function, CUmodule module, const char *name)
{
	CUresult (*original)(CUfunction *, CUmodule, const char *) =
		lib.original[SLOT_MODULE_GET_FUNCTION];
	CUresult r = original(function, module, name);

	if (!r && function && library__is_active())
		name__note((uint64_t)*function, HANDLE_FUNCTION);
	return r;
}

static CUresult kernel_get_function(CUfunction *function, CUkernel kernel)
{
	CUresult (*original)(CUfunction *, CUkernel) = lib.original[SLOT_KERNEL_GET_FUNCTION];
	CUresult r = original(function, kernel);

	if (!r && function && library__is_active())
		name__note((uint64_t)*function, HANDLE_FUNCTION);
	return r;
}

#define STREAM_DESTROY(name, slot)						\
	static CUresult name(CUstream stream)					\
	{									\
		CUresult (*original)(CUstream) = lib.original[slot];		\
										\
		run__close(stream, false);					\
		if (library__is_active()) {					\
			stream__retire(stream);					\
			captures__stream_goes();				\
		}								\
		return original(stream);					\
	}

STREAM_DESTROY(stream_destroy, SLOT_STREAM_DESTROY)
STREAM_DESTROY(stream_destroy_v2, SLOT_STREAM_DESTROY_V2)

static struct suspension suspend(CUcontext handle)
{
	struct suspension s = { 0 };
	int saved = errno;

	if (!library__is_active())
		return s;
	/* Its modules go with it. */
	name__forget_all();
	captures__forget_all();
	s = context__suspend(handle);
	errno = saved;
	return s;
}

/* In a child forked meanwhile there is nothing to finish. */
static void finish(struct suspension s, bool gone)
{
	int saved = errno;

	if (load_relaxed(&lib.memory->guard.owner))
		context__resume(s, gone);
	errno = saved;
}

#define CTX_DESTROY(name, slot)							\
	static CUresult name(CUcontext ctx)					\
	{									\
		CUresult (*original)(CUcontext) = lib.original[slot];		\
		struct suspension s = suspend(ctx);				\
		CUresult r = original(ctx);					\
										\
		finish(s, !r);							\
		return r;							\
	}

CTX_DESTROY(ctx_destroy, SLOT_CTX_DESTROY)
CTX_DESTROY(ctx_destroy_v2, SLOT_CTX_DESTROY_V2)
/* The old reference count is never above one in practice; if it is, some brackets are lost. */
CTX_DESTROY(ctx_detach, SLOT_CTX_DETACH)

static CUresult green_destroy(CUgreenCtx green)
{
	CUresult (*original)(CUgreenCtx) = lib.original[SLOT_GREEN_DESTROY];
	struct suspension s = { 0 };
	CUcontext ctx = NULL;
	CUresult r;

	/* Streams of a green context are known by the context made from it. */
	if (library__is_active() && lib.driver.from_green && !lib.driver.from_green(&ctx, green))
		s = suspend(ctx);
	r = original(green);
	finish(s, !r);
	return r;
}

static CUresult primary_retain(CUcontext *ctx, CUdevice device)
{
	CUresult (*original)(CUcontext *, CUdevice) = lib.original[SLOT_PRIMARY_RETAIN];
	CUresult r = original(ctx, device);

	if (!r && ctx && library__is_active())
		context__note_primary(device, *ctx);
	return r;
}

/* Is the device's primary context gone after a release? Others may still hold it. */
static bool primary_gone(CUdevice device)
{
	unsigned int flags;
	int active = 1;

	return !lib.driver.primary_state(device, &flags, &active) && !active;
}

static CUresult end_known(CUresult (*original)(CUdevice), CUdevice device, CUcontext ctx,
			  bool always)
{
	struct suspension s = suspend(ctx);
	CUresult r = original(device);

	finish(s, !r && (always || primary_gone(device)));
	return r;
}

/* Retained before we came: any context of the device may be the one. */
static CUresult end_unknown(CUresult (*original)(CUdevice), CUdevice device, bool always)
{
	struct suspension s[MAX_CONTEXTS];
	CUresult r;
	int saved = errno;

	name__forget_all();
	captures__forget_all();
	context__suspend_device(device, s);
	errno = saved;
	r = original(device);
	saved = errno;
	if (load_relaxed(&lib.memory->guard.owner))
		context__resume_device(s, !r && (always || primary_gone(device)));
	errno = saved;
	return r;
}

#define PRIMARY_END(name, slot, always)						\
	static CUresult name(CUdevice device)					\
	{									\
		CUresult (*original)(CUdevice) = lib.original[slot];		\
		CUcontext ctx;							\
										\
		if (!library__is_active())					\
			return original(device);				\
		ctx = context__primary(device);					\
		return ctx ? end_known(original, device, ctx, always) :		\
			     end_unknown(original, device, always);		\
	}

PRIMARY_END(primary_reset, SLOT_PRIMARY_RESET, true)
PRIMARY_END(primary_reset_v2, SLOT_PRIMARY_RESET_V2, true)
PRIMARY_END(primary_release, SLOT_PRIMARY_RELEASE, false)
PRIMARY_END(primary_release_v2, SLOT_PRIMARY_RELEASE_V2, false)

void *hook__upkeep(uint32_t slot)
{
	static void *const hooks[SLOT_HOLDS] = {
		[SLOT_MODULE_UNLOAD] = module_unload,
		[SLOT_LIBRARY_UNLOAD] = library_unload,
		[SLOT_STREAM_DESTROY] = stream_destroy,
		[SLOT_STREAM_DESTROY_V2] = stream_destroy_v2,
		[SLOT_CTX_DESTROY] = ctx_destroy,
		[SLOT_CTX_DESTROY_V2] = ctx_destroy_v2,
		[SLOT_CTX_DETACH] = ctx_detach,
		[SLOT_PRIMARY_RETAIN] = primary_retain,
		[SLOT_PRIMARY_RESET] = primary_reset,
		[SLOT_PRIMARY_RESET_V2] = primary_reset_v2,
		[SLOT_PRIMARY_RELEASE] = primary_release,
		[SLOT_PRIMARY_RELEASE_V2] = primary_release_v2,
		[SLOT_GREEN_DESTROY] = green_destroy,
		[SLOT_MODULE_GET_FUNCTION] = module_get_function,
		[SLOT_KERNEL_GET_FUNCTION] = kernel_get_function,
	};

	return hooks[slot];
}

void *hook__of(uint32_t slot)
{
	if (slot < NR_LAUNCH_ENTRIES)
		return hook__launch(slot);
	if (slot__waits(slot))
		return hook__wait(slot);
	if (slot < SLOT_HOLDS)
		return hook__upkeep(slot);
	if (slot < SLOT_ORDERS)
		return hook__hold(slot);
	if (slot < SLOT_COPIES)
		return hook__order(slot);
	if (slot < SLOT_GRAPHS)
		return hook__copy(slot);
	return slot < SLOT_CAPTURES ? hook__graph(slot) : hook__capture(slot);
}
