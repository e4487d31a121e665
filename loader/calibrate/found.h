/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What was found on one device, and how it is shown. */
#ifndef CALIBRATE_FOUND_H
#define CALIBRATE_FOUND_H

#include "gpu_timing/calibrations.h"
#include "loader/base/text.h"
#include "loader/calibrate/series.h"

struct calibrate_found {
	int device;
	uint32_t version, step_ns;
	char name[CALIBRATIONS_MAX_NAME + 1];
	struct calibrate_series series[SERIES_MOST];
	size_t nr;
};

/* The constants that are good, busy and idle, into `c`; *missing counts the others. 0 or -ENOMEM. */
int calibrate_found__settle(const struct calibrate_found *f, struct calibrations *c, unsigned int *missing);

/* A table for people; and the same for scripts, an object on a line for each kind of work and stream. */
void calibrate_found__print(const struct calibrate_found *f, struct text *t);
void calibrate_found__print_json(const struct calibrate_found *f, struct text *t);

#endif
