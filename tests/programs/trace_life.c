// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A process of three threads, one of which is borrowed while the process does something else:
 *
 *	trace_life [again]	prints "ready PID"
 *
 * The first thread waits for signals, where nobody stops it; one sleeps in a futex until it is woken;
 * one computes. SIGUSR1: executes itself with "again", by the first thread; SIGUSR2: forks, and the
 * child works and prints "child done"; SIGHUP: wakes the sleeper, which ends ("sleeper woken",
 * printed at once); SIGTERM: the end, "computed right, calls N".
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int trace_lib_calls;

static int word;
static volatile bool over, wrong;

static void *sleeper(void *arg)
{
	bool failed = false;
	long result;

	/* EAGAIN: the word had changed before it fell asleep, or again asleep. */
	do {
		result = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
		failed = failed || (result && errno != EAGAIN);
	} while (!__atomic_load_n(&word, __ATOMIC_SEQ_CST));
	if (failed)
		puts("sleeper failed");
	return arg;
}

/* The same sum again and again, by floating point and integers; any difference is wrong. */
static uint64_t compute(void)
{
	uint64_t sum = 1;
	double real = 1;

	for (uint64_t i = 1; i < 20000; i++) {
		sum = sum * 6364136223846793005ull + i;
		real = real * 0.999 + 1.0 / (double)i;
	}
	return sum ^ (uint64_t)(real * 1e12);
}

static void *computer(void *arg)
{
	uint64_t first = compute();

	while (!over)
		if (compute() != first)
			wrong = true;
	return arg;
}

static void in_child(void)
{
	char *memory = malloc(1000000);

	memset(memory, 1, 1000000);
	free(memory);
	puts("child done");
	exit(0);
}

static void do_fork(void)
{
	int status = -1;
	pid_t child = fork();

	if (!child)
		in_child();
	waitpid(child, &status, 0);
	puts(status ? "child failed" : "forked");
	fflush(stdout);
}

static void wake(pthread_t thread)
{
	__atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	static const int signals[] = { SIGUSR1, SIGUSR2, SIGHUP, SIGTERM };
	pthread_t sleeps, computes;
	bool asleep = true;
	sigset_t set;
	int signal;

	sigemptyset(&set);
	for (size_t i = 0; i < 4; i++)
		sigaddset(&set, signals[i]);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_create(&sleeps, NULL, sleeper, NULL);
	pthread_create(&computes, NULL, computer, NULL);
	printf("%s %d\n", argc > 1 ? argv[1] : "ready", (int)getpid());
	fflush(stdout);
	while (!sigwait(&set, &signal) && signal != SIGTERM) {
		if (signal == SIGUSR1)
			execl("/proc/self/exe", argv[0], "again", NULL);
		if (signal == SIGUSR2)
			do_fork();
		if (signal == SIGHUP) {
			wake(sleeps);
			asleep = false;
			puts("sleeper woken");
			fflush(stdout);
		}
	}
	if (asleep)
		wake(sleeps);
	over = true;
	pthread_join(computes, NULL);
	printf("computed %s, calls %d\n", wrong ? "wrong" : "right", trace_lib_calls);
	return wrong;
}
