/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Kernels that measure themselves, for programs that know their own truth. Each block of a launch
 * stores its start and end on the device's global timer (it moves in steps of 32 ns on an H200);
 * the launch took from the earliest start to the latest end. What that leaves out is what the
 * hardware needs to start and to end a kernel: CUPTI's records are 0.7 us longer.
 */
#ifndef TESTS_GPU_PRODUCT_APP_H
#define TESTS_GPU_PRODUCT_APP_H

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define OK(x) do { \
		cudaError_t e_ = (x); \
		if (e_ != cudaSuccess) { \
			printf("line %d: %s\n", __LINE__, cudaGetErrorString(e_)); \
			exit(9); \
		} \
	} while (0)

/* Each function of a chain stays one of its own, with a frame of its own. */
#define NOINLINE __attribute__((noinline, noclone))
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

struct span {
	unsigned long long begin, end;
};

__device__ static inline unsigned long long global_ns(void)
{
	unsigned long long t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

/* s: of this launch, one for each block; NULL: not wanted. */
__device__ static inline void spin(span *s, unsigned long long ns)
{
	unsigned long long begin, now;

	if (threadIdx.x)
		return;
	begin = global_ns();
	do
		now = global_ns();
	while (now - begin < ns);
	if (s) {
		s[blockIdx.x].begin = begin;
		s[blockIdx.x].end = now;
	}
}

static inline unsigned long long span_ns(const span *s, int blocks)
{
	unsigned long long begin = ~0ull, end = 0;

	for (int b = 0; b < blocks; b++) {
		begin = s[b].begin < begin ? s[b].begin : begin;
		end = s[b].end > end ? s[b].end : end;
	}
	return end - begin;
}

#endif
