// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A program with a thread that sleeps until it is asked, which is the one that may be borrowed:
 *
 *	trace_loader LIBRARY	loads a library (trace_wait_lib.c) whose constructor, at a byte of standard
 *				input, waits for that thread's answer: "answered", "loaded"
 *	trace_loader -t		as another user, who may have no more threads
 *	trace_loader -s FILE	as another user, who may only read the file, and puts it at the number of
 *				each descriptor that turns up: "swapped N"
 *
 * The first line is "ready PID". The first two read standard input to its end, then "calls N": how often
 * the library of these tests came.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define NOBODY 65534
#define DESCRIPTORS 1024

int trace_lib_calls;
void trace_wait_for_others(void);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool asked, answered;

static void *sleeper(void *arg)
{
	pthread_mutex_lock(&lock);
	while (!asked)
		pthread_cond_wait(&changed, &lock);
	answered = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return arg;
}

static void say(const char *what)
{
	puts(what);
	fflush(stdout);
}

void trace_wait_for_others(void)
{
	pthread_mutex_lock(&lock);
	asked = true;
	pthread_cond_broadcast(&changed);
	while (!answered)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	say("answered");
}

static void become_nobody(void)
{
	if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY) || prctl(PR_SET_DUMPABLE, 1)) {
		perror("nobody");
		exit(2);
	}
}

static void swap(int file)
{
	static bool own[DESCRIPTORS];

	for (int i = 0; i < DESCRIPTORS; i++)
		own[i] = fcntl(i, F_GETFD) >= 0;
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	for (int i = 0;; i = (i + 1) % DESCRIPTORS) {
		if (own[i] || fcntl(i, F_GETFD) < 0)
			continue;
		if (dup3(file, i, O_CLOEXEC) != i)
			perror("dup3");
		own[i] = true;
		printf("swapped %d\n", i);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	const struct rlimit none = { 1, 1 };
	int file = -1;
	pthread_t thread;
	char byte;

	if (argc < 2 || pthread_create(&thread, NULL, sleeper, NULL))
		return 64;
	if (argc > 2 && !strcmp(argv[1], "-s")) {
		file = open(argv[2], O_RDONLY | O_CLOEXEC);
		become_nobody();
		swap(file);
	}
	if (!strcmp(argv[1], "-t")) {
		become_nobody();
		setrlimit(RLIMIT_NPROC, &none);
	}
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (strcmp(argv[1], "-t")) {
		if (!dlopen(argv[1], RTLD_NOW))
			fprintf(stderr, "%s\n", dlerror());
		say("loaded");
	}
	while (read(STDIN_FILENO, &byte, 1) == 1)
		;
	printf("calls %d\n", trace_lib_calls);
	return 0;
}
