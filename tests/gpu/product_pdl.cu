// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Kernels chained by programmatic dependent launch that time themselves, each launch with a place of its own
 * for its span. Each lets the next one begin at its own start, and none waits for the one before: what can
 * overlap does. One line for each way to launch them:
 *
 *	product_pdl [CHAINS] [LENGTH]	default 400 chains of 8 launches, of 10, 20 and 40 us by turns
 *
 *	way NAME LAUNCHES CHAINS NS OVERLAPPED OF SUM_NS WALL_US
 *		NS: of all chains, from the first one's begin to the last one's end; OVERLAPPED: dependent
 *		launches that began before the one before them had ended; SUM_NS: of all launches, by itself
 *
 * pair: two launches of 50 us, the second a dependent one, that overlap wholly, pair behind pair, the host
 * far ahead. ahead: chains in the same way. only: dependent launches alone, one chain of all. synced: the
 * host waits behind each chain. apart: 100 us of the host's own between any two launches.
 */
#include "tests/gpu/product_app.h"

#include <cstring>
#include <ctime>
#include <unistd.h>
#include <vector>

#define BLOCKS 4

__device__ static void chained(span *s, unsigned long long ns)
{
	asm volatile("griddepcontrol.launch_dependents;");
	spin(s, ns);
}

__global__ void k_head(span *s, unsigned long long ns) { spin(s, ns); }
__global__ void k_one(span *s, unsigned long long ns) { chained(s, ns); }
__global__ void k_two(span *s, unsigned long long ns) { chained(s, ns); }
__global__ void k_three(span *s, unsigned long long ns) { chained(s, ns); }
/* A head that lets the next one begin early, too. */
__global__ void k_first(span *s, unsigned long long ns) { chained(s, ns); }
/* In front of it all: no chain's. */
__global__ void k_long(unsigned long long ns) { spin(NULL, ns); }

typedef void (*kernel)(span *, unsigned long long);
static const kernel dependents[] = { k_one, k_two, k_three };
static const unsigned long long lengths[] = { 10000, 20000, 40000 };

static cudaStream_t stream;
static span *device, *host;
static int launched, most;
static bool dependent_at[1 << 20];

NOINLINE static void launch(kernel k, unsigned long long ns, bool dependent)
{
	cudaLaunchAttribute a = {};
	cudaLaunchConfig_t c = {};

	a.id = cudaLaunchAttributeProgrammaticStreamSerialization;
	a.val.programmaticStreamSerializationAllowed = 1;
	c.gridDim = BLOCKS;
	c.blockDim = 32;
	c.stream = stream;
	c.attrs = &a;
	c.numAttrs = dependent;
	if (launched == most)
		exit(8);
	dependent_at[launched] = dependent;
	OK(cudaLaunchKernelEx(&c, k, device + (size_t)launched++ * BLOCKS, ns));
	KEEP_FRAME();
}

static void next(int i)
{
	launch(dependents[i % 3], lengths[i % 3], true);
}

NOINLINE static void way_ahead(int chains, int length)
{
	for (int c = 0; c < chains; c++) {
		if (c % 40 == 0) {
			OK(cudaStreamSynchronize(stream));
			k_long<<<1, 32, 0, stream>>>(3000000);
		}
		launch(k_first, 20000, false);
		for (int i = 1; i < length; i++)
			next(i);
	}
	KEEP_FRAME();
}

NOINLINE static void way_pair(int pairs, int)
{
	for (int c = 0; c < pairs; c++) {
		if (c % 100 == 0) {
			OK(cudaStreamSynchronize(stream));
			k_long<<<1, 32, 0, stream>>>(3000000);
		}
		launch(k_first, 50000, false);
		launch(k_one, 50000, true);
	}
	KEEP_FRAME();
}

NOINLINE static void way_only(int chains, int length)
{
	for (int i = 0; i < chains * length; i++)
		next(i);
	KEEP_FRAME();
}

NOINLINE static void way_synced(int chains, int length)
{
	for (int c = 0; c < chains; c++) {
		launch(k_first, 20000, false);
		for (int i = 1; i < length; i++)
			next(i);
		OK(cudaStreamSynchronize(stream));
	}
	KEEP_FRAME();
}

NOINLINE static void way_apart(int chains, int length)
{
	for (int c = 0; c < chains; c++)
		for (int i = 0; i < length; i++) {
			if (i)
				next(i);
			else
				launch(k_head, 20000, false);
			usleep(100);
		}
	KEEP_FRAME();
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Where one began after the one before it had ended there is idle time between them, which is nobody's. */
static void way(const char *name, void (*run)(int, int), int chains, int length)
{
	unsigned long long ns = 0, sum = 0, busy_until = 0;
	int first = launched, overlapped = 0, of = 0;
	double begun = now_us();

	run(chains, length);
	OK(cudaStreamSynchronize(stream));
	begun = now_us() - begun;
	OK(cudaMemcpy(host, device, sizeof(span) * (size_t)launched * BLOCKS, cudaMemcpyDeviceToHost));
	for (int i = first; i < launched; i++) {
		const span *s = host + (size_t)i * BLOCKS;
		unsigned long long begin = ~0ull, end = 0;

		for (int b = 0; b < BLOCKS; b++) {
			begin = s[b].begin < begin ? s[b].begin : begin;
			end = s[b].end > end ? s[b].end : end;
		}
		sum += end - begin;
		if (dependent_at[i] && i > first) {
			of++;
			overlapped += begin < busy_until;
		}
		if (end > busy_until)
			ns += end - (begin > busy_until ? begin : busy_until);
		busy_until = end > busy_until ? end : busy_until;
	}
	printf("way %s %d %d %llu %d %d %llu %.0f\n", name, launched - first, chains, ns, overlapped, of, sum,
	       begun);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int chains = argc > 1 ? atoi(argv[1]) : 400, length = argc > 2 ? atoi(argv[2]) : 8;

	most = 4 * chains * length + 2 * 5 * chains;
	if (most > (int)sizeof(dependent_at))
		return 8;
	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(cudaMalloc(&device, sizeof(span) * (size_t)most * BLOCKS));
	host = (span *)malloc(sizeof(span) * (size_t)most * BLOCKS);
	way("pair", way_pair, 5 * chains, 2);
	way("ahead", way_ahead, chains, length);
	way("only", way_only, chains, length);
	way("synced", way_synced, chains, length);
	way("apart", way_apart, chains / 4, length);
	return 0;
}
