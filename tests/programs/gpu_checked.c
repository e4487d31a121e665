// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Computes with the device in between, until its standard input ends, and says what came out: the same
 * iterations give the same bits, whatever happens to the process meanwhile.
 *
 *	gpu_checked THREADS			until the end of input
 *	gpu_checked THREADS N [N …]		so many iterations in each thread
 *
 * Begins with "ready PID" and ends with "thread T N CHECKSUM" for each thread, then "interrupted N": how
 * many of its waits ended early. Each byte of input is answered by a line "made N", the launches so far.
 */
#include <errno.h>
#include <sys/select.h>
#include "tests/programs/gpu_app.h"

#define MAX_THREADS 16
#define VALUES 64

static const char module_text[] = PTX(SPIN("checked"));
static CUcontext context;
static CUmodule module;
static bool stop;
static unsigned long interrupted;

static struct worker {
	pthread_t thread;
	unsigned long iterations, wanted;
	uint64_t checksum;
} workers[MAX_THREADS];

static NOINLINE void launch_checked(CUfunction f, CUstream s)
{
	MUST(app__launch(f, s, 1000));
	KEEP_FRAME();
}

/* Vector registers hold most of it, all the time. */
static NOINLINE void compute(double v[VALUES], unsigned long n)
{
	for (int k = 0; k < 50; k++)
		for (int i = 0; i < VALUES; i++)
			v[i] = v[i] * 0.9993 + (double)(n % 977 + (unsigned long)i) / 31.0;
}

static uint64_t mix(uint64_t sum, const double v[VALUES])
{
	uint64_t bits;

	for (int i = 0; i < VALUES; i++) {
		memcpy(&bits, &v[i], sizeof(bits));
		sum = (sum ^ bits) * 0x100000001b3ull;
	}
	return sum;
}

static void take_a_rest(void)
{
	struct timeval t = { .tv_usec = 300 };

	if (select(0, NULL, NULL, NULL, &t) < 0 && errno == EINTR)
		__atomic_add_fetch(&interrupted, 1, __ATOMIC_RELAXED);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	double v[VALUES] = { 0 };
	CUdeviceptr there;
	CUfunction f;
	CUstream s;

	MUST(cuCtxSetCurrent(context));
	f = app__function(module, "spin_checked");
	s = app__stream();
	MUST(cuMemAlloc_v2(&there, sizeof(v)));
	for (unsigned long n = 0; w->wanted ? n < w->wanted : !__atomic_load_n(&stop, __ATOMIC_ACQUIRE);
	     n++) {
		compute(v, n);
		MUST(cuMemcpyHtoDAsync_v2(there, v, sizeof(v), s));
		launch_checked(f, s);
		MUST(cuMemcpyDtoHAsync_v2(v, there, sizeof(v), s));
		if (n % 8 == 7)
			MUST(cuStreamSynchronize(s));
		w->checksum = mix(w->checksum, v);
		__atomic_store_n(&w->iterations, n + 1, __ATOMIC_RELAXED);
		if (!w->wanted)
			take_a_rest();
	}
	MUST(cuStreamSynchronize(s));
	return NULL;
}

static void answer_until_end_of_input(int threads)
{
	char byte;
	ssize_t n;

	while ((n = read(STDIN_FILENO, &byte, 1)) != 0) {
		unsigned long made = 0;

		if (n < 0) {
			interrupted++;
			continue;
		}
		for (int i = 0; i < threads; i++)
			made += __atomic_load_n(&workers[i].iterations, __ATOMIC_RELAXED);
		printf("made %lu\n", made);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 0;

	if (threads < 1 || threads > MAX_THREADS || (argc > 2 && argc != 2 + threads))
		return 64;
	context = app__start();
	module = app__module(module_text);
	for (int i = 0; i < threads; i++) {
		workers[i].wanted = argc > 2 ? strtoul(argv[2 + i], NULL, 10) : 0;
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			return 8;
	}
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (argc == 2)
		answer_until_end_of_input(threads);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (int i = 0; i < threads; i++) {
		pthread_join(workers[i].thread, NULL);
		printf("thread %d %lu %016llx\n", i, workers[i].iterations,
		       (unsigned long long)workers[i].checksum);
	}
	printf("interrupted %lu\n", interrupted);
	return app_failures != 0;
}
