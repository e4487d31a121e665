// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Contexts, streams and modules come and go, and their handles come again: after each round another
 * kernel has the handle that the last one had, in a context and on a stream with old addresses.
 *
 *	gpu_contexts [ROUNDS] [NS]	default 40; every fourth round resets the primary context
 */
#include "tests/programs/gpu_app.h"

enum { EVEN, ODD, PRIMARY, NR_CHAINS };
static struct account acc[NR_CHAINS] = {
	[EVEN] = { "main;one_round;launch_some", "spin_even", 0, 0 },
	[ODD] = { "main;one_round;launch_some", "spin_odd", 0, 0 },
	[PRIMARY] = { "main;one_reset;launch_some", "spin_primary", 0, 0 },
};
static uint64_t unit = 20000;
static unsigned long same_handle, same_context, same_stream;

static NOINLINE void launch_some(CUfunction f, CUstream s, struct account *a)
{
	for (int i = 0; i < 8; i++)
		account__add(a, app__launch(f, s, unit), unit);
	KEEP_FRAME();
}

static NOINLINE void one_round(int odd)
{
	static CUcontext last_context;
	static CUfunction last_function;
	static CUstream last_stream;
	CUcontext c;
	CUmodule m;
	CUfunction f;
	CUstream s;

	MUST(cuCtxCreate_v2(&c, 0, 0));
	m = app__module(odd ? PTX(SPIN("odd")) : PTX(SPIN("even")));
	f = app__function(m, odd ? "spin_odd" : "spin_even");
	s = app__stream();
	same_context += c == last_context;
	same_handle += f == last_function;
	same_stream += s == last_stream;
	last_context = c;
	last_function = f;
	last_stream = s;
	launch_some(f, s, &acc[odd ? ODD : EVEN]);
	if (odd)	/* destroyed with work under way, else after it */
		MUST(cuStreamSynchronize(s));
	MUST(cuStreamDestroy_v2(s));
	MUST(cuModuleUnload(m));
	MUST(cuCtxDestroy_v2(c));
}

static NOINLINE void one_reset(void)
{
	CUcontext c;
	CUmodule m;
	CUstream s;

	MUST(cuDevicePrimaryCtxRetain(&c, 0));
	MUST(cuCtxPushCurrent_v2(c));
	m = app__module(PTX(SPIN("primary")));
	s = app__stream();
	launch_some(app__function(m, "spin_primary"), s, &acc[PRIMARY]);
	MUST(cuStreamSynchronize(s));
	MUST(cuCtxPopCurrent_v2(&c));
	MUST(cuDevicePrimaryCtxReset_v2(0));
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 40;

	if (argc > 2)
		unit = strtoull(argv[2], NULL, 10);
	MUST(cuInit(0));
	for (int i = 0; i < rounds; i++) {
		one_round(i & 1);
		if (i % 4 == 3)
			one_reset();
	}
	printf("same %lu %lu %lu\n", same_context, same_handle, same_stream);
	account__print(acc, NR_CHAINS);
	account__print_total(acc, NR_CHAINS);
	return app_failures != 0;
}
