// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* From the values of rounds to a constant. Pure. */
#include <stdlib.h>

#include "loader/calibrate/series.h"

/* An exact constant of 0 may be measured as a little less. */
#define NEARLY_ZERO_NS 500

static int value_cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int32_t rounded(double ns)
{
	if (!(ns > INT32_MIN && ns < INT32_MAX))
		return ns > 0 ? INT32_MAX : INT32_MIN;
	return (int32_t)(ns < 0 ? ns - 0.5 : ns + 0.5);
}

void calibrate_series__spread(double *value, size_t nr, struct calibrate_series *s)
{
	s->low = s->median = s->high = 0;
	if (!nr)
		return;
	qsort(value, nr, sizeof(*value), value_cmp);
	s->low = rounded(value[nr / 4]);
	s->median = rounded(value[nr / 2]);
	s->high = rounded(value[nr - 1 - nr / 4]);
}

static bool may_give(const struct calibrate_series *s, enum calibration_work work, enum launch_load load)
{
	return s->work == work && s->load == load && s->rounds &&
	       (work == CALIBRATION_KERNEL || s->size <= SERIES_SMALL);
}

/* Of an even number the lower one: what is certain to be in a bracket. */
const struct calibrate_series *calibrate_series__middle(const struct calibrate_series *s, size_t nr,
							enum calibration_work work,
							enum launch_load load)
{
	const struct calibrate_series *order[SERIES_MOST];
	size_t i, k, n = 0;

	for (i = 0; i < nr && n < SERIES_MOST; i++) {
		if (!may_give(&s[i], work, load))
			continue;
		for (k = n++; k && order[k - 1]->median > s[i].median; k--)
			order[k] = order[k - 1];
		order[k] = &s[i];
	}
	return n ? order[(n - 1) / 2] : NULL;
}

const char *calibrate_series__constant(const struct calibrate_series *s, uint32_t *ns)
{
	*ns = 0;
	if (!s || s->rounds < s->wanted / 2 || !s->rounds)
		return "too few rounds were in this situation";
	if ((int64_t)s->high - s->low > SERIES_EVEN_NS)
		return "uneven: is something else at work?";
	if (s->median < -NEARLY_ZERO_NS || s->median > (int32_t)CALIBRATIONS_MAX_NS)
		return "out of range";
	*ns = s->median > 0 ? (uint32_t)s->median : 0;
	return NULL;
}
