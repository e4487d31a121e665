// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/estimate.h"

#include <stddef.h>

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
