/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an event bracket adds to the duration of the work inside it, for devices where that was
 * measured against the vendor's own kernel records (docs/measurements.md). Pure.
 */
#ifndef GPU_TIMING_CALIBRATION_H
#define GPU_TIMING_CALIBRATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu_timing/channel.h"

struct calibration {
	uint32_t busy_ns;	/* the stream still had work when the bracket was complete */
	uint32_t idle_ns;	/* the bracket had begun before its launch arrived; less the gap */
	bool no_gap;		/* an idle bracket doesn't hold the program's time */
	bool copies;		/* holds for copies and sets of memory, too */
};

/*
 * By the device's name (len bytes, of the target: any content) and the driver's CUDA version; false:
 * never measured, durations stay raw and are to be labelled so.
 */
bool calibration__find(const char *device, size_t len, uint32_t version, struct calibration *out);

/*
 * ns of a raw bracket less the constant of its situation, not below 0. In an idle stream the bracket
 * also held the program's time between the first record and the launch: `gap_ns`. c may be NULL:
 * the gap alone is taken off.
 */
uint64_t calibration__apply(const struct calibration *c, uint64_t bracket_ns, uint64_t gap_ns,
			    enum launch_load load);

#endif
