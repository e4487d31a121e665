// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What stands in the slots of the entries that end something we keep: what belongs to it is given
 * up before the driver's own function frees it, since handles are addresses that come again.
 */
#include <errno.h>

#include "gpu_timing/library/library.h"

/* The result of the driver's own function is what counts, and errno as that left it. */
#define ACTIVE() likely(load_relaxed(&lib.memory->guard.active))

static CUresult module_unload(CUmodule module)
{
	CUresult (*original)(CUmodule) = lib.original[SLOT_MODULE_UNLOAD];

	if (ACTIVE())
		name__forget_all();
	return original(module);
}

static CUresult library_unload(CUlibrary library)
{
	CUresult (*original)(CUlibrary) = lib.original[SLOT_LIBRARY_UNLOAD];

	if (ACTIVE())
		name__forget_all();
	return original(library);
}

static CUresult module_get_function(CUfunction *function, CUmodule module, const char *name)
{
	CUresult (*original)(CUfunction *, CUmodule, const char *) =
		lib.original[SLOT_MODULE_GET_FUNCTION];
	CUresult r = original(function, module, name);

	if (!r && function && ACTIVE())
		name__note((uint64_t)*function, HANDLE_FUNCTION);
	return r;
}

static CUresult kernel_get_function(CUfunction *function, CUkernel kernel)
{
	CUresult (*original)(CUfunction *, CUkernel) = lib.original[SLOT_KERNEL_GET_FUNCTION];
	CUresult r = original(function, kernel);

	if (!r && function && ACTIVE())
		name__note((uint64_t)*function, HANDLE_FUNCTION);
	return r;
}

#define STREAM_DESTROY(name, slot)						\
	static CUresult name(CUstream stream)					\
	{									\
		CUresult (*original)(CUstream) = lib.original[slot];		\
										\
		if (ACTIVE())							\
			stream__retire(stream);					\
		return original(stream);					\
	}

STREAM_DESTROY(stream_destroy, SLOT_STREAM_DESTROY)
STREAM_DESTROY(stream_destroy_v2, SLOT_STREAM_DESTROY_V2)

static struct context *suspend(CUcontext handle)
{
	struct context *c;
	int saved = errno;

	if (!ACTIVE())
		return NULL;
	/* Its modules go with it. */
	name__forget_all();
	c = context__suspend(handle);
	errno = saved;
	return c;
}

static void finish(struct context *c, CUcontext handle, bool gone)
{
	int saved = errno;

	/* A child forked meanwhile has nothing to finish. */
	if (!load_relaxed(&lib.memory->guard.owner))
		return;
	if (gone && handle)
		context__forget(handle);
	else
		context__resume(c);
	errno = saved;
}

#define CTX_DESTROY(name, slot)							\
	static CUresult name(CUcontext ctx)					\
	{									\
		CUresult (*original)(CUcontext) = lib.original[slot];		\
		struct context *c = suspend(ctx);				\
		CUresult r = original(ctx);					\
										\
		finish(c, ctx, !r);						\
		return r;							\
	}

CTX_DESTROY(ctx_destroy, SLOT_CTX_DESTROY)
CTX_DESTROY(ctx_destroy_v2, SLOT_CTX_DESTROY_V2)
/* The old reference count is never above one in practice; if it is, some brackets are lost. */
CTX_DESTROY(ctx_detach, SLOT_CTX_DETACH)

static CUresult green_destroy(CUgreenCtx green)
{
	CUresult (*original)(CUgreenCtx) = lib.original[SLOT_GREEN_DESTROY];
	CUcontext ctx = NULL;
	struct context *c;
	CUresult r;

	/* Streams of a green context are known by the context made from it. */
	if (ACTIVE() && lib.driver.from_green && lib.driver.from_green(&ctx, green))
		ctx = NULL;
	c = suspend(ctx);
	r = original(green);
	finish(c, ctx, !r);
	return r;
}

static CUresult primary_retain(CUcontext *ctx, CUdevice device)
{
	CUresult (*original)(CUcontext *, CUdevice) = lib.original[SLOT_PRIMARY_RETAIN];
	CUresult r = original(ctx, device);

	if (!r && ctx && ACTIVE())
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

static CUresult end_primary(CUresult (*original)(CUdevice), CUdevice device, bool always)
{
	CUcontext ctx = context__primary(device);
	struct context *c = suspend(ctx);
	CUresult r = original(device);

	if (!load_relaxed(&lib.memory->guard.active)) {
		context__resume(c);
		return r;
	}
	if (!r && (always || primary_gone(device))) {
		if (ctx)
			finish(c, ctx, true);
		else
			context__forget_device(device);
	} else {
		finish(c, ctx, false);
	}
	return r;
}

#define PRIMARY_END(name, slot, always)						\
	static CUresult name(CUdevice device)					\
	{									\
		CUresult (*original)(CUdevice) = lib.original[slot];		\
										\
		if (!ACTIVE())							\
			return original(device);				\
		return end_primary(original, device, always);			\
	}

PRIMARY_END(primary_reset, SLOT_PRIMARY_RESET, true)
PRIMARY_END(primary_reset_v2, SLOT_PRIMARY_RESET_V2, true)
PRIMARY_END(primary_release, SLOT_PRIMARY_RELEASE, false)
PRIMARY_END(primary_release_v2, SLOT_PRIMARY_RELEASE_V2, false)

void *hook__upkeep(uint32_t slot)
{
	static void *const hooks[NR_CHANNEL_SLOTS] = {
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
	return slot < NR_LAUNCH_ENTRIES ? hook__launch(slot) : hook__upkeep(slot);
}
