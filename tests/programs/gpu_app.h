/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the launch programs share. Each knows its own truth and prints it at the end, one line each:
 *
 *	chain PATH KERNEL LAUNCHES NS	what was launched from there: PATH is the functions from the
 *					program's first one down to the one that calls the driver,
 *					joined by ';', with '*' for frames of other files; NS the
 *					sum of the kernels' lengths
 *	graph PATH REPLAYS NODES NS	a graph launched from there; NS of all replays together
 *	total LAUNCHES FAILURES		all that the driver accepted (not the replays), and errors
 *
 * Kernels spin for the number of nanoseconds that they are given, on a real device as well.
 */
#ifndef TESTS_PROGRAMS_GPU_APP_H
#define TESTS_PROGRAMS_GPU_APP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "tests/simcuda/cu.h"

/* Each function of a chain stays one of its own, even if it has the code of another. */
#define NOINLINE __attribute__((noinline, noclone, no_icf))
/* Code behind a function's last call, so that the call does not become a jump. */
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

#define SPIN(name)                                                                                \
	".visible .entry spin_" name "(.param .u64 duration)\n"                                   \
	"{\n"                                                                                     \
	"	.reg .u64 %begun, %now, %past, %want;\n"                                          \
	"	.reg .pred %more;\n"                                                              \
	"	ld.param.u64 %want, [duration];\n"                                                \
	"	mov.u64 %begun, %globaltimer;\n"                                                  \
	"AGAIN:\n"                                                                                \
	"	mov.u64 %now, %globaltimer;\n"                                                    \
	"	sub.u64 %past, %now, %begun;\n"                                                   \
	"	setp.lt.u64 %more, %past, %want;\n"                                               \
	"	@%more bra AGAIN;\n"                                                              \
	"	ret;\n"                                                                           \
	"}\n"
#define PTX(...) ".version 7.0\n.target sm_75\n.address_size 64\n" __VA_ARGS__

struct account {
	const char *path, *kernel;
	unsigned long launches;
	uint64_t ns;
};

extern unsigned long app_failures;

int64_t app__now(void);
/* Device 0, its primary context current in this thread. Ends the program if there is none. */
CUcontext app__start(void);
/* All of them end the program with status 9 on an error: nothing can be measured after one. */
void app__must(CUresult r, const char *what);
CUmodule app__module(const char *text);
CUfunction app__function(CUmodule m, const char *name);
CUstream app__stream(void);

void account__add(struct account *a, CUresult r, uint64_t ns);
void account__print(const struct account *a, size_t n);
void account__print_total(const struct account *a, size_t n);

#define MUST(call) app__must(call, #call)

/* In place, so that the function with the chain's name is the one that calls the driver. */
static inline __attribute__((always_inline))
CUresult app__launch(CUfunction f, CUstream s, uint64_t ns)
{
	void *params[] = { &ns };

	return cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, params, NULL);
}

#endif
