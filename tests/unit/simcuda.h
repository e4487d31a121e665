/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For the tests of the virtual device: cu(NAME) is the entry NAME of the library that
 * device__load() opened. Each case runs in a process of its own, so each may set other variables
 * before it starts the device.
 */
#ifndef TESTS_UNIT_SIMCUDA_H
#define TESTS_UNIT_SIMCUDA_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "tests/simcuda/cu.h"
#include "tests/unit/unit.h"

#ifdef __SANITIZE_ADDRESS__
/* What the device holds is reached from its own pages only, where no leak checker looks. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

static void *device;

#define cu(name) ((__typeof__(&(name)))device__entry(#name))
#define ok(call) ck_assert_int_eq(call, CU_OK)

static inline void *device__entry(const char *name)
{
	void *p = dlsym(device, name);

	ck_assert_msg(p != NULL, "%s is not there", name);
	return p;
}

static inline void device__load(const char *kind)
{
	const char *b = getenv("B");
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s/libcuda.so.1", b ? b : "build", kind);
	device = dlopen(path, RTLD_NOW);
	ck_assert_msg(device != NULL, "%s", dlerror());
}

struct app {
	CUcontext context;
	CUmodule module;
	CUfunction spin;
	CUstream stream;		/* not blocking */
};

/* The device is initialised, a context current, a kernel that takes its length loaded. */
static inline void app__begin(struct app *a)
{
	if (!device)
		device__load("simcuda");
	ok(cu(cuInit)(0));
	ok(cu(cuDevicePrimaryCtxRetain)(&a->context, 0));
	ok(cu(cuCtxSetCurrent)(a->context));
	ok(cu(cuModuleLoadData)(&a->module, "STANDIN\nspin_a\nspin_b\nplain\n"));
	ok(cu(cuModuleGetFunction)(&a->spin, a->module, "spin_a"));
	ok(cu(cuStreamCreate)(&a->stream, CU_STREAM_NONBLOCKING));
}

static inline CUresult app__spin(CUfunction f, CUstream s, uint64_t ns)
{
	void *params[] = { &ns };

	return cu(cuLaunchKernel)(f, 1, 1, 1, 32, 1, 1, 0, s, params, NULL);
}

static inline int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#endif
