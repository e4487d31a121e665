/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The libcuda of the program: where it lies, and the calls of it that we make. They are taken by
 * dlsym from that very library and called through their exported entries, where the driver checks
 * that it isn't shut down.
 */
#ifndef LIBRARY_DRIVER_H
#define LIBRARY_DRIVER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu_timing/channel.h"
#include "gpu_timing/cuda_types.h"

#define DRIVER_SEGMENTS 8

struct driver_segment {
	uint64_t start, end;	/* in memory, what follows the file's part included */
	uint32_t flags;		/* PF_R, PF_W, PF_X */
};

struct driver {
	void *handle;
	uint64_t base;
	uint32_t nr_segments;
	struct driver_segment segments[DRIVER_SEGMENTS];
	bool cheap_elapsed;	/* elapsed is cuEventElapsedTime_v2 */

	CUresult (*version)(int *version);
	CUresult (*device_name)(char *name, int len, CUdevice device);
	CUresult (*ctx_get_current)(CUcontext *ctx);
	CUresult (*ctx_get_device)(CUdevice *device);
	CUresult (*primary_state)(CUdevice device, unsigned int *flags, int *active);
	CUresult (*ctx_get_id)(CUcontext ctx, unsigned long long *id);	/* may be NULL */
	CUresult (*from_green)(CUcontext *ctx, CUgreenCtx green);	/* may be NULL */
	CUresult (*stream_get_ctx)(CUstream stream, CUcontext *ctx);
	CUresult (*stream_get_flags)(CUstream stream, unsigned int *flags);	/* may be NULL */
	CUresult (*stream_is_capturing)(CUstream stream, CUstreamCaptureStatus *status);
	CUresult (*exchange_mode)(CUstreamCaptureMode *mode);
	CUresult (*event_create)(CUevent *event, unsigned int flags);
	CUresult (*event_record)(CUevent event, CUstream stream);
	CUresult (*elapsed)(float *ms, CUevent begin, CUevent end);
	/* Answers for any address; may be NULL. */
	CUresult (*pointer_attributes)(unsigned int nr, CUpointer_attribute *attributes, void **values,
				       CUdeviceptr at);
	CUresult (*array_descriptor)(CUDA_ARRAY3D_DESCRIPTOR *d, CUarray array);	/* may be NULL */
	CUresult (*func_name)(const char **name, CUfunction function);	/* may be NULL */
	CUresult (*kernel_name)(const char **name, CUkernel kernel);	/* may be NULL */
	/* Of a kernel's sizes; may be NULL. */
	CUresult (*func_attribute)(int *value, CUfunction_attribute which, CUfunction function);
	CUresult (*kernel_attribute)(int *value, CUfunction_attribute which, CUkernel kernel,
				     CUdevice device);
	/* Nodes of graphs, any of which may be NULL; `params`: struct kernel_node. */
	CUresult (*graph_nodes)(CUgraph graph, CUgraphNode *nodes, size_t *nr);
	CUresult (*node_type)(CUgraphNode node, int *type);
	CUresult (*kernel_node)(CUgraphNode node, void *params);
	CUresult (*child_graph)(CUgraphNode node, CUgraph *graph);
	/* What a stream captures into; the second has edges. Either may be NULL. */
	CUresult (*capture_info)(CUstream stream, CUstreamCaptureStatus *status, uint64_t *id, CUgraph *graph,
				 const CUgraphNode **nodes, size_t *nr);
	CUresult (*capture_info_v3)(CUstream stream, CUstreamCaptureStatus *status, uint64_t *id,
				    CUgraph *graph, const CUgraphNode **nodes, const void **edges,
				    size_t *nr);
};

/*
 * Finds the driver that `caller`, a code address in it, belongs to; NULL: the one that is mapped as
 * libcuda. REASON_NONE or why not. Calls nothing in the driver. Once found it stays.
 */
enum channel_reason driver__find(struct driver *d, const void *caller);
/* An exported entry: its address and size, or NULL. */
const void *driver__entry(const struct driver *d, const char *name, uint64_t *size);
/* Is [address, address + len) inside one segment that has all these flags? */
bool driver__holds(const struct driver *d, uint64_t address, uint64_t len, uint32_t flags);

#endif
