/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where not every launch was looked at: the strata that those which were stand for (channel.h), of all
 * processes, what they said that they stand for, and how many launches there were. Numbers from 1; 0 is no
 * stratum: every launch is seen there.
 */
#ifndef LOADER_STRATA_H
#define LOADER_STRATA_H

#include <stdbool.h>
#include <stdint.h>

struct strata;

struct strata *strata__new(void);	/* NULL: out of memory */
void strata__free(struct strata *s);	/* NULL is fine */

/* A new one; 0: out of memory. */
uint32_t strata__add(struct strata *s);
/*
 * A record of it that stands for `weight` launches; 0: one of no stratum, as from before any was chosen.
 * One that doesn't count, as a wait, or from before the capture, is of the stratum, too, but in no total.
 */
void strata__saw(struct strata *s, uint32_t id, uint32_t weight, bool counts);
/* All its launches, exact; 0: not known. */
void strata__set_launches(struct strata *s, uint32_t id, uint64_t launches);

/*
 * What sums of weights are to be multiplied by, so that those of a stratum add up to its launches: a block
 * that the capture's end has cut short counts whole, or not at all. 1 where it isn't known.
 */
double strata__scale(const struct strata *s, uint32_t id);

/*
 * Whole numbers for parts of a stratum's launches, each near `part` and all together exact: call it once for
 * each part, after strata__start_rounding.
 */
uint64_t strata__round(struct strata *s, uint32_t id, double part);
void strata__start_rounding(struct strata *s);

/* Of all strata, of what counts: records, and the launches that they stand for, themselves included. */
struct strata_totals {
	uint64_t launches, records;
};
struct strata_totals strata__totals(const struct strata *s);

#endif
