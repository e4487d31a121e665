// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What stands in the slots of the launch entries: functions with the entries' own signatures. */
#include "gpu_timing/library/launch.h"

#define MAX_ATTRIBUTES 64
#define MAX_MULTI 64

static void describe(struct channel_launch *l, const void *function, CUstream stream,
		     unsigned int flags)
{
	memset(l->grid, 0, sizeof(l->grid));
	memset(l->block, 0, sizeof(l->block));
	l->function = (uint64_t)function;
	l->stream = (uint64_t)stream;
	l->shared_bytes = 0;
	l->flags = (uint16_t)flags;
}

#define KERNEL_ARGS								\
	CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, \
	unsigned int block_x, unsigned int block_y, unsigned int block_z,	\
	unsigned int shared, CUstream stream, void **params
#define SHAPE grid_x, grid_y, grid_z, block_x, block_y, block_z
#define KERNEL_PASS function, SHAPE, shared, stream, params
#define KERNEL_TYPES								\
	CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, \
	unsigned int, unsigned int, CUstream, void **

static inline void set_shape(struct channel_launch *l, unsigned int grid_x, unsigned int grid_y,
			     unsigned int grid_z, unsigned int block_x, unsigned int block_y,
			     unsigned int block_z, unsigned int shared)
{
	l->grid[0] = grid_x;
	l->grid[1] = grid_y;
	l->grid[2] = grid_z;
	l->block[0] = block_x;
	l->block[1] = block_y;
	l->block[2] = block_z;
	l->shared_bytes = shared;
}

#define KERNEL_HOOK(name, entry, bits)						\
	static CUresult name(KERNEL_ARGS, void **extra)				\
	{									\
		CUresult (*original)(KERNEL_TYPES, void **) = lib.original[entry];	\
		struct call call;						\
		CUresult r;							\
										\
		if (!launch__enter(&call, entry, stream, (bits) & LAUNCH_PTSZ))	\
			return original(KERNEL_PASS, extra);			\
		describe(&call.t->launch, function, stream, bits);		\
		set_shape(&call.t->launch, SHAPE, shared);			\
		launch__begin(&call, stream);					\
		r = original(KERNEL_PASS, extra);				\
		launch__end(&call, r);						\
		return r;							\
	}

KERNEL_HOOK(launch_kernel, ENTRY_LAUNCH_KERNEL, 0)
KERNEL_HOOK(launch_kernel_ptsz, ENTRY_LAUNCH_KERNEL_PTSZ, LAUNCH_PTSZ)

#define COOPERATIVE_HOOK(name, entry, bits)					\
	static CUresult name(KERNEL_ARGS)					\
	{									\
		CUresult (*original)(KERNEL_TYPES) = lib.original[entry];	\
		struct call call;						\
		CUresult r;							\
										\
		if (!launch__enter(&call, entry, stream, (bits) & LAUNCH_PTSZ))	\
			return original(KERNEL_PASS);				\
		describe(&call.t->launch, function, stream, bits);		\
		set_shape(&call.t->launch, SHAPE, shared);			\
		launch__begin(&call, stream);					\
		r = original(KERNEL_PASS);					\
		launch__end(&call, r);						\
		return r;							\
	}

COOPERATIVE_HOOK(cooperative, ENTRY_COOPERATIVE, LAUNCH_COOPERATIVE)
COOPERATIVE_HOOK(cooperative_ptsz, ENTRY_COOPERATIVE_PTSZ, LAUNCH_COOPERATIVE | LAUNCH_PTSZ)

static unsigned int attribute_flags(const CUlaunchConfig *config)
{
	unsigned int flags = 0;

	if (!config->attrs)
		return 0;
	for (unsigned int i = 0; i < config->numAttrs && i < MAX_ATTRIBUTES; i++) {
		const CUlaunchAttribute *a = &config->attrs[i];

		switch (a->id) {
		case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
			if (a->value.cooperative)
				flags |= LAUNCH_COOPERATIVE;
			break;
		case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
			if (a->value.programmaticStreamSerializationAllowed)
				flags |= LAUNCH_PDL;
			break;
		case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
			flags |= LAUNCH_PDL;
			break;
		default:
			break;
		}
	}
	return flags;
}

static CUresult launch_ex(enum launch_entry entry, unsigned int flags,
			  const CUlaunchConfig *config, CUfunction function, void **params,
			  void **extra)
{
	CUresult (*original)(const CUlaunchConfig *, CUfunction, void **, void **) =
		lib.original[entry];
	struct call call;
	CUresult r;

	/* Without a configuration it is the driver's to refuse. */
	if (!config || !launch__enter(&call, entry, config->hStream, flags & LAUNCH_PTSZ))
		return original(config, function, params, extra);
	describe(&call.t->launch, function, config->hStream, flags | attribute_flags(config));
	set_shape(&call.t->launch, config->gridDimX, config->gridDimY, config->gridDimZ,
		  config->blockDimX, config->blockDimY, config->blockDimZ,
		  config->sharedMemBytes);
	launch__begin(&call, config->hStream);
	r = original(config, function, params, extra);
	launch__end(&call, r);
	return r;
}

static CUresult launch_kernel_ex(const CUlaunchConfig *config, CUfunction function,
				 void **params, void **extra)
{
	return launch_ex(ENTRY_LAUNCH_KERNEL_EX, 0, config, function, params, extra);
}

static CUresult launch_kernel_ex_ptsz(const CUlaunchConfig *config, CUfunction function,
				      void **params, void **extra)
{
	return launch_ex(ENTRY_LAUNCH_KERNEL_EX_PTSZ, LAUNCH_PTSZ, config, function, params,
			 extra);
}

