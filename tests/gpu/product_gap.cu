// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What an event bracket adds to a kernel, and how much of that is the host's own time (the gap)
 * between the record of the first event and the return of the launch. The calls are the driver's,
 * in the order in which a guest in a launch makes them. All times in us: 10 %, median, 90 %.
 *
 * Last line: "constants BUSY IDLE" in ns, against CUPTI's meaning of a duration (own + 0.70 us),
 * IDLE less the gap.
 */
#include "tests/gpu/product_app.h"

#include <algorithm>
#include <cuda.h>
#include <ctime>
#include <dlfcn.h>
#include <unistd.h>
#include <utility>
#include <vector>

#define BLOCKS 132
#define ROUNDS 400
#define CUPTI_LONGER 0.70

__global__ void k_warm(span *s, unsigned long long ns) { spin(s, ns); }
/* Each has code of its own, loaded when it is first launched. */
template <int N> __global__ void k_cold(span *s, unsigned long long ns) { spin(s, ns + N); }

static CUresult (*record)(CUevent, CUstream);
static CUresult (*launch)(CUfunction, unsigned int, unsigned int, unsigned int, unsigned int,
			  unsigned int, unsigned int, unsigned int, CUstream, void **, void **);
static CUevent before, after;
static cudaStream_t stream;
static span *spans, host[BLOCKS];

struct sample {
	double more, gap, rest;	/* bracket less own; host time; their difference */
};

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void wait_us(double us)
{
	for (double end = now_us() + us; now_us() < end;)
		;
}

/* more_behind: the stream holds further work when the kernel ends, as in a program that is ahead. */
static sample once(const void *kernel, unsigned long long ns, int blocks, double delay_us,
		   double busy_us, bool more_behind)
{
	unsigned long long busy_ns = (unsigned long long)(busy_us * 1e3);
	void *args[] = { &spans, &ns };
	cudaKernel_t f;
	double begun, gap;
	float ms;

	/* As the runtime does it: the launch itself is to load the code. */
	OK(cudaGetKernel(&f, kernel));
	OK(cudaStreamSynchronize(stream));
	usleep(30);
	if (busy_us > 0)
		k_warm<<<1, 32, 0, stream>>>(NULL, busy_ns);
	record(before, stream);
	begun = now_us();
	if (delay_us > 0)
		wait_us(delay_us);
	if (launch((CUfunction)f, (unsigned int)blocks, 1, 1, 32, 1, 1, 0, stream, args, NULL))
		exit(9);
	gap = now_us() - begun;
	record(after, stream);
	if (more_behind)
		k_warm<<<1, 32, 0, stream>>>(NULL, 20000);
	OK(cudaStreamSynchronize(stream));
	OK(cudaEventElapsedTime(&ms, before, after));
	OK(cudaMemcpy(host, spans, sizeof(span) * (size_t)blocks, cudaMemcpyDeviceToHost));
	double more = ms * 1e3 - (double)span_ns(host, blocks) / 1e3;
	return { more, gap, more - gap };
}

static double show(const char *what, std::vector<sample> &v)
{
	double q[3][3];

	for (int k = 0; k < 3; k++) {
		std::vector<double> x;

		for (auto &s : v)
			x.push_back(k == 0 ? s.more : k == 1 ? s.gap : s.rest);
		std::sort(x.begin(), x.end());
		for (int i = 0; i < 3; i++)
			q[k][i] = x[(size_t)((double)(x.size() - 1) * (i == 0 ? 0.1 : i == 1 ? 0.5 : 0.9))];
	}
	printf("%-44s bracket - own %7.2f %7.2f %7.2f  gap %7.2f %7.2f %7.2f  less gap %7.2f %7.2f %7.2f\n",
	       what, q[0][0], q[0][1], q[0][2], q[1][0], q[1][1], q[1][2], q[2][0], q[2][1], q[2][2]);
	return q[2][1];
}

static double series(unsigned long long ns, int blocks, double delay, double busy, int rounds,
		     bool more_behind = false)
{
	std::vector<sample> v;
	char what[100];

	for (int i = 0; i < rounds; i++)
		v.push_back(once((const void *)k_warm, ns, blocks, delay, busy, more_behind));
	snprintf(what, sizeof(what), "%s%s %llu us, %d blocks, delay %.0f us",
		 busy > delay + 50 ? "busy" : busy > 0 ? "drained" : "idle",
		 more_behind ? ", more behind" : "", ns / 1000, blocks, delay);
	double rest = show(what, v);
	if (busy > delay + 50) {
		std::sort(v.begin(), v.end(), [](auto &a, auto &b) { return a.more < b.more; });
		return v[v.size() / 2].more;
	}
	return rest;
}

template <int... N> static void cold(std::integer_sequence<int, N...>, std::vector<sample> &v)
{
	(v.push_back(once((const void *)k_cold<N>, 20000, 1, 0, 0, false)), ...);
}

int main(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	std::vector<double> idle, busy;
	std::vector<sample> v;

	*(void **)&record = dlsym(driver, "cuEventRecord");
	*(void **)&launch = dlsym(driver, "cuLaunchKernel");
	OK(cudaMalloc(&spans, sizeof(host)));
	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(cudaEventCreate((cudaEvent_t *)&before));
	OK(cudaEventCreate((cudaEvent_t *)&after));
	once((const void *)k_warm, 1000, 1, 0, 0, false);
	for (int blocks : { 1, BLOCKS })
		for (unsigned long long ns : { 2000, 5000, 20000, 200000 }) {
			idle.push_back(series(ns, blocks, 0, 0, ROUNDS));
			busy.push_back(series(ns, blocks, 0, 100, ROUNDS / 2));
			busy.push_back(series(ns, blocks, 0, 100, ROUNDS / 2, true));
		}
	for (double delay : { 10., 100., 1000. })
		series(20000, 1, delay, 0, 100);
	series(20000, 1, 300, 100, 100);
	cold(std::make_integer_sequence<int, 64>(), v);
	show("idle, first launch of each of 64 kernels", v);
	std::sort(idle.begin(), idle.end());
	std::sort(busy.begin(), busy.end());
	printf("constants %.0f %.0f\n", (busy[busy.size() / 2] - CUPTI_LONGER) * 1e3,
	       (idle[idle.size() / 2] - CUPTI_LONGER) * 1e3);
	return 0;
}
