// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * For LD_PRELOAD in tests: other things that a process may hold before the timing library comes.
 * TIMING_TOOL=foreign: a tool that has put a function of its own into the slot of cuLaunchKernel;
 * TIMING_TOOL=two: a second copy of the driver, TIMING_COPY, is loaded; TIMING_TOOL=full: no free
 * descriptor while the driver starts.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

typedef int (*launch_fn)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
			 unsigned, void *, void **, void **);

static launch_fn original;
static long seen;

static int counted(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
		   unsigned bz, unsigned shared, void *stream, void **params, void **extra)
{
	__atomic_add_fetch(&seen, 1, __ATOMIC_RELAXED);
	return original(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}

static void take_slot(void)
{
	const unsigned char *code = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuLaunchKernel");
	int at = 0, rel;
	launch_fn *slot;

	while (code[at] != 0xff || code[at + 1] != 0x15)
		at++;
	memcpy(&rel, code + at + 2, sizeof(rel));
	slot = (launch_fn *)(code + at + 6 + rel);
	original = *slot;
	*slot = counted;
}

static __attribute__((constructor)) void start(void)
{
	const char *what = getenv("TIMING_TOOL");

	if (!what)
		return;
	if (!strcmp(what, "foreign"))
		take_slot();
	if (!strcmp(what, "two") && !dlopen(getenv("TIMING_COPY"), RTLD_NOW | RTLD_LOCAL))
		abort();
	if (!strcmp(what, "full")) {
		struct rlimit limit = { 3, 3 };

		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static __attribute__((destructor)) void end(void)
{
	if (original)
		fprintf(stderr, "tool saw %ld\n", seen);
}
