// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Goes through the places that are hard to unwind, for a tracer that follows it instruction by
 * instruction: a first breakpoint in main says start, the next one says stop.
 *
 * usage: unwind_places PLACE; without one it lists them
 */
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif
#define MARK() __asm__ volatile("int3" : : : "memory")
/* Something after a call, so that the call is no jump. */
#define KEEP() __asm__ volatile("" : : : "memory")

static volatile unsigned long sink;

/* --- binding a symbol at its first call, and callbacks from the C library ------------------ */

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static NOINLINE void place_lazy(void)
{
	int numbers[] = { 3, 1, 2, 9, 7 };
	char text[64];

	MARK();
	sink += strtoul("4711", NULL, 10);
	qsort(numbers, 5, sizeof(numbers[0]), compare);
	snprintf(text, sizeof(text), "%d %s %.3f", numbers[1], "text", 1.5);
	sink += strlen(text) + (unsigned long)atoi("12");
	MARK();
}

/* --- realigned frames ---------------------------------------------------------------------- */

static NOINLINE void touch(char *p, int n)
{
	memset(p, n, (size_t)n);
	KEEP();
}

static NOINLINE int realigned(int n, int a, int b, int c, int d, int e, int f, int g)
{
	_Alignas(128) char fixed[256];
	char *vla = alloca((size_t)(n + g));

	touch(fixed, sizeof(fixed) / 2);
	touch(vla, n);
	return fixed[a] + vla[b] + c + d + e + f;
}

static NOINLINE int realigned_small(int n)
{
	_Alignas(64) char fixed[64];

	fixed[0] = (char)n;
	__asm__ volatile("" : : "r"(fixed) : "memory");
	return fixed[0];
}

static NOINLINE void place_realigned(void)
{
	MARK();
	sink += (unsigned long)realigned(40, 1, 2, 3, 4, 5, 6, 7);
	sink += (unsigned long)realigned_small(5);
	MARK();
}

/* --- signals ------------------------------------------------------------------------------- */

static void handler(int sig)
{
	sink += (unsigned long)sig;
	if (sig == SIGUSR1)
		raise(SIGUSR2);		/* nested */
	KEEP();
}

static NOINLINE void raiser(int depth)
{
	if (depth)
		raiser(depth - 1);
	else
		raise(SIGUSR1);
	KEEP();
}

static void use_handler(int flags)
{
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = handler;
	sa.sa_flags = flags;
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR2, &sa, NULL);
}

static NOINLINE void place_signal(void)
{
	use_handler(0);
	MARK();
	raiser(3);
	MARK();
}

/* On a stack inside main's own: a handler's frames lie above those of the interrupted code. */
static NOINLINE void place_alternate(void)
{
	char memory[32768];
	stack_t st = { .ss_sp = memory, .ss_size = sizeof(memory) };

	sigaltstack(&st, NULL);
	use_handler(SA_ONSTACK);
	MARK();
	raiser(3);
	MARK();
	st.ss_flags = SS_DISABLE;
	sigaltstack(&st, NULL);
}

static void stop_in_handler(int sig)
{
	MARK();
	sink += (unsigned long)sig;
	MARK();
}

/* On memory of its own, which no copy of the normal stack holds. */
static NOINLINE void place_elsewhere(void)
{
	static char memory[65536];
	stack_t st = { .ss_sp = memory, .ss_size = sizeof(memory) };
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = stop_in_handler;
	sa.sa_flags = SA_ONSTACK;
	sigaltstack(&st, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	raiser(3);
}

/* --- jumps, processes, threads -------------------------------------------------------------- */

static jmp_buf back;

static NOINLINE __attribute__((noreturn)) void jump(void)
{
	longjmp(back, 1);
}

static NOINLINE void ends_in_call(unsigned long *p)
{
	unsigned long kept[3] = { *p, 2, 3 };

	__asm__ volatile("" : : "r"(kept) : "memory");
	jump();		/* the last instruction: its return address is in no function, or the next */
}

static NOINLINE void place_jump(void)
{
	unsigned long seed = 1;

	MARK();
	if (!setjmp(back))
		ends_in_call(&seed);
	MARK();
}

static NOINLINE void place_vfork(void)
{
	pid_t pid;

	MARK();
	pid = vfork();
	if (!pid)
		_exit(0);
	MARK();
	waitpid(pid, NULL, 0);
}

static NOINLINE void place_vdso(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	MARK();
	for (int i = 0; i < 3; i++)
		clock_gettime(CLOCK_MONOTONIC, &ts);
	MARK();
	sink += (unsigned long)ts.tv_nsec;
}

static void *thread_main(void *arg)
{
	MARK();
	place_vdso();
	return arg;
}

static NOINLINE void place_thread(void)
{
	pthread_t t;

	pthread_create(&t, NULL, thread_main, NULL);
	pthread_join(t, NULL);
}

/* --- large and deep -------------------------------------------------------------------------- */

static NOINLINE void place_large_frame(void)
{
	char large[300000];

	__asm__ volatile("" : : "r"(large) : "memory");
	MARK();
	touch(large, 3);
	MARK();
}

static NOINLINE void descend(int depth)
{
	char pad[64];

	__asm__ volatile("" : : "r"(pad) : "memory");
	if (depth) {
		descend(depth - 1);
	} else {
		MARK();
		MARK();
	}
	KEEP();
}

static NOINLINE void place_deep(void)
{
	descend(500);
}

static NOINLINE void place_too_deep(void)
{
	descend(3000);
}

static const struct place {
	const char *name;
	void (*fn)(void);
} places[] = {
	{ "lazy", place_lazy }, { "realigned", place_realigned }, { "signal", place_signal },
	{ "alternate", place_alternate }, { "elsewhere", place_elsewhere }, { "jump", place_jump },
	{ "vfork", place_vfork }, { "vdso", place_vdso }, { "thread", place_thread },
	{ "large_frame", place_large_frame }, { "deep", place_deep },
	{ "too_deep", place_too_deep },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (argc < 2) {
			puts(places[i].name);
		} else if (!strcmp(argv[1], places[i].name)) {
			places[i].fn();
			return 0;
		}
	}
	return argc < 2 ? 0 : 64;
}
