/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an event bracket adds to the duration of the work inside it, and bracket less constant. Pure.
 *
 * Of a kernel it is what the bracket has over the vendor's own record of it (docs/measurements.md): over
 * the kernel's own account, from its first to its last look at the device's timer, that is
 * CALIBRATION_AROUND_NS more. Of a copy or set it is what the bracket has over the time by which one more
 * of them, behind others of its kind in a busy stream, makes these longer.
 */
#ifndef GPU_TIMING_CALIBRATION_H
#define GPU_TIMING_CALIBRATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu_timing/channel.h"

/* What a kernel takes before its first and after its last instruction, measured on an H200: 650 to 700. */
#define CALIBRATION_AROUND_NS 700u

struct calibration_constant {
	bool known;
	uint32_t busy_ns;	/* the stream still had work when the bracket was complete */
	uint32_t idle_ns;	/* the bracket had begun before its launch arrived; less the gap */
};

/* Of one device; all zero: nothing is known. */
struct calibration {
	struct calibration_constant kernels;	/* and graphs */
	struct calibration_constant copies[NR_COPY_KINDS];
	bool no_gap;		/* an idle bracket doesn't hold the program's time */
};

/*
 * The built-in constants by the device's name (len bytes, of the target: any content) and the driver's
 * CUDA version.
 */
void calibration__builtin(const char *device, size_t len, uint32_t version, struct calibration *out);

/*
 * ns of a result's raw bracket less the constant of its work and situation, not below 0. In an idle stream
 * the bracket also held the program's time between the first record and the launch: the gap. c may be
 * NULL. False: the constant isn't known, the gap alone is taken off; such a time is to be labelled so.
 */
bool calibration__apply(const struct calibration *c, const struct channel_result *r, uint64_t *ns);

#endif
