/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What processes mapped a moment ago, as the kernel told it (PERF_RECORD_MMAP2, perf_event_open(2)):
 * for those that are gone before their mappings could be read.
 */
#ifndef LOADER_RECENT_H
#define LOADER_RECENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "loader/maps.h"
#include "loader/sampling.h"

struct recent;

struct recent *recent__new(void);	/* NULL: out of memory */
void recent__free(struct recent *r);	/* NULL is fine */

/* Some thousand are kept, the oldest goes. Paths are cut, and then lead nowhere. */
void recent__add(struct recent *r, const struct sampling_event *event);

/*
 * Calls `fn` as maps__read does, for what the program that the process executed at `time` (CLOCK_MONOTONIC,
 * ns) mapped; parts over which something else was mapped are left out. 0, what `fn` returned, or
 * -ESRCH: nothing is known.
 */
int recent__each(const struct recent *r, pid_t tgid, uint64_t time,
		 int (*fn)(const struct maps_line *line, void *arg), void *arg);
/* Whether the process has executed another program after `time`. */
bool recent__replaced(const struct recent *r, pid_t tgid, uint64_t time);

#endif
