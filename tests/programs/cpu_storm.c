// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A storm of processes that live for less than a millisecond each: starts RATE programs a second for
 * SECONDS, itself with other arguments, each of which works for 100 us. Prints how many and what CPU
 * time they took in all, as the kernel counted it. usage: cpu_storm RATE SECONDS
 */
#include <errno.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BRIEF_NS 100000u
#define NS 1000000000u

extern char **environ;
static volatile uint64_t sink;

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

__attribute__((noinline, noclone)) static void brief(void)
{
	uint64_t end = now(CLOCK_THREAD_CPUTIME_ID) + BRIEF_NS;

	while (now(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 1000; i++)
			sink += (uint64_t)i;
}

static void reap(int flags)
{
	while (waitpid(-1, NULL, flags) > 0)
		;
}

static int storm(char *self, uint64_t rate, uint64_t seconds)
{
	char *argv[] = { self, "brief", NULL };
	uint64_t start = now(CLOCK_MONOTONIC), nr = 0;
	struct rusage used;
	pid_t pid;

	while (now(CLOCK_MONOTONIC) - start < seconds * NS) {
		uint64_t due = (now(CLOCK_MONOTONIC) - start) * rate / NS;

		for (; nr < due; nr++)
			if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ))
				return 1;
		reap(WNOHANG);
		usleep(1000);
	}
	reap(0);
	getrusage(RUSAGE_CHILDREN, &used);
	printf("%" PRIu64 " processes, %.3f s\n", nr,
	       (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "brief")) {
		brief();
		return 0;
	}
	if (argc != 3)
		return 64;
	return storm(argv[0], strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10));
}
