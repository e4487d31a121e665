/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The launches of one process: their stacks come from the BPF ring, their times and names from its
 * channel; here they meet by launch id and are added to the tally.
 */
#ifndef LOADER_ACCOUNT_H
#define LOADER_ACCOUNT_H

#include <linux/types.h>
#include <stdint.h>

#include "bpf/gpucollect.h"
#include "gpu_timing/calibrations.h"
#include "gpu_timing/reader.h"
#include "loader/graphs.h"
#include "loader/launches.h"
#include "loader/shapes.h"
#include "loader/strata.h"
#include "loader/works.h"

struct account;

/* What the accounts of all processes have in common. */
struct account_shared {
	struct tally *tally;
	struct works *works;
	struct strata *strata;
	struct graphs *graphs;
	struct shapes *shapes;
	const struct calibrations *calibrations;	/* of this machine; NULL: none */
	struct runs *runs;
	struct launches_counters counters;
	/* Launches made before, or from `to` on, are none of the capture's. CLOCK_MONOTONIC, ns. */
	uint64_t from, to;
};

struct account *account__new(struct account_shared *shared, uint32_t process);	/* NULL: no memory */
void account__free(struct account *a);	/* NULL is fine */

/* A launch's record, its stack as a number of stacks.h. 0 or -ENOMEM. */
int account__launch(struct account *a, const struct rec_launch *rec, uint32_t stack);
/* One that a probe in the driver saw: all that there will be of it. */
int account__probed(struct account_shared *shared, uint32_t process, const struct rec_launch *rec,
		    uint32_t stack);

/* For channel__poll, with the account as its ctx. */
extern const struct channel_handler account__handler;
/* Whether something could not be kept since this was asked last. */
bool account__no_memory(struct account *a);

/*
 * What waits for its other half has lost it for good. `channel` tells how many launches the strata have, and
 * which waits are under way: they count up to `time`, CLOCK_MONOTONIC ns. It may be NULL.
 */
void account__finish(struct account *a, const struct channel *channel, uint64_t time);

/* The library numbers its strata anew. */
void account__new_session(struct account *a);

/* How many launches a record stands for, itself included: the target may say anything. */
uint32_t account__weight(const struct rec_launch *rec);

/* Launches with an id so far. */
uint64_t account__seen(const struct account *a);

#endif
