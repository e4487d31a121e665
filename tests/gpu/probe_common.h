/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the hardware probes share: the driver's functions by name, clocks, statistics.
 *
 * The driver is found by dlopen, so that the probes build without it. A function that the
 * driver lacks answers CU_MISSING instead of crashing: a probe then says so and goes on.
 */
#ifndef PROBE_COMMON_H
#define PROBE_COMMON_H

#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CU_MISSING 99999

#define CU_FUNCTIONS(X) \
	X(Init, "cuInit", (unsigned int)) \
	X(DriverGetVersion, "cuDriverGetVersion", (int *)) \
	X(DeviceGet, "cuDeviceGet", (CUdevice *, int)) \
	X(DeviceGetName, "cuDeviceGetName", (char *, int, CUdevice)) \
	X(PrimaryRetain, "cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice)) \
	X(PrimaryReset, "cuDevicePrimaryCtxReset_v2", (CUdevice)) \
	X(CtxCreate, "cuCtxCreate_v2", (CUcontext *, unsigned int, CUdevice)) \
	X(CtxDestroy, "cuCtxDestroy_v2", (CUcontext)) \
	X(CtxSetCurrent, "cuCtxSetCurrent", (CUcontext)) \
	X(CtxGetCurrent, "cuCtxGetCurrent", (CUcontext *)) \
	X(CtxGetId, "cuCtxGetId", (CUcontext, unsigned long long *)) \
	X(CtxSynchronize, "cuCtxSynchronize", (void)) \
	X(ModuleLoad, "cuModuleLoad", (CUmodule *, const char *)) \
	X(ModuleUnload, "cuModuleUnload", (CUmodule)) \
	X(ModuleGetFunction, "cuModuleGetFunction", (CUfunction *, CUmodule, const char *)) \
	X(LibraryLoadFromFile, "cuLibraryLoadFromFile", (CUlibrary *, const char *, \
		CUjit_option *, void **, unsigned int, CUlibraryOption *, void **, \
		unsigned int)) \
	X(LibraryGetKernel, "cuLibraryGetKernel", (CUkernel *, CUlibrary, const char *)) \
	X(FuncGetName, "cuFuncGetName", (const char **, CUfunction)) \
	X(KernelGetName, "cuKernelGetName", (const char **, CUkernel)) \
	X(MemAlloc, "cuMemAlloc_v2", (CUdeviceptr *, size_t)) \
	X(MemcpyDtoH, "cuMemcpyDtoH_v2", (void *, CUdeviceptr, size_t)) \
	X(MemHostAlloc, "cuMemHostAlloc", (void **, size_t, unsigned int)) \
	X(MemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2", (CUdeviceptr *, void *, \
		unsigned int)) \
	X(MemsetD8Async, "cuMemsetD8Async", (CUdeviceptr, unsigned char, size_t, CUstream)) \
	X(LaunchKernel, "cuLaunchKernel", (CUfunction, unsigned int, unsigned int, \
		unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, \
		CUstream, void **, void **)) \
	X(LaunchHostFunc, "cuLaunchHostFunc", (CUstream, CUhostFn, void *)) \
	X(StreamCreate, "cuStreamCreate", (CUstream *, unsigned int)) \
	X(StreamDestroy, "cuStreamDestroy_v2", (CUstream)) \
	X(StreamSynchronize, "cuStreamSynchronize", (CUstream)) \
	X(StreamGetCtx, "cuStreamGetCtx", (CUstream, CUcontext *)) \
	X(StreamIsCapturing, "cuStreamIsCapturing", (CUstream, CUstreamCaptureStatus *)) \
	X(StreamBeginCapture, "cuStreamBeginCapture_v2", (CUstream, CUstreamCaptureMode)) \
	X(StreamEndCapture, "cuStreamEndCapture", (CUstream, CUgraph *)) \
	X(ExchangeMode, "cuThreadExchangeStreamCaptureMode", (CUstreamCaptureMode *)) \
	X(StreamWaitValue32, "cuStreamWaitValue32_v2", (CUstream, CUdeviceptr, cuuint32_t, \
		unsigned int)) \
	X(GraphInstantiate, "cuGraphInstantiateWithFlags", (CUgraphExec *, CUgraph, \
		unsigned long long)) \
	X(GraphLaunch, "cuGraphLaunch", (CUgraphExec, CUstream)) \
	X(GraphDestroy, "cuGraphDestroy", (CUgraph)) \
	X(GraphGetNodes, "cuGraphGetNodes", (CUgraph, CUgraphNode *, size_t *)) \
	X(EventCreate, "cuEventCreate", (CUevent *, unsigned int)) \
	X(EventDestroy, "cuEventDestroy_v2", (CUevent)) \
	X(EventRecord, "cuEventRecord", (CUevent, CUstream)) \
	X(EventRecordPtsz, "cuEventRecord_ptsz", (CUevent, CUstream)) \
	X(EventQuery, "cuEventQuery", (CUevent)) \
	X(EventSynchronize, "cuEventSynchronize", (CUevent)) \
	X(Elapsed1, "cuEventElapsedTime", (float *, CUevent, CUevent)) \
	X(Elapsed, "cuEventElapsedTime_v2", (float *, CUevent, CUevent)) \
	X(LogsRegister, "cuLogsRegisterCallback", (CUlogsCallback, void *, \
		CUlogsCallbackHandle *)) \
	X(LogsCurrent, "cuLogsCurrent", (CUlogIterator *, unsigned int)) \
	X(LogsDump, "cuLogsDumpToMemory", (CUlogIterator *, char *, size_t *, unsigned int))

static int cu_missing(void)
{
	return CU_MISSING;
}

#define CU_FIELD(field, name, args) int (*field) args;
static struct {
	CU_FUNCTIONS(CU_FIELD)
} cu;

static inline void *cu_load(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		exit(77);
	}
#define CU_RESOLVE(field, name, args) do { \
		void *p = dlsym(lib, name); \
		if (!p) \
			fprintf(stderr, "missing in this driver: %s\n", name); \
		*(void **)&cu.field = p ? p : (void *)cu_missing; \
	} while (0);
	CU_FUNCTIONS(CU_RESOLVE)
	return lib;
}

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void sleep_us(unsigned int us)
{
	struct timespec t = { us / 1000000, (long)(us % 1000000) * 1000 };

	nanosleep(&t, NULL);
}

#define MUST(call) do { \
		int must_rc = (call); \
		if (must_rc) { \
			printf("%s:%d: %s -> %d\n", __FILE__, __LINE__, #call, must_rc); \
			fflush(stdout); \
			exit(1); \
		} \
	} while (0)

static inline int probe_by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts v. Prints n, lowest, 10 %, median, 90 % and highest. */
static inline void probe_spread(const char *what, double *v, size_t n)
{
	if (!n)
		return;
	qsort(v, n, sizeof(*v), probe_by_value);
	printf("%-46s n %5zu  min %9.3f  p10 %9.3f  median %9.3f  p90 %9.3f  max %9.3f\n",
	       what, n, v[0], v[n / 10], v[n / 2], v[n * 9 / 10], v[n - 1]);
}

static inline const char *probe_cubin(void)
{
	const char *path = getenv("PROBE_CUBIN");

	return path ? path : "probe_kernels.cubin";
}

#endif
