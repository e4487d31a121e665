/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which launches are looked at, where not all are. They are sampled by strata: launches of one shape
 * from one place of the stack. A stratum's launches are cut into blocks, and of each block two, chosen at
 * random before the block begins, are looked at and stand for half of it each. So each launch has the same
 * chance as its neighbours, whatever the program's loops are, each record's weight is the inverse of its
 * chance, and sums of what the records stand for are right on average; how far off they may be tells the
 * difference between the two. How long a block is depends only on what was before it. Pure but for the
 * random numbers.
 */
#ifndef LIBRARY_SAMPLER_H
#define LIBRARY_SAMPLER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu_timing/channel.h"

/* A stratum's own: zeroes at first. */
struct stratum {
	uint64_t key;		/* 0: free */
	uint64_t since;		/* CLOCK_MONOTONIC ns: when the block began */
	uint32_t weight;	/* half its launches, for which each of the two stands */
	uint32_t left;		/* its launches still to come */
	uint32_t pick[2];	/* those that are looked at: as many are left before they are made */
	uint32_t blocks;
	uint64_t launches;	/* in all */
};

/*
 * What a thread may spend, and spends, where a budget decides. Time is earned as it passes, up to a
 * second's worth; every second of debt makes blocks longer. Within that the frequent strata share what is
 * left by those that are rare, which are looked at more often, so that a kernel which is launched seldom
 * and runs for long is known as well as one that is launched all the time.
 */
struct pace {
	uint64_t last;		/* CLOCK_MONOTONIC ns: earned up to there; 0: new */
	int64_t credit;		/* ns */
	uint64_t window;	/* when the window began in which spending is held against the budget */
	uint64_t spent;		/* ns, in that window */
	double rate;		/* records a second that one stratum may have */
	double cost;		/* ns of one, about */
	uint64_t records;	/* in all */
};

/* What the collector asked for: struct channel_segment. */
struct sampling {
	uint32_t every;		/* 0: by the budget; 1: all; else one of so many */
	uint32_t budget_ppm;	/* of the time, in millionths */
};

#define SAMPLER_FIRST 8		/* launches of a stratum that are all looked at, as none of its own knows */

/* Something was spent on one record, ns. One that took extremely long was interrupted: it counts as less. */
void pace__spend(struct pace *p, uint64_t ns);

/* What is no record, however long it took. */
void pace__owe(struct pace *p, uint64_t ns);

/*
 * Whether it owes more than a second's worth: then a stratum that is met for the first time had better not
 * begin with all its launches, but share one with others.
 */
bool pace__is_broke(struct pace *p, struct sampling how, uint64_t now);

/*
 * Half the launches of the next block of `s`: 1 to CHANNEL_MAX_STANDS_FOR. The one that others `share` has
 * half of the budget.
 */
uint32_t pace__weight(struct pace *p, const struct stratum *s, struct sampling how, bool share,
		      uint64_t now);

/* A new block of twice that many; `random` chooses. */
void stratum__begin(struct stratum *s, uint32_t weight, uint64_t random, uint64_t now);

/* One launch of a block that has some left: 0, or the launches that its record stands for. */
static inline uint32_t stratum__launch(struct stratum *s)
{
	uint32_t left = s->left--;

	s->launches++;
	return left == s->pick[0] || left == s->pick[1] ? s->weight : 0;
}

static inline uint64_t sampler__mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9fb21c651e98df25ull;
	return h ^ h >> 32;
}

/* Shape and place: not 0. `sp`: an address in the frame of the hook. */
static inline uint64_t sampler__key(const struct channel_launch *l, uint64_t sp)
{
	/* One by one: differences of two of them may be alike. */
	uint64_t h = sampler__mix(sampler__mix(0, l->function), sp);

	h = sampler__mix(h, (uint64_t)l->grid[0] << 32 | l->grid[1]);
	h = sampler__mix(h, (uint64_t)l->grid[2] << 32 | l->block[0]);
	h = sampler__mix(h, (uint64_t)l->block[1] << 32 | l->block[2]);
	h = sampler__mix(h, (uint64_t)l->shared_bytes << 32 | (uint32_t)l->entry << 16 | l->flags);
	return h | 1;
}

#endif
