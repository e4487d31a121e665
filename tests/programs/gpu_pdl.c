// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Chains of launches that may overlap (programmatic dependent launch), between plain launches. The
 * program brackets each chain as a whole with events of its own; anything put between two members
 * takes their overlap away, which shows in "kept": how many chains were shorter than the sum of
 * their members.
 *
 *	gpu_pdl [CHAINS] [LENGTH] [NS]	default 50 chains of 8 launches, 100000 ns each
 *
 * On a real device kernels must let their successors begin early for that; these do not, so there
 * "kept" is 0 and only the numbers of launches count.
 */
#include "tests/programs/gpu_app.h"

enum { HEAD, MEMBER, PLAIN, NR_CHAINS };
static const char module_text[] = PTX(SPIN("head") SPIN("member") SPIN("plain"));
static struct account acc[NR_CHAINS] = {
	[HEAD] = { "main;chained;launch_head", "spin_head", 0, 0 },
	[MEMBER] = { "main;chained;launch_dependent", "spin_member", 0, 0 },
	[PLAIN] = { "main;launch_plain", "spin_plain", 0, 0 },
};
static CUfunction head, member, plain;
static CUstream stream;
static uint64_t unit = 100000;

static NOINLINE void launch_head(void)
{
	account__add(&acc[HEAD], app__launch(head, stream, unit), unit);
	KEEP_FRAME();
}

static NOINLINE void launch_dependent(void)
{
	CUlaunchAttribute a = { .id = CU_ATTR_PDL, .value.allowed = 1 };
	CUlaunchConfig c = { 1, 1, 1, 32, 1, 1, 0, stream, &a, 1 };
	void *params[] = { &unit };

	account__add(&acc[MEMBER], cuLaunchKernelEx(&c, member, params, NULL), unit);
	KEEP_FRAME();
}

static NOINLINE void launch_plain(void)
{
	account__add(&acc[PLAIN], app__launch(plain, stream, unit), unit);
	KEEP_FRAME();
}

static NOINLINE float chained(int length, CUevent e[2])
{
	float ms = 0;

	MUST(cuEventRecord(e[0], stream));
	launch_head();
	for (int i = 1; i < length; i++)
		launch_dependent();
	MUST(cuEventRecord(e[1], stream));
	MUST(cuEventSynchronize(e[1]));
	MUST(cuEventElapsedTime_v2(&ms, e[0], e[1]));
	KEEP_FRAME();
	return ms;
}

int main(int argc, char **argv)
{
	int chains = argc > 1 ? atoi(argv[1]) : 50, length = argc > 2 ? atoi(argv[2]) : 8, kept = 0;
	CUevent e[2];
	CUmodule m;

	if (argc > 3)
		unit = strtoull(argv[3], NULL, 10);
	app__start();
	m = app__module(module_text);
	head = app__function(m, "spin_head");
	member = app__function(m, "spin_member");
	plain = app__function(m, "spin_plain");
	stream = app__stream();
	for (int i = 0; i < 2; i++)
		MUST(cuEventCreate(&e[i], 0));
	for (int i = 0; i < chains; i++) {
		double ns = (double)chained(length, e) * 1e6;

		kept += ns < 0.9 * (double)unit * length;
		launch_plain();
	}
	MUST(cuCtxSynchronize());
	printf("kept %d of %d\n", kept, chains);
	account__print(acc, NR_CHAINS);
	account__print_total(acc, NR_CHAINS);
	return app_failures != 0;
}
