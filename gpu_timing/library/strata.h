/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The strata of all launches of the process (sampler.h), found by what is known before the stack. */
#ifndef LIBRARY_STRATA_H
#define LIBRARY_STRATA_H

#include <linux/types.h>
#include <stdint.h>

#include "gpu_timing/channel.h"
#include "gpu_timing/library/sampler.h"

#define STRATA_WAYS 4

struct strata {
	uint32_t used;			/* bool: something is to be forgotten */
	uint32_t threads;		/* that had launches looked at lately */
	uint64_t counted;		/* CLOCK_MONOTONIC ns: when that was found */
	struct stratum at[CHANNEL_SHAPES] __attribute__((aligned(64)));
};

struct thread;

/*
 * Counts t->launch and chooses, by the segment's `every`: 0, or the launches that its probe stands for; then
 * its weight and stratum are set. Takes some ns where it is 0.
 */
uint32_t strata__choose(struct thread *t, uint32_t every);
/* The same of what t does otherwise, from the place `sp` of its stack. */
uint32_t strata__choose_for(struct thread *t, struct channel_launch *l, uint64_t sp, uint32_t every);
/* A session begins, nobody is inside. */
void strata__begin(void);
/* How many threads had launches looked at lately: they share a device. For the keeper, now and then. */
void strata__count_threads(void);

#endif
