// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "tests/programs/gpu_app.h"

unsigned long app_failures;

int64_t app__now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void app__must(CUresult r, const char *what)
{
	if (!r)
		return;
	fprintf(stderr, "%s: %d\n", what, r);
	exit(9);
}

CUcontext app__start(void)
{
	CUcontext c;
	CUdevice d;

	MUST(cuInit(0));
	MUST(cuDeviceGet(&d, 0));
	MUST(cuDevicePrimaryCtxRetain(&c, d));
	MUST(cuCtxSetCurrent(c));
	return c;
}

CUmodule app__module(const char *text)
{
	CUmodule m;

	MUST(cuModuleLoadData(&m, text));
	return m;
}

CUfunction app__function(CUmodule m, const char *name)
{
	CUfunction f;

	MUST(cuModuleGetFunction(&f, m, name));
	return f;
}

CUstream app__stream(void)
{
	CUstream s;

	MUST(cuStreamCreate(&s, CU_STREAM_NONBLOCKING));
	return s;
}

void account__add(struct account *a, CUresult r, uint64_t ns)
{
	if (r) {
		__atomic_add_fetch(&app_failures, 1, __ATOMIC_RELAXED);
		return;
	}
	a->launches++;
	a->ns += ns;
}

void account__print(const struct account *a, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (a[i].launches)
			printf("chain %s %s %lu %llu\n", a[i].path, a[i].kernel, a[i].launches,
			       (unsigned long long)a[i].ns);
}

void account__print_total(const struct account *a, size_t n)
{
	unsigned long launches = 0;

	for (size_t i = 0; i < n; i++)
		launches += a[i].launches;
	printf("total %lu %lu\n", launches, app_failures);
}
