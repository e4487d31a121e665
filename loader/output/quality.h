/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How good the stacks are: what part of them is cut, guessed or without names, and whose fault. */
#ifndef OUTPUT_QUALITY_H
#define OUTPUT_QUALITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/profile/profile.h"

/* One file that makes stacks worse. */
struct quality_file {
	const char *module;	/* as the profile has it */
	uint64_t no_unwind_info;	/* events that could not be unwound through it, or guessed */
	uint64_t no_symbols;		/* frames: functions in it that have no name */
};

/*
 * Stacks are judged by events (samples or launches), each counted once under what it has. Names are
 * judged by frames, each counted as often as there are events: the area in a flame graph. One nameless
 * function at the root of every stack (a stripped C library's start) is little of that, but in all events.
 */
struct quality {
	uint64_t events;
	uint64_t complete;	/* no mark and no guess: the stack from its root */
	uint64_t guessed;	/* with frames found by the frame pointer */
	uint64_t marks[NR_PROFILE_MARKS];
	uint64_t frames;	/* functions: no processes, threads, marks or work on a device */
	uint64_t unresolved[NR_PROFILE_UNRESOLVED];	/* frames; [PROFILE_RESOLVED]: with a name */
	struct quality_file *files;	/* worst first */
	size_t nr_files;
};

/* Of the CPU samples, or of the launches. 0 or -ENOMEM. */
int quality__new(const struct profile *p, bool launches, struct quality *q);
void quality__free(struct quality *q);

#define QUALITY_MARK 64
/* "[no unwind info]": a mark without the file that it may name; into buf of QUALITY_MARK bytes. */
const char *quality__mark(char *buf, enum profile_mark mark);

#endif
