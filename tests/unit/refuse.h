/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Allocations that fail on demand: replaces the C library's in the test that includes this. Under
 * ASan, which has its own, nothing is refused and CAN_REFUSE is 0.
 */
#ifndef TESTS_REFUSE_H
#define TESTS_REFUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* Set by the test: so many allocations still succeed; -1: all. */
static long allocations_left = -1;

#ifdef __SANITIZE_ADDRESS__
#define CAN_REFUSE 0
#else
#define CAN_REFUSE 1

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t m);
void *__libc_realloc(void *p, size_t n);

static bool refuse(void)
{
	if (allocations_left < 0)
		return false;
	if (!allocations_left)
		return true;
	allocations_left--;
	return false;
}

void *malloc(size_t n)
{
	return refuse() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t m)
{
	return refuse() ? NULL : __libc_calloc(n, m);
}

void *realloc(void *p, size_t n)
{
	return refuse() ? NULL : __libc_realloc(p, n);
}

void *reallocarray(void *p, size_t n, size_t m)
{
	size_t bytes;

	return __builtin_mul_overflow(n, m, &bytes) || refuse() ? NULL : __libc_realloc(p, bytes);
}
#endif

#endif
