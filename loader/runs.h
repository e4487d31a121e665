/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs: launches that have one time in common. Alike ones, by the tally's entries of their launches, are kept
 * as one sum, which is split among the launches when a result is written. All numbers are the target's and
 * may be made up: what is kept is bounded.
 */
#ifndef LOADER_RUNS_H
#define LOADER_RUNS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/estimate.h"
#include "loader/tally.h"

struct runs;

struct runs *runs__new(void);		/* NULL: out of memory */
void runs__free(struct runs *r);	/* NULL is fine */

/*
 * One of `launches` launches that took ns together and stands for `weight` runs, itself included: its number,
 * 0: out of memory. It counts once each launch was added by runs__add.
 */
uint32_t runs__begin(struct runs *r, uint32_t launches, uint64_t ns, uint32_t weight);
#define RUNS_NO_ENTRY (~0u)	/* of a launch that isn't of the capture: its share goes nowhere */
/*
 * A launch of it, by its entry in the tally. *whole: if that was its last one how many it has, else 0. 0 or
 * -ENOMEM.
 */
int runs__add(struct runs *r, uint32_t run, uint32_t entry, uint32_t *whole);

/*
 * What the launches of each entry got: `shares` has an element for each entry of the tally, all 0; `kernel`
 * gives one number to all entries of a kernel, whose launches are taken to be alike. What a run's launches
 * get is its time, to the nanosecond, in proportion to what was measured of their kernels one by one, or,
 * where nothing was, to what fits all runs best. 0 or -ENOMEM.
 */
int runs__split(const struct runs *r, const struct tally *t, uint64_t (*kernel)(const struct tally_key *key),
		struct estimate_times *shares);

#endif
