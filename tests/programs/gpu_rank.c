// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One of several workers: NUMBER tells it its device and how much it does.
 *
 *	gpu_rank NUMBER
 *
 * 40 (NUMBER + 1) launches of NUMBER + 1 us, by turns in as many streams, and NUMBER sets of memory. It
 * prints "worker NUMBER PID DEVICE STREAMS LAUNCHES COPIES NS", NS of the launches and sets.
 */
#include "tests/programs/gpu_app.h"

#define EACH 40
#define SET_BYTES 8000		/* 1 us, and a nanosecond for 8 of them */
#define MAX_STREAMS 8

static CUstream streams[MAX_STREAMS];

static NOINLINE void launch(CUfunction f, int nr, int i)
{
	MUST(app__launch(f, streams[i % nr], 1000 * (uint64_t)nr));
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	int number = argc > 1 ? atoi(argv[1]) % MAX_STREAMS : 0, nr = number + 1, count, i;
	CUdeviceptr memory;
	CUfunction f;
	CUcontext c;
	CUdevice d;

	MUST(cuInit(0));
	MUST(cuDeviceGetCount(&count));
	MUST(cuDeviceGet(&d, number % count));
	MUST(cuDevicePrimaryCtxRetain(&c, d));
	MUST(cuCtxSetCurrent(c));
	for (i = 0; i < nr; i++)
		streams[i] = app__stream();
	f = app__function(app__module(PTX(SPIN("step"))), "spin_step");
	MUST(cuMemAlloc_v2(&memory, SET_BYTES));
	for (i = 0; i < EACH * nr; i++)
		launch(f, nr, i);
	for (i = 0; i < number; i++)
		MUST(cuMemsetD8Async(memory, 0, SET_BYTES, streams[0]));
	MUST(cuCtxSynchronize());
	printf("worker %d %d %d %d %d %d %d\n", number, (int)getpid(), d, nr, EACH * nr, number,
	       EACH * nr * nr * 1000 + number * (1000 + SET_BYTES / 8));
	/* Workers are there for longer than it takes to look at them. */
	fflush(stdout);
	usleep(300000);
	return 0;
}
