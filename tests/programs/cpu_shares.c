// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Three functions that take 60, 30 and 10 % of the CPU time, by the thread's own clock, which the
 * program prints at the end. In short turns of uneven length, so that no sampler is in step with
 * them. usage: cpu_shares SECONDS (of CPU time)
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NR 3
#define LEAST_LOOPS 20000u
#define MORE_LOOPS 60000u

static volatile uint64_t sink;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#define SPIN(name) \
	__attribute__((noinline, noclone)) static void name(unsigned int loops) \
	{ \
		for (unsigned int i = 0; i < loops; i++) \
			sink += i; \
	}
SPIN(takes_60)
SPIN(takes_30)
SPIN(takes_10)

int main(int argc, char **argv)
{
	static void (*const fn[NR])(unsigned int) = { takes_60, takes_30, takes_10 };
	static const char *const name[NR] = { "takes_60", "takes_30", "takes_10" };
	static const uint64_t percent[NR] = { 60, 30, 10 };
	uint64_t ns[NR] = { 0 }, sum = 0, end, random = 88172645463325252u;

	end = (uint64_t)(atof(argc > 1 ? argv[1] : "5") * 1e9);
	while (sum < end) {
		int next = 0;
		uint64_t start;

		/* The one furthest behind its share. */
		for (int i = 1; i < NR; i++)
			if (ns[i] * percent[next] < ns[next] * percent[i])
				next = i;
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		start = now();
		fn[next](LEAST_LOOPS + (unsigned int)(random % MORE_LOOPS));
		start = now() - start;
		ns[next] += start;
		sum += start;
	}
	for (int i = 0; i < NR; i++)
		printf("%s %" PRIu64 "\n", name[i], ns[i]);
	return 0;
}
