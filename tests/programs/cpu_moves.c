// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Leaves its surroundings while it runs: works, takes mount and PID namespaces and a root of its own,
 * works in a library that only this root has, and at last in a child whose number is 1.
 * usage: cpu_moves ROOT LIBRARY FUNCTION
 */
#include <dlfcn.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;

static void spend(double seconds)
{
	clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);

	while (clock() < end)
		for (int i = 0; i < 100000; i++)
			sink += (uint64_t)i;
}

__attribute__((noinline, noclone)) static void at_home(void)
{
	spend(0.7);
	sink++;
}

__attribute__((noinline, noclone)) static void abroad(void (*function)(unsigned long))
{
	clock_t end = clock() + 7 * CLOCKS_PER_SEC / 10;

	while (clock() < end)
		function(10000000);
	sink++;
}

__attribute__((noinline, noclone)) static void born_abroad(void)
{
	spend(0.6);		/* functions that are all alike become one */
	sink++;
}

int main(int argc, char **argv)
{
	void (*function)(unsigned long);
	void *library;
	int status;
	pid_t pid;

	if (argc != 4)
		return 64;
	at_home();
	if (unshare(CLONE_NEWNS | CLONE_NEWPID) || chroot(argv[1]) || chdir("/")) {
		perror("leaving");
		return 77;
	}
	library = dlopen(argv[2], RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	*(void **)&function = dlsym(library, argv[3]);
	abroad(function);
	pid = fork();
	if (!pid) {
		born_abroad();
		printf("inside %d\n", (int)getpid());
		fflush(stdout);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid)
		return 1;
	printf("outside %d\n", (int)pid);
	return status != 0;
}
