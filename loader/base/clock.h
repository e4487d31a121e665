/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Clocks in ns. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock__ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* CLOCK_MONOTONIC in ns: the same clock as bpf_ktime_get_ns(). */
static inline uint64_t clock__now_ns(void)
{
	return clock__ns(CLOCK_MONOTONIC);
}

/* CPU time of this thread, in ns. */
static inline uint64_t clock__own_ns(void)
{
	return clock__ns(CLOCK_THREAD_CPUTIME_ID);
}

#endif
