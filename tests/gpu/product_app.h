/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Kernels that measure themselves, for programs that know their own truth. Each launch has a span
 * of its own: the earliest start and the latest end over its blocks, on the device's global timer
 * (it moves in steps of 32 ns on an H200). What such a span leaves out is what the hardware needs
 * to start and to end a kernel.
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
		atomicMin(&s->begin, begin);
		atomicMax(&s->end, now);
	}
}

#endif
