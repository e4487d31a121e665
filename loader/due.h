/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* When mappings are read again: for which processes it is due, and how often it may be. */
#ifndef LOADER_DUE_H
#define LOADER_DUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "loader/processes.h"

#define DUE_MAX 256

struct due {
	struct {
		pid_t tgid;
		bool now;	/* also if they were never needed */
	} process[DUE_MAX];
	unsigned int nr;
};

/* Each process once. False: there is no room. */
bool due__add(struct due *d, pid_t tgid, bool now);

/* Which reading is, but for a process of some ten thousand mappings. `now`: CLOCK_MONOTONIC, ns. */
bool due__is_cheap(const struct process *p, uint64_t now);
/* Of a process that had unknown code in a stack at `time`. */
bool due__may_reread(const struct process *p, uint64_t time);

#endif
