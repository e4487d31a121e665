/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The driver's calls that measuring takes, from libcuda.so.1 at run time: nothing is linked to it. */
#ifndef CALIBRATE_DRIVER_H
#define CALIBRATE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu_timing/cuda_types.h"

#define CALIBRATE_DRIVER_WHY 256

/* X(member, exported name, parameters): all that must be there. */
#define CALIBRATE_DRIVER_CALLS(X)								\
	X(init, "cuInit", (unsigned int flags))							\
	X(get_version, "cuDriverGetVersion", (int *version))					\
	X(error_string, "cuGetErrorString", (CUresult error, const char **text))		\
	X(device_count, "cuDeviceGetCount", (int *count))					\
	X(device_get, "cuDeviceGet", (CUdevice *device, int ordinal))				\
	X(device_name, "cuDeviceGetName", (char *name, int len, CUdevice device))		\
	X(retain, "cuDevicePrimaryCtxRetain", (CUcontext *ctx, CUdevice device))		\
	X(release, "cuDevicePrimaryCtxRelease_v2", (CUdevice device))				\
	X(set_current, "cuCtxSetCurrent", (CUcontext ctx))					\
	X(load_module, "cuModuleLoadData", (CUmodule *module, const void *image))		\
	X(get_function, "cuModuleGetFunction", (CUfunction *f, CUmodule module, const char *name)) \
	X(stream_create, "cuStreamCreate", (CUstream *stream, unsigned int flags))		\
	X(stream_sync, "cuStreamSynchronize", (CUstream stream))				\
	X(is_capturing, "cuStreamIsCapturing", (CUstream stream, CUstreamCaptureStatus *status)) \
	X(event_create, "cuEventCreate", (CUevent *event, unsigned int flags))			\
	X(event_record, "cuEventRecord", (CUevent event, CUstream stream))			\
	X(elapsed_1, "cuEventElapsedTime", (float *ms, CUevent begin, CUevent end))		\
	X(launch, "cuLaunchKernel", (CUfunction f, unsigned int grid_x, unsigned int grid_y,	\
	  unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z, \
	  unsigned int shared, CUstream stream, void **params, void **extra))			\
	X(mem_alloc, "cuMemAlloc_v2", (CUdeviceptr *at, size_t bytes))				\
	X(host_alloc, "cuMemHostAlloc", (void **at, size_t bytes, unsigned int flags))		\
	X(dtoh_sync, "cuMemcpyDtoH_v2", (void *to, CUdeviceptr from, size_t bytes))		\
	X(htod, "cuMemcpyHtoDAsync_v2", (CUdeviceptr to, const void *from, size_t n, CUstream stream)) \
	X(dtoh, "cuMemcpyDtoHAsync_v2", (void *to, CUdeviceptr from, size_t n, CUstream stream)) \
	X(dtod, "cuMemcpyDtoDAsync_v2", (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream)) \
	X(set, "cuMemsetD8Async", (CUdeviceptr to, unsigned char value, size_t n, CUstream stream))

struct calibrate_driver {
#define X(member, name, parameters) CUresult (*member) parameters;
	CALIBRATE_DRIVER_CALLS(X)
#undef X
	CUresult (*elapsed)(float *ms, CUevent begin, CUevent end);	/* the newer one, if there is one */
	int version;		/* 13000 */
};

/* Loads and starts the driver. 0, or -ENOENT: there is none that works here; `why` of the size above. */
int calibrate_driver__load(struct calibrate_driver *d, char *why);
/* What an error of the driver means, in its own words. */
const char *calibrate_driver__error(const struct calibrate_driver *d, CUresult error);

#endif
