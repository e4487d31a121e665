// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One thread queues COUNT launches behind a wait for a value in memory and then releases them
 * itself. A stream's queue has room for about 1,020 entries on a real device (STANDIN_QUEUE=1022 on
 * the virtual one); a guest that takes entries of its own makes this program hang: an alarm ends it
 * with status 7.
 *
 *	gpu_hold [COUNT] [ROUNDS] [NS] [BEFORE] [LATER] [THREADS]	default 800 launches, 3 rounds
 *
 * BEFORE launches are made and waited for before each round; from its hundredth launch on each takes
 * LATER ns. With 2 THREADS each makes half of a round's launches, at the same time, into the same stream.
 */
#include <signal.h>
#include "tests/programs/gpu_app.h"

static const char module_text[] = PTX(SPIN("held"));
static struct account acc[] = {
	{ "main;queue_up;launch_held", "spin_held", 0, 0 },
	{ "beside;queue_up;launch_held", "spin_held", 0, 0 },
};
static CUfunction held;
static CUcontext context;
static CUstream stream;
static long count = 800;
static uint64_t unit = 2000, later;

static void too_long(int sig)
{
	static const char text[] = "the queue is full\n";

	(void)sig;
	if (write(2, text, sizeof(text) - 1) < 0)
		_exit(8);
	_exit(7);
}

static NOINLINE void launch_held(struct account *a, uint64_t ns)
{
	account__add(a, app__launch(held, stream, ns), ns);
	KEEP_FRAME();
}

static NOINLINE void queue_up(struct account *a, long n)
{
	for (long i = 0; i < n; i++)
		launch_held(a, i < 100 ? unit : later);
	KEEP_FRAME();
}

static void *beside(void *arg)
{
	MUST(cuCtxSetCurrent(context));
	queue_up(&acc[1], count - count / 2);
	KEEP_FRAME();
	return arg;
}

static inline __attribute__((always_inline)) void one_round(bool two)
{
	pthread_t thread;

	if (two)
		pthread_create(&thread, NULL, beside, NULL);
	queue_up(&acc[0], two ? count / 2 : count);
	if (two)
		pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	long rounds = argc > 2 ? atol(argv[2]) : 3, before = argc > 4 ? atol(argv[4]) : 0;
	bool two = argc > 6 && atoi(argv[6]) == 2;
	CUdeviceptr flag;
	unsigned *word;
	void *p;

	if (argc > 1)
		count = atol(argv[1]);
	if (argc > 3)
		unit = strtoull(argv[3], NULL, 10);
	later = argc > 5 ? strtoull(argv[5], NULL, 10) : unit;
	context = app__start();
	held = app__function(app__module(module_text), "spin_held");
	stream = app__stream();
	MUST(cuMemAllocHost_v2(&p, 4096));
	MUST(cuMemHostGetDevicePointer_v2(&flag, p, 0));
	word = p;
	__atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
	signal(SIGALRM, too_long);
	for (long i = 1; i <= rounds; i++) {
		alarm(10);
		queue_up(&acc[0], before);
		MUST(cuStreamSynchronize(stream));
		MUST(cuStreamWaitValue32_v2(stream, flag, (unsigned)i, CU_WAIT_GEQ));
		one_round(two);
		__atomic_store_n(word, (unsigned)i, __ATOMIC_SEQ_CST);
		MUST(cuStreamSynchronize(stream));
	}
	alarm(0);
	account__print(acc, two ? 2 : 1);
	account__print_total(acc, 2);
	return app_failures != 0;
}
