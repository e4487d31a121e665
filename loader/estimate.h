/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What launches without a time of their own took, by those that have one. Pure. */
#ifndef LOADER_ESTIMATE_H
#define LOADER_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Launches that have a time, or that one which has stands for, of one path or of all paths of a kernel. Where
 * many are queued, some are left out by chance; one that is timed there stands for 1 / its chance of them,
 * itself included.
 */
struct estimate_times {
	uint64_t timed, ns;
	uint64_t chanced;		/* those of them that could have been left out */
	uint64_t others, others_ns;	/* that they stand for besides themselves; these times their ns */
	uint64_t seen;			/* those that were looked at: each may stand for several `timed` */
};

/* Sums don't wrap. */
void estimate__merge(struct estimate_times *t, const struct estimate_times *more);

/*
 * Mean ns of a path's launches that have no time, `left_out` by chance or for any other reason; `kernel`
 * holds the times of all paths, this one's included, or is NULL where these are not known to be of one
 * kernel. False: nothing is known.
 */
bool estimate__mean(const struct estimate_times *path, const struct estimate_times *kernel,
		    bool left_out, double *ns);

#endif