/* A list of launches in several contexts: each is shown, none is bracketed. */
static CUresult cooperative_multi(CUDA_LAUNCH_PARAMS *list, unsigned int nr, unsigned int flags)
{
	CUresult (*original)(CUDA_LAUNCH_PARAMS *, unsigned int, unsigned int) =
		lib.original[ENTRY_COOPERATIVE_MULTI];
	struct call call;
	CUresult r;

	if (!launch__enter(&call, ENTRY_COOPERATIVE_MULTI, NULL, false))
		return original(list, nr, flags);
	launch__wait(&call);
	r = original(list, nr, flags);
	/* The list is known to be good only once the driver has taken it. */
	if (r) {
		describe(&call.t->launch, NULL, NULL, LAUNCH_COOPERATIVE | LAUNCH_FAILED);
		launch__only_seen(&call, r, false);
	}
	for (unsigned int i = 0; !r && i < nr && i < MAX_MULTI; i++) {
		const CUDA_LAUNCH_PARAMS *p = &list[i];

		crowd__tell(call.t, crowd__place(call.t, p->hStream, false));
		run__disturb(p->hStream);
		describe(&call.t->launch, p->function, p->hStream, LAUNCH_COOPERATIVE);
		set_shape(&call.t->launch, p->gridDimX, p->gridDimY, p->gridDimZ, p->blockDimX,
			  p->blockDimY, p->blockDimZ, p->sharedMemBytes);
		launch__only_seen(&call, r, i > 0);
	}
	launch__leave(&call);
	return r;
}

static CUresult launch_old(CUfunction function)
{
	CUresult (*original)(CUfunction) = lib.original[ENTRY_LAUNCH];
	struct call call;
	CUresult r;

	if (!launch__enter(&call, ENTRY_LAUNCH, NULL, false))
		return original(function);
	describe(&call.t->launch, function, NULL, LAUNCH_NO_BLOCK);
	set_shape(&call.t->launch, 1, 1, 1, 0, 0, 0, 0);
	launch__begin(&call, NULL);
	r = original(function);
	launch__end(&call, r);
	return r;
}

/* The older interface takes sizes as int; what is negative the driver refuses. */
static CUresult launch_grid(CUfunction function, int width, int height)
{
	CUresult (*original)(CUfunction, int, int) = lib.original[ENTRY_LAUNCH_GRID];
	struct call call;
	CUresult r;

	if (!launch__enter(&call, ENTRY_LAUNCH_GRID, NULL, false))
		return original(function, width, height);
	describe(&call.t->launch, function, NULL, LAUNCH_NO_BLOCK);
	set_shape(&call.t->launch, (unsigned int)width, (unsigned int)height, 1, 0, 0, 0, 0);
	launch__begin(&call, NULL);
	r = original(function, width, height);
	launch__end(&call, r);
	return r;
}

static CUresult launch_grid_async(CUfunction function, int width, int height, CUstream stream)
{
	CUresult (*original)(CUfunction, int, int, CUstream) =
		lib.original[ENTRY_LAUNCH_GRID_ASYNC];
	struct call call;
	CUresult r;

	if (!launch__enter(&call, ENTRY_LAUNCH_GRID_ASYNC, stream, false))
		return original(function, width, height, stream);
	describe(&call.t->launch, function, stream, LAUNCH_NO_BLOCK);
	set_shape(&call.t->launch, (unsigned int)width, (unsigned int)height, 1, 0, 0, 0, 0);
	launch__begin(&call, stream);
	r = original(function, width, height, stream);
	launch__end(&call, r);
	return r;
}

#define GRAPH_HOOK(name, entry, bits)						\
	static CUresult name(CUgraphExec exec, CUstream stream)			\
	{									\
		CUresult (*original)(CUgraphExec, CUstream) = lib.original[entry];	\
		struct call call;						\
		CUresult r;							\
										\
		if (!launch__enter(&call, entry, stream, (bits) & LAUNCH_PTSZ))	\
			return original(exec, stream);				\
		describe(&call.t->launch, exec, stream, bits);			\
		launch__begin(&call, stream);					\
		r = original(exec, stream);					\
		launch__end(&call, r);						\
		return r;							\
	}

GRAPH_HOOK(graph_launch, ENTRY_GRAPH_LAUNCH, LAUNCH_GRAPH)
GRAPH_HOOK(graph_launch_ptsz, ENTRY_GRAPH_LAUNCH_PTSZ, LAUNCH_GRAPH | LAUNCH_PTSZ)

void *hook__launch(uint32_t slot)
{
	static void *const hooks[NR_LAUNCH_ENTRIES] = {
		[ENTRY_LAUNCH_KERNEL] = launch_kernel,
		[ENTRY_LAUNCH_KERNEL_PTSZ] = launch_kernel_ptsz,
		[ENTRY_LAUNCH_KERNEL_EX] = launch_kernel_ex,
		[ENTRY_LAUNCH_KERNEL_EX_PTSZ] = launch_kernel_ex_ptsz,
		[ENTRY_COOPERATIVE] = cooperative,
		[ENTRY_COOPERATIVE_PTSZ] = cooperative_ptsz,
		[ENTRY_COOPERATIVE_MULTI] = cooperative_multi,
		[ENTRY_LAUNCH] = launch_old,
		[ENTRY_LAUNCH_GRID] = launch_grid,
		[ENTRY_LAUNCH_GRID_ASYNC] = launch_grid_async,
		[ENTRY_GRAPH_LAUNCH] = graph_launch,
		[ENTRY_GRAPH_LAUNCH_PTSZ] = graph_launch_ptsz,
	};

	return hooks[slot];
}
