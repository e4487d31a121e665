// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One thread queues COUNT launches behind a wait for a value in memory and then releases them
 * itself. A stream's queue has room for about 1,020 entries on a real device (STANDIN_QUEUE=1022 on
 * the virtual one); a guest that takes entries of its own makes this program hang: an alarm ends it
 * with status 7.
 *
 *	gpu_hold [COUNT] [ROUNDS] [NS] [BEFORE] [LATER]	default 800 launches, 3 rounds
 *
 * BEFORE launches are made and waited for before each round; from its hundredth launch on each takes
 * LATER ns.
 */
#include <signal.h>
#include "tests/programs/gpu_app.h"

static const char module_text[] = PTX(SPIN("held"));
static struct account acc[] = { { "main;queue_up;launch_held", "spin_held", 0, 0 } };
static CUfunction held;
static uint64_t unit = 2000, later;

static void too_long(int sig)
{
	static const char text[] = "the queue is full\n";

	(void)sig;
	if (write(2, text, sizeof(text) - 1) < 0)
		_exit(8);
	_exit(7);
}

static NOINLINE void launch_held(CUstream s, uint64_t ns)
{
	account__add(&acc[0], app__launch(held, s, ns), ns);
	KEEP_FRAME();
}

static NOINLINE void queue_up(CUstream s, long n)
{
	for (long i = 0; i < n; i++)
		launch_held(s, i < 100 ? unit : later);
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 800, rounds = argc > 2 ? atol(argv[2]) : 3;
	long before = argc > 4 ? atol(argv[4]) : 0;
	CUdeviceptr flag;
	unsigned *word;
	CUstream s;
	void *p;

	if (argc > 3)
		unit = strtoull(argv[3], NULL, 10);
	later = argc > 5 ? strtoull(argv[5], NULL, 10) : unit;
	app__start();
	held = app__function(app__module(module_text), "spin_held");
	s = app__stream();
	MUST(cuMemAllocHost_v2(&p, 4096));
	MUST(cuMemHostGetDevicePointer_v2(&flag, p, 0));
	word = p;
	__atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
	signal(SIGALRM, too_long);
	for (long i = 1; i <= rounds; i++) {
		alarm(10);
		queue_up(s, before);
		MUST(cuStreamSynchronize(s));
		MUST(cuStreamWaitValue32_v2(s, flag, (unsigned)i, CU_WAIT_GEQ));
		queue_up(s, count);
		__atomic_store_n(word, (unsigned)i, __ATOMIC_SEQ_CST);
		MUST(cuStreamSynchronize(s));
	}
	alarm(0);
	account__print(acc, 1);
	account__print_total(acc, 1);
	return app_failures != 0;
}
