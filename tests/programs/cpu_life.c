// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Processes and threads that live for a moment. Prints the CPU time, by their own clocks, that was
 * spent in moment(). usage: cpu_life forks|threads NUMBER
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOMENT_NS 10000000u

static volatile uint64_t sink;
static uint64_t *spent;		/* shared with children */

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

__attribute__((noinline, noclone)) static void moment(void)
{
	uint64_t start = now(), end;

	do {
		for (int i = 0; i < 10000; i++)
			sink += (uint64_t)i;
		end = now();
	} while (end - start < MOMENT_NS);
	__atomic_fetch_add(spent, end - start, __ATOMIC_RELAXED);
}

static void *thread_main(void *arg)
{
	moment();
	return arg;
}

static int one(const char *how)
{
	pthread_t thread;
	pid_t pid;

	if (!strcmp(how, "threads"))
		return pthread_create(&thread, NULL, thread_main, NULL) ||
		       pthread_join(thread, NULL);
	pid = fork();
	if (!pid) {
		moment();
		_exit(0);
	}
	return pid < 0 || waitpid(pid, NULL, 0) != pid;
}

int main(int argc, char **argv)
{
	int nr = argc > 2 ? atoi(argv[2]) : 0;

	spent = mmap(NULL, sizeof(*spent), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (argc != 3 || spent == MAP_FAILED)
		return 64;
	for (int i = 0; i < nr; i++)
		if (one(argv[1]))
			return 1;
	printf("moment %" PRIu64 "\n", *spent);
	return 0;
}
