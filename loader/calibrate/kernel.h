/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel that times itself: text that the driver translates for the device at hand. */
#ifndef CALIBRATE_KERNEL_H
#define CALIBRATE_KERNEL_H

#include <stdint.h>

/* tests/simcuda knows the kernel by this name. */
#define CALIBRATE_KERNEL "spin_and_tell"
extern const char calibrate_kernel__ptx[];

/*
 * Its parameters are a number of ns (u64) and the address of one of these in the device's memory. It
 * spins until the global timer has gone on for so long, then writes this.
 */
struct calibrate_told {
	uint64_t begin, end;			/* the global timer, ns */
	uint64_t begin_cycles, end_cycles;	/* of the multiprocessor's clock */
	uint64_t step;				/* the smallest by which the timer was seen to go on, ns */
};

#endif
