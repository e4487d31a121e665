// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Kernels that take different amounts of the device, each launched for the first time while another
 * thread captures in the global mode, which whoever asks the driver for the wrong thing ends. On stdout,
 * the same with and without gpucollect:
 *
 *	size NAME REGISTERS SHARED LAUNCHES	as the runtime has it; NAME as the driver has it
 *	captures: all whole
 *
 * and on stderr how many captures there were, and by how many MiB the device's memory went down.
 */
#include "tests/gpu/product_app.h"

#include <atomic>
#include <pthread.h>
#include <unistd.h>

#define LAUNCHES 5

/* The more values live at a time, the more registers. */
template <int VALUES, int BYTES> __global__ void k_sized(float *to)
{
	constexpr int ROOM = BYTES ? BYTES : 1;
	__shared__ char kept[ROOM];
	float v[VALUES];

#pragma unroll
	for (int i = 0; i < VALUES; i++)
		v[i] = to[i * 32 + threadIdx.x];
	if (BYTES) {
		kept[threadIdx.x % ROOM] = (char)v[0];
		__syncthreads();
	}
#pragma unroll
	for (int round = 0; round < 4; round++)
#pragma unroll
		for (int i = 0; i < VALUES; i++)
			v[i] = v[i] * v[(i + 1) % VALUES] + (float)round;
#pragma unroll
	for (int i = 0; i < VALUES; i++)
		to[i * 32 + threadIdx.x] = v[i] + (BYTES ? (float)kept[(threadIdx.x + 1) % ROOM] : 0);
}

__global__ void k_captured(float *to)
{
	to[threadIdx.x] += 1;
}

static float *memory;
static std::atomic<bool> over;
static std::atomic<int> captures, broken;

static void *capture(void *arg)
{
	cudaStream_t s = (cudaStream_t)arg;
	cudaGraph_t graph;

	while (!over) {
		bool whole = true;

		OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
		k_captured<<<1, 32, 0, s>>>(memory);
		whole &= cudaGetLastError() == cudaSuccess;
		usleep(2000);
		whole &= cudaStreamEndCapture(s, &graph) == cudaSuccess && graph;
		if (whole)
			OK(cudaGraphDestroy(graph));
		broken += !whole;
		captures++;
	}
	return NULL;
}

template <int VALUES, int BYTES> static void one(cudaStream_t s, bool launch)
{
	cudaFuncAttributes a;
	const char *name;

	/* Loads it, which is not allowed during a capture. */
	OK(cudaFuncGetAttributes(&a, (const void *)k_sized<VALUES, BYTES>));
	if (!launch)
		return;
	for (int i = 0; i < LAUNCHES; i++) {
		k_sized<VALUES, BYTES><<<1, 32, 0, s>>>(memory);
		OK(cudaGetLastError());
	}
	usleep(3000);
	OK(cudaFuncGetName(&name, (const void *)k_sized<VALUES, BYTES>));
	printf("size %s %d %zu %d\n", name, a.numRegs, a.sharedSizeBytes, LAUNCHES);
}

template <int BYTES> static void some(cudaStream_t s, bool launch)
{
	one<1, BYTES>(s, launch);
	one<16, BYTES>(s, launch);
	one<48, BYTES>(s, launch);
	one<100, BYTES>(s, launch);
	one<200, BYTES>(s, launch);
}

static void all(cudaStream_t s, bool launch)
{
	some<0>(s, launch);
	some<1>(s, launch);
	some<4096>(s, launch);
	some<49152>(s, launch);
}

int main(void)
{
	cudaFuncAttributes a;
	cudaStream_t s, own;
	pthread_t thread;
	size_t before, after, total;

	OK(cudaMalloc(&memory, 256 * 32 * sizeof(*memory)));
	OK(cudaMemset(memory, 0, 256 * 32 * sizeof(*memory)));
	OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
	OK(cudaFuncGetAttributes(&a, (const void *)k_captured));
	all(s, false);
	OK(cudaDeviceSynchronize());
	OK(cudaMemGetInfo(&before, &total));
	pthread_create(&thread, NULL, capture, own);
	usleep(5000);
	all(s, true);
	over = true;
	pthread_join(thread, NULL);
	OK(cudaDeviceSynchronize());
	OK(cudaMemGetInfo(&after, &total));
	printf("captures: %s\n", broken ? "not all whole" : "all whole");
	fprintf(stderr, "captures %d, broken %d; memory went down by %.1f MiB\n", (int)captures, (int)broken,
		((double)before - (double)after) / (1 << 20));
	return broken != 0;
}
