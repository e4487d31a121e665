/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A time that several have together, split among them. Pure. */
#ifndef LOADER_SHARES_H
#define LOADER_SHARES_H

#include <stddef.h>
#include <stdint.h>

struct share {
	uint32_t node;		/* of the model: whose it is; not looked at here */
	uint32_t count;		/* pieces of work that are alike, at least 1 */
	double mean;		/* what one of them takes otherwise, ns; negative: not known */
	double weight;		/* what is split in proportion to */
};

/*
 * Sets the weights: what the pieces take otherwise, or, where that isn't known of some, for these the mean of
 * those of which it is; all alike where nothing is known.
 */
void shares__weigh(struct share *shares, size_t nr);
/* Their parts of `total`, which add up to exactly that; nr > 0, weighed. */
void shares__split(const struct share *shares, size_t nr, uint64_t total, uint64_t *parts);

#endif
