// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One address, two libraries: the second takes the place of the first after a child has mapped so much
 * that the kernel, on this CPU, has no room to tell of more. Each line on stdin begins the next phase;
 * each phase is announced and named by its own function: first_library, second_at_once, second_later.
 * usage: cpu_reuse LIBRARY_A FUNCTION_A LIBRARY_B FUNCTION_B
 */
#include <dlfcn.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define FLOOD 20000		/* mappings of code that come and go */
#define CALL 3000000

typedef void (*function)(unsigned long);

static volatile uint64_t sink;
static void *library;

static function load(const char *path, const char *name)
{
	void *f;

	library = dlopen(path, RTLD_NOW);
	f = library ? dlsym(library, name) : NULL;
	if (!f) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return *(function *)&f;
}

static void flood(void)
{
	int status;
	pid_t child = fork();

	if (child) {
		if (child < 0 || waitpid(child, &status, 0) != child || status)
			exit(1);
		return;
	}
	for (int i = 0; i < FLOOD; i++) {
		void *at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (at == MAP_FAILED)
			_exit(1);
		munmap(at, 4096);
	}
	_exit(0);
}

static int told(void)
{
	struct pollfd p = { .fd = 0, .events = POLLIN };
	char c;

	return poll(&p, 1, 0) > 0 && read(0, &c, 1) <= 1;
}

static void say(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
}

__attribute__((noinline, noclone)) static void first_library(function f)
{
	say("first");
	while (!told())
		f(CALL);
	sink += 1;
}

__attribute__((noinline, noclone)) static void second_at_once(function f)
{
	say("second");
	while (!told())
		f(CALL);
	sink += 2;
}

__attribute__((noinline, noclone)) static void second_later(function f)
{
	say("later");
	while (!told())
		f(CALL);
	sink += 3;
}

int main(int argc, char **argv)
{
	cpu_set_t here;
	function a, b;

	if (argc != 5)
		return 64;
	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	if (sched_setaffinity(0, sizeof(here), &here))
		return 1;
	a = load(argv[1], argv[2]);
	first_library(a);
	dlclose(library);
	flood();
	b = load(argv[3], argv[4]);
	printf("%s address\n", (uintptr_t)a == (uintptr_t)b ? "the same" : "another");
	second_at_once(b);
	second_later(b);
	return 0;
}
