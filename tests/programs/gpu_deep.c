// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Launches from a given depth of calls and times itself: for the cost of a launch and of a frame.
 *
 *	gpu_deep DEPTH LAUNCHES		prints "ns NS-PER-LAUNCH" after the lines of gpu_app.h
 */
#include "tests/programs/gpu_app.h"

static struct account acc = { "main;descend;*", "spin_deep", 0, 0 };
static const char module_text[] = PTX(SPIN("deep"));
static CUfunction kernel;
static CUstream stream;

/* A frame of an ordinary size; the volatile array keeps the levels from being merged. */
static NOINLINE void descend(int depth)
{
	volatile char room[48];

	room[depth % 48] = 1;
	if (depth > 1)
		descend(depth - 1);
	else
		account__add(&acc, app__launch(kernel, stream, 1000), 1000);
	(void)room[0];
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	int depth = argc > 1 ? atoi(argv[1]) : 10;
	long launches = argc > 2 ? atol(argv[2]) : 100000, i;
	int64_t start;

	if (depth < 1 || launches < 1)
		return 64;
	app__start();
	kernel = app__function(app__module(module_text), "spin_deep");
	stream = app__stream();
	for (i = 0; i < 1000; i++)
		descend(depth);
	start = app__now();
	for (i = 0; i < launches; i++)
		descend(depth);
	start = app__now() - start;
	MUST(cuStreamSynchronize(stream));
	account__print(&acc, 1);
	account__print_total(&acc, 1);
	printf("ns %.1f\n", (double)start / (double)launches);
	return 0;
}
