// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How fast an empty kernel can be launched: product_rate SECONDS [PRINT_MS]. One line for each
 * PRINT_MS: time since the start, ns for a launch. Then the number of all launches, and "launch US
 * CPU_US" for one of them.
 */
#include "tests/gpu/product_app.h"

#include <ctime>

__global__ void k_empty(void)
{
}

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double waited;

static NOINLINE void launch_some(cudaStream_t s)
{
	double begin;

	for (int i = 0; i < 500; i++)
		k_empty<<<1, 32, 0, s>>>();
	begin = seconds(CLOCK_MONOTONIC);
	OK(cudaStreamSynchronize(s));
	waited += seconds(CLOCK_MONOTONIC) - begin;
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	double want = argc > 1 ? atof(argv[1]) : 3, step = argc > 2 ? atof(argv[2]) / 1e3 : 0.1;
	double begin, now, last, cpu;
	unsigned long n = 0, at_last = 0;
	cudaStream_t s;

	OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	launch_some(s);
	waited = 0;
	begin = last = seconds(CLOCK_MONOTONIC);
	cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
	do {
		launch_some(s);
		n += 500;
		now = seconds(CLOCK_MONOTONIC);
		if (now - last < step)
			continue;
		printf("at %.3f s: %.1f ns\n", now - begin, (now - last) * 1e9 / (double)(n - at_last));
		last = now;
		at_last = n;
	} while (now - begin < want);
	printf("launches %lu, of each %.4f us were waiting for the device\nlaunch %.4f %.4f\n", n + 500,
	       waited * 1e6 / (double)n,
	       (now - begin) * 1e6 / (double)n,
	       (seconds(CLOCK_THREAD_CPUTIME_ID) - cpu) * 1e6 / (double)n);
	return 0;
}
