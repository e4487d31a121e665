/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The process that measures: the driver runs in it alone, as the caller, and what it finds comes through
 * a pipe. All that it says may be wrong.
 */
#ifndef CALIBRATE_PROCESS_H
#define CALIBRATE_PROCESS_H

#include "loader/calibrate/series.h"
#include "loader/output/caller.h"

#define CALIBRATE_TEXT 256

enum calibrate_kind {
	CALIBRATE_DEVICE = 1,	/* is measured now: its number, the CUDA version, its name as text */
	CALIBRATE_SAME,		/* is not measured: one of that name was */
	CALIBRATE_SERIES,
	CALIBRATE_MISSING,	/* no driver or no such device, or it can't be opened: why, as text */
	CALIBRATE_FAILED,	/* the device can't be measured to its end: why */
};

struct calibrate_record {
	uint32_t kind;		/* enum calibrate_kind */
	int32_t device;		/* ordinal, -1: all of them */
	uint32_t version;
	uint32_t step_ns;	/* of a series: the steps of the device's timer */
	struct calibrate_series series;
	char text[CALIBRATE_TEXT];	/* ends with 0: a name that calibrations__is_name, or words */
};

/*
 * Measures `device`, or with -1 one of each name. 0 once all of it is said, whatever it was; else a
 * negative errno and *why (malloc'd; NULL: no memory).
 */
int calibrate_process__run(const struct caller *caller, int device,
			   void (*on_record)(void *ctx, const struct calibrate_record *r), void *ctx,
			   char **why);

#endif
