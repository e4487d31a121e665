/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A process with the timing library: its channel, found, read and told to stop, and its account. */
#ifndef LOADER_TARGET_H
#define LOADER_TARGET_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "bpf/gpucollect.h"
#include "loader/launches.h"

struct account_shared;
struct target;

/* The first two outlive it. NULL: out of memory. */
struct target *target__new(const struct launches_config *config, struct account_shared *shared,
			   struct process *p);
void target__free(struct target *t);

struct process *target__process(const struct target *t);
/* Its library sees the same launch: a probe in the driver that is there for others is not needed. */
bool target__is_watched(const struct target *t);

/* A launch's record, its stack as a number of stacks.h. 0 or -ENOMEM. */
int target__launch(struct target *t, const struct rec_launch *rec, uint32_t stack);
/* Its library says hello: the number that its segment has there, or why there is none. */
void target__hello(struct target *t, int fd);

/* Reads the channel, and shows a sign of life; false if it gave all it had. */
bool target__poll(struct target *t);
void target__heartbeat(struct target *t);
/* A program may put a filter over all its threads at any time, the library's among them. */
void target__look_for_filter(struct target *t);
void target__stop(struct target *t);
/* Whether no launch of it will fire a probe any more. */
bool target__stopped(const struct target *t);
/*
 * It is over, since `time`: what the channel still holds is read, what is left has lost its other half for
 * good.
 */
void target__finish(struct target *t, uint64_t time);

#endif
