// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/estimate.h"

#include <stddef.h>

#define ROUNDS 200
#define SAME 1e-6
#define LEAST 50		/* of an even share, as its part */
#define ENOUGH 3		/* launches of a path tell more of it than all of its kernel's others */

static uint64_t add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

void estimate__merge(struct estimate_times *t, const struct estimate_times *more)
{
	t->timed += more->timed;
	t->ns = add(t->ns, more->ns);
	t->chanced += more->chanced;
	t->others = add(t->others, more->others);
	t->others_ns = add(t->others_ns, more->others_ns);
	t->seen += more->seen;
}

/* Of those that are left out where many are queued the ones that were timed there tell, and no others. */
static double mean_of_others(const struct estimate_times *t)
{
	return (double)t->others_ns / (double)t->others;
}

static double mean_of_all(const struct estimate_times *t)
{
	return ((double)t->ns + (double)t->others_ns) / ((double)t->timed + (double)t->others);
}

bool estimate__mean(const struct estimate_times *path, const struct estimate_times *kernel,
		    bool left_out, double *ns)
{
	if (left_out && path->chanced >= ENOUGH)
		*ns = mean_of_others(path);
	else if (left_out && kernel && kernel->chanced >= ENOUGH)
		/* How much longer others take is the kernel's; how long is the path's, if known. */
		*ns = mean_of_others(kernel) *
		      (path->seen >= ENOUGH ? mean_of_all(path) / mean_of_all(kernel) : 1);
	else if (path->seen >= ENOUGH || (path->seen && !kernel))
		*ns = mean_of_all(path);
	else if (kernel && kernel->seen)
		*ns = mean_of_all(kernel);
	else
		return false;
	return true;
}

static double sum_of(const struct estimate_run *run, const struct estimate_kernel *kernels)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < run->nr; i++)
		sum += kernels[run->member[i].kernel].mean * run->member[i].launches;
	return sum;
}

/*
 * What each kernel's launches get if all runs are split by the means so far: their next means. False: these
 * are the same.
 */
static bool one_round(const struct estimate_run *runs, size_t nr_runs, struct estimate_kernel *kernels,
		      size_t nr_kernels)
{
	bool moved = false;
	size_t i;

	for (i = 0; i < nr_kernels; i++)
		kernels[i].launches = kernels[i].got = 0;
	for (i = 0; i < nr_runs; i++) {
		double sum = sum_of(&runs[i], kernels);

		for (uint32_t k = 0; k < runs[i].nr; k++) {
			const struct estimate_member *m = &runs[i].member[k];
			struct estimate_kernel *kernel = &kernels[m->kernel];

			kernel->launches += (double)runs[i].runs * m->launches;
			if (sum > 0)
				kernel->got += runs[i].ns * (kernel->mean * m->launches / sum);
		}
	}
	for (i = 0; i < nr_kernels; i++) {
		struct estimate_kernel *k = &kernels[i];
		double was = k->mean;

		if (k->timed > 0 || !(k->launches > 0))
			continue;
		k->mean = k->got / k->launches;
		if (k->mean < k->least)
			k->mean = k->least;
		moved |= k->mean > was * (1 + SAME) || k->mean < was * (1 - SAME);
	}
	return moved;
}

/*
 * The even split, then round by round nearer to what fits: each keeps every run's sum. What overlaps wholly
 * fits a time of 0 best; but no kernel takes none.
 */
void estimate__fit(const struct estimate_run *runs, size_t nr_runs, struct estimate_kernel *kernels,
		   size_t nr_kernels)
{
	size_t i;

	for (i = 0; i < nr_kernels; i++)
		kernels[i] = (struct estimate_kernel){
			.timed = kernels[i].timed, .ns = kernels[i].ns, .mean = 1,
		};
	one_round(runs, nr_runs, kernels, nr_kernels);
	for (i = 0; i < nr_kernels; i++) {
		struct estimate_kernel *k = &kernels[i];

		k->mean = k->launches > 0 ? k->got / k->launches : 0;
		k->least = k->mean / LEAST;
		if (k->timed > 0)
			k->mean = k->ns / k->timed;
	}
	for (i = 0; i < ROUNDS && one_round(runs, nr_runs, kernels, nr_kernels); i++)
		;
}
