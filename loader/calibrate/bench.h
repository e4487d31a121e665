/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A device with all that measuring takes: a stream, a kernel that times itself, memory, and brackets as
 * the timing library puts them (gpu_timing/library/launch.c). Functions that return int: 0, or -EIO when
 * the driver has refused a call, which bench__why tells.
 */
#ifndef CALIBRATE_BENCH_H
#define CALIBRATE_BENCH_H

#include "gpu_timing/calibrations.h"
#include "loader/calibrate/driver.h"
#include "loader/calibrate/kernel.h"

#define BENCH_BRACKETS 50	/* under way at a time: a stream's queue holds some 1,020 entries */
#define BENCH_NO_SLOT BENCH_BRACKETS

struct bench_bracket {
	CUevent begin, end;
	uint64_t gap_ns;	/* the host's time from the first record to the return of the work's calls */
	bool idle;		/* the first event was over when the second had been recorded */
};

/* What is put between two events. */
struct bench_work {
	enum calibration_work work;
	uint64_t size;		/* ns of a kernel, bytes of a copy */
	unsigned int times;
	unsigned int slot;	/* of a kernel: where it tells its times */
};

struct bench {
	const struct calibrate_driver *driver;
	CUdevice device;
	bool retained;
	CUstream stream;
	CUfunction spin;
	CUdeviceptr told_at, memory[2];
	void *host;
	size_t room;		/* bytes of each memory */
	struct bench_bracket bracket[BENCH_BRACKETS];
	struct calibrate_told told[BENCH_BRACKETS + 1];
	uint64_t step_ns;	/* of the device's timer */
	double ns_per_cycle;
	const char *failed;	/* the call that was refused */
	CUresult error;
};

/* Zero it first, and close it whether that succeeded or not. The device is warm after it. */
int bench__open(struct bench *b, const struct calibrate_driver *driver, CUdevice device);
void bench__close(struct bench *b);
void bench__why(const struct bench *b, char *why);	/* CALIBRATE_DRIVER_WHY bytes */

/* Keeps the stream busy for so long. */
int bench__fill(struct bench *b, uint64_t ns);
int bench__put(struct bench *b, const struct bench_work *w);
int bench__bracket(struct bench *b, struct bench_bracket *bracket, const struct bench_work *w);
/* Whether the event is still to come. */
int bench__is_pending(struct bench *b, CUevent event, bool *pending);
/* Waits for all that was put in; after that times can be asked for. */
int bench__sync(struct bench *b);
int bench__elapsed(struct bench *b, const struct bench_bracket *bracket, double *ns);
int bench__read_told(struct bench *b);
/* The kernel's own account of its length, read before. */
double bench__own_ns(const struct bench *b, unsigned int slot);

#endif
