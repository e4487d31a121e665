// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Launches at a pace until its standard input ends, then prints its account: for tests in which
 * something happens to it, or to whoever looks on, meanwhile.
 *
 *	gpu_until [THREADS] [RATE] [NS]		default 2 threads, 2000 launches a second in all
 *
 * Begins with the line "ready PID", when every thread has launched once. Each byte of input is
 * answered by a line "made N", the launches so far; with an 'f' it first puts a filter over all its
 * threads that kills it when it opens anything, with a 'c' it closes all descriptors but the
 * standard ones, with an 'F' it forks a child that ends at once, with an 'x' it executes itself and begins
 * anew. With RATE 0 as fast as it can; every thread waits for its stream after 64 launches.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/programs/gpu_app.h"

#define MAX_THREADS 16

static const char module_text[] = PTX(SPIN("even") SPIN("odd"));
static CUcontext context;
static CUmodule module;
static uint64_t unit = 20000;
static long pause_us;
static bool stop;
static pthread_barrier_t all_launched;
static struct account acc[MAX_THREADS];

static NOINLINE void launch_even(CUfunction f, CUstream s, struct account *a)
{
	account__add(a, app__launch(f, s, unit), unit);
	KEEP_FRAME();
}

static NOINLINE void launch_odd(CUfunction f, CUstream s, struct account *a)
{
	account__add(a, app__launch(f, s, unit * 2), unit * 2);
	KEEP_FRAME();
}

static NOINLINE void *steady(void *arg)
{
	struct account *a = arg;
	bool odd = (a - acc) & 1;
	CUfunction f;
	CUstream s;

	MUST(cuCtxSetCurrent(context));
	f = app__function(module, odd ? "spin_odd" : "spin_even");
	s = app__stream();
	a->kernel = odd ? "spin_odd" : "spin_even";
	a->path = odd ? "steady;launch_odd" : "steady;launch_even";
	do {
		if (odd)
			launch_odd(f, s, a);
		else
			launch_even(f, s, a);
		if (a->launches == 1)
			pthread_barrier_wait(&all_launched);
		if (a->launches % 64 == 63)
			MUST(cuStreamSynchronize(s));
		if (pause_us)
			usleep((useconds_t)pause_us);
	} while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE));
	MUST(cuStreamSynchronize(s));
	return NULL;
}

static void confine(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_open, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter))
		exit(8);
}

static void close_all(void)
{
	for (int fd = 3; fd < 4096; fd++)
		close(fd);
}

static void fork_child(void)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	if (child < 0 || waitpid(child, NULL, 0) != child)
		app_failures++;
}

static void answer_until_end_of_input(int threads, char **argv)
{
	char byte;

	while (read(STDIN_FILENO, &byte, 1) > 0) {
		unsigned long made = 0;

		if (byte == 'f')
			confine();
		else if (byte == 'c')
			close_all();
		else if (byte == 'F')
			fork_child();
		else if (byte == 'x')
			execv("/proc/self/exe", argv);
		for (int i = 0; i < threads; i++)
			made += __atomic_load_n(&acc[i].launches, __ATOMIC_RELAXED);
		printf("made %lu\n", made);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 2;
	long rate = argc > 2 ? atol(argv[2]) : 2000;
	pthread_t t[MAX_THREADS];

	if (threads < 1 || threads > MAX_THREADS || rate < 0)
		return 64;
	if (argc > 3)
		unit = strtoull(argv[3], NULL, 10);
	if (rate)
		pause_us = 1000000l * threads / rate;
	context = app__start();
	module = app__module(module_text);
	pthread_barrier_init(&all_launched, NULL, (unsigned)threads + 1);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, steady, &acc[i]))
			return 8;
	pthread_barrier_wait(&all_launched);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	answer_until_end_of_input(threads, argv);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	account__print(acc, (size_t)threads);
	account__print_total(acc, (size_t)threads);
	return app_failures != 0;
}
