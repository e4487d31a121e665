/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* By how much brackets are too long: series of rounds on a device, and the constants that they give. */
#ifndef CALIBRATE_SERIES_H
#define CALIBRATE_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu_timing/calibrations.h"

struct bench;

/* Copies up to this size give the constant; larger ones vary by more than it, and are only shown. */
#define SERIES_SMALL (64u << 10)
#define SERIES_MOST 40		/* of one device */
/* Half of the rounds have to lie as near to each other, or something else was at work. */
#define SERIES_EVEN_NS 2000

struct calibrate_series {
	uint32_t work;		/* enum calibration_work */
	uint32_t load;		/* LOAD_BUSY, LOAD_IDLE */
	uint64_t size;		/* ns of a kernel, bytes of a copy */
	uint32_t wanted;	/* rounds that were asked for */
	uint32_t rounds;	/* that were in this situation */
	/* ns that their brackets have too many: a quarter of them has less, half, three quarters. */
	int32_t low, median, high;
};

/*
 * All series on that device, each handed over once it is complete. `no_gap` as in struct calibration. 0,
 * or -EIO: see bench__why.
 */
int calibrate_series__measure(struct bench *b, bool no_gap,
			      void (*found)(void *ctx, const struct calibrate_series *s), void *ctx);

/* --- pure ------------------------------------------------------------------------------------- */

/* The quartiles of `nr` values, which are sorted by it; wanted and rounds are not touched. */
void calibrate_series__spread(double *value, size_t nr, struct calibrate_series *s);

/*
 * The series that gives the constant of a situation: that with the middle one of the medians of all that
 * may. NULL: there is none.
 */
const struct calibrate_series *calibrate_series__middle(const struct calibrate_series *s, size_t nr,
							enum calibration_work work,
							enum launch_load load);
/* Its constant; NULL, or why it can't be one. */
const char *calibrate_series__constant(const struct calibrate_series *s, uint32_t *ns);

#endif
