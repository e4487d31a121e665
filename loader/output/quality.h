/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How good the stacks are: what part of them is cut, guessed or without names, and whose fault. */
#ifndef OUTPUT_QUALITY_H
#define OUTPUT_QUALITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/profile/profile.h"

/* One file that makes stacks worse. Numbers are events whose stack meets it at least once. */
struct quality_file {
	const char *module;	/* as the profile has it */
	uint64_t no_unwind_info;	/* could not be unwound through, or only by a guess */
	uint64_t no_symbols;		/* functions in it have no name */
};

/* Numbers are events (samples or launches), each counted once under what it has. */
struct quality {
	uint64_t events;
	uint64_t complete;	/* no mark and no guess: the stack from its root */
	uint64_t guessed;	/* with frames found by the frame pointer */
	uint64_t marks[NR_PROFILE_MARKS];
	uint64_t unresolved[NR_PROFILE_UNRESOLVED];	/* [PROFILE_RESOLVED]: all names known */
	struct quality_file *files;	/* worst first */
	size_t nr_files;
};

/* Of the CPU samples, or of the launches. 0 or -ENOMEM. */
int quality__new(const struct profile *p, bool launches, struct quality *q);
void quality__free(struct quality *q);

#endif
