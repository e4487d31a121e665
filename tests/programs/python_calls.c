// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * C between Python and Python, used through ctypes: each function here stays one frame of its own,
 * under its own name, so that a test knows what has to stand between two Python frames.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#define FRAME __attribute__((noinline, noclone, no_icf, visibility("default")))
/* Code behind a function's last call, so that the call does not become a jump. */
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

typedef void (*calls_fn)(int);
typedef int (*calls_compare)(const void *, const void *);

FRAME void calls_back(calls_fn fn, int n)
{
	fn(n);
	KEEP_FRAME();
}

/* `levels` frames of this function, then calls_back. */
FRAME void calls_nested(calls_fn fn, int n, int levels)
{
	if (levels > 1)
		calls_nested(fn, n, levels - 1);
	else
		calls_back(fn, n);
	KEEP_FRAME();
}

FRAME void calls_sort(calls_compare compare)
{
	int two[2] = { 2, 1 };

	qsort(two, 2, sizeof(two[0]), compare);
	KEEP_FRAME();
}

/* A frame that is found through rbp: what alloca makes. */
FRAME void calls_alloca(calls_fn fn, int n)
{
	volatile char *room = __builtin_alloca((size_t)n + 100);

	room[n] = 1;
	fn(n);
	room[0] = 1;
}

struct errand {
	calls_fn fn;
	int n;
};

FRAME void *calls_begin(void *arg)
{
	const struct errand *e = arg;

	e->fn(e->n);
	KEEP_FRAME();
	return NULL;
}

/* In a thread that Python has not made. */
FRAME int calls_thread(calls_fn fn, int n)
{
	struct errand e = { fn, n };
	pthread_t thread;

	if (pthread_create(&thread, NULL, calls_begin, &e))
		return -1;
	return pthread_join(thread, NULL);
}

/* Uses the processor for so long. */
FRAME unsigned long calls_spin(long us)
{
	struct timespec now;
	unsigned long rounds = 0;
	long long end;

	clock_gettime(CLOCK_MONOTONIC, &now);
	end = now.tv_sec * 1000000ll + now.tv_nsec / 1000 + us;
	do {
		rounds++;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec * 1000000ll + now.tv_nsec / 1000 < end);
	return rounds;
}

static volatile int beside_ends;

FRAME void *calls_beside_run(void *arg)
{
	const struct errand *e = arg;

	while (!beside_ends) {
		for (int i = 0; i < 10; i++)
			calls_spin(1000);
		e->fn(e->n);
	}
	return NULL;
}

/* A thread with a name that is none of Python's, and calls it now and then; at the second call it ends. */
FRAME int calls_beside(int ends, calls_fn fn)
{
	static struct errand e;
	static pthread_t thread;

	beside_ends = ends;
	if (ends)
		return pthread_join(thread, NULL);
	e = (struct errand){ fn, 2 };
	if (pthread_create(&thread, NULL, calls_beside_run, &e))
		return -1;
	return pthread_setname_np(thread, "spin beside");
}
