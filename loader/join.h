/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The two halves of a launch, its record with the stack and its result with the time, meet by launch id;
 * either may come first, come twice or never. Ids and results are the target's and may be made up:
 * what waits is bounded.
 */
#ifndef LOADER_JOIN_H
#define LOADER_JOIN_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu_timing/channel.h"
#include "loader/shapes.h"

struct join;

struct join_launch {
	uint32_t stack;
	uint32_t tid;
	uint64_t function;	/* as of the record, and its flags: where there is no result */
	uint32_t flags;
	uint32_t copy;		/* of a copy: enum copy_kind */
	uint64_t bytes;
	uint32_t weight, stratum;	/* of its probe */
	struct shape shape;	/* of a kernel's launch */
	bool outside;		/* not of the capture: neither it nor its result counts */
	uint64_t id;		/* its number in the target */
	uint64_t time;		/* CLOCK_MONOTONIC ns: of its probe */
};

/* A launch is complete; or one half is NULL: it was lost, or too many wait. 0 or negative errno. */
typedef int (*join_done)(void *ctx, const struct join_launch *launch,
			 const struct channel_result *result);

/* `most` halves wait at a time, the next ones go on alone at once. NULL: out of memory. */
struct join *join__new(uint32_t most, join_done done);
void join__free(struct join *j);	/* NULL is fine */

/* 0, -ENOMEM (the half is lost) or what `done` returned. */
int join__launch(struct join *j, uint64_t id, const struct join_launch *launch, void *ctx);
int join__result(struct join *j, const struct channel_result *result, void *ctx);

/* What waits has lost its other half for good. The first error of `done`. */
int join__finish(struct join *j, void *ctx);

#endif
