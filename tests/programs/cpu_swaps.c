// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Two libraries by turns at one address, a few milliseconds each; which of them a function was called in
 * its caller tells: with_a or with_b. Prints "same" if the address is the same always.
 * usage: cpu_swaps LIBRARY_A FUNCTION_A LIBRARY_B FUNCTION_B SECONDS
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CALL 3000000

typedef void (*function)(unsigned long);

static volatile uint64_t sink;
static uintptr_t address;
static int moved;

__attribute__((noinline, noclone)) static void with_a(function f)
{
	f(CALL);
	sink += 1;
}

__attribute__((noinline, noclone)) static void with_b(function f)
{
	f(CALL);
	sink += 2;
}

static void turn(const char *path, const char *name, void (*caller)(function))
{
	void *library = dlopen(path, RTLD_NOW), *f = library ? dlsym(library, name) : NULL;

	if (!f) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	moved |= address && address != (uintptr_t)f;
	address = (uintptr_t)f;
	caller(*(function *)&f);
	dlclose(library);
}

int main(int argc, char **argv)
{
	clock_t end = clock() + (argc == 6 ? atoi(argv[5]) : 0) * CLOCKS_PER_SEC;

	if (argc != 6)
		return 64;
	while (clock() < end) {
		turn(argv[1], argv[2], with_a);
		turn(argv[3], argv[4], with_b);
	}
	printf("%s\n", moved ? "moved" : "same");
	return 0;
}
