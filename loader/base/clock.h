/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The clock of every record and deadline here. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC in ns: the same clock as bpf_ktime_get_ns(). */
static inline uint64_t clock__now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

#endif
