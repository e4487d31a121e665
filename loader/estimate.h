/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What launches without a time of their own took, by those that have one. Pure. */
#ifndef LOADER_ESTIMATE_H
#define LOADER_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>
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

/* Runs of launches that were timed together, all of the same kernels. */
struct estimate_member {
	uint32_t kernel;		/* index */
	uint32_t launches;		/* in one run */
};

struct estimate_run {
	const struct estimate_member *member;
	uint32_t nr;
	uint64_t runs;
	double ns;			/* of all of them */
};

struct estimate_kernel {
	double timed, ns;		/* launches with a time of their own, or one stands for; theirs */
	double mean;			/* to be found: ns of one launch */
	double launches, got, least;	/* of use while it is found */
};

/*
 * Means by which the runs' times are to be split: of the launches timed by themselves where there are some,
 * of the others those that fit the runs best.
 */
void estimate__fit(const struct estimate_run *runs, size_t nr_runs, struct estimate_kernel *kernels,
		   size_t nr_kernels);

#endif
