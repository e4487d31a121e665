/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is to be known about a run besides its stacks: losses by cause, notes, own cost. */
#ifndef LOADER_FACTS_H
#define LOADER_FACTS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "loader/collect.h"
#include "loader/launches.h"
#include "loader/probes.h"
#include "loader/profile/profile.h"

struct facts_input {
	const struct probes *probes;
	const struct collect *collect;
	const struct launches *launches;	/* NULL: none recorded */
	const struct processes *processes;
	const struct files *files;
	bool cpu;			/* CPU time is what is shown: nothing is said of launches */
	uint64_t mappings_lost;		/* records of new mappings that the kernel dropped */
	uint64_t cpus_came;		/* CPUs that came up: without samples for up to a second */
	uint64_t own_cpu_ns;		/* our CPU time while capturing */
};

/* Adds counters, notes and own cost to the model. 0 or -ENOMEM. */
int facts__add(const struct facts_input *in, struct profile *p);

#endif
