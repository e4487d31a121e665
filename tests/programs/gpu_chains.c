// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Launches from call chains that are alike in part: one leaf under several callers, one caller with
 * several leaves, recursion, a call through libc, every launch entry point.
 *
 *	gpu_chains [ROUNDS] [NS]	default 100 rounds; NS scales the kernels' lengths (20000)
 */
#include "tests/programs/gpu_app.h"

enum { TRAIN_SHARED, EVAL_SHARED, TRAIN_OWN, EVAL_OWN, RECURSE_1, RECURSE_3, SORTED,
       BY_EX, BY_COOPERATIVE, BY_OLD, BY_DEFAULT_STREAM, NR_CHAINS };
#define K_SHARED "spin_shared"
static struct account acc[NR_CHAINS] = {
	[TRAIN_SHARED] = { "main;train;layer;shared_leaf", K_SHARED, 0, 0 },
	[EVAL_SHARED] = { "main;evaluate;layer;shared_leaf", K_SHARED, 0, 0 },
	[TRAIN_OWN] = { "main;train;own_leaf", "spin_train", 0, 0 },
	[EVAL_OWN] = { "main;evaluate;own_leaf", "spin_evaluate", 0, 0 },
	[RECURSE_1] = { "main;recurse;recurse_end", "spin_recurse", 0, 0 },
	[RECURSE_3] = { "main;recurse;recurse;recurse;recurse_end", "spin_recurse", 0, 0 },
	[SORTED] = { "main;sorted;*;compare", "spin_compare", 0, 0 },
	[BY_EX] = { "main;entries;by_ex", "spin_entry", 0, 0 },
	[BY_COOPERATIVE] = { "main;entries;by_cooperative", "spin_entry", 0, 0 },
	[BY_OLD] = { "main;entries;by_old", "spin_entry", 0, 0 },
	[BY_DEFAULT_STREAM] = { "main;entries;by_default_stream", "spin_entry", 0, 0 },
};

static const char module_text[] = PTX(SPIN("shared") SPIN("train") SPIN("evaluate") SPIN("recurse")
				      SPIN("compare") SPIN("entry"));
static CUstream stream;
static CUfunction shared, train_kernel, evaluate_kernel, recurse_kernel, compare_kernel, entry;
static uint64_t unit = 20000;

static NOINLINE void shared_leaf(int chain)
{
	account__add(&acc[chain], app__launch(shared, stream, unit), unit);
	KEEP_FRAME();
}

static NOINLINE void layer(int chain)
{
	shared_leaf(chain);
	KEEP_FRAME();
}

static NOINLINE void own_leaf(int chain)
{
	CUfunction f = chain == TRAIN_OWN ? train_kernel : evaluate_kernel;
	uint64_t ns = chain == TRAIN_OWN ? unit * 3 : unit * 2;

	account__add(&acc[chain], app__launch(f, stream, ns), ns);
	KEEP_FRAME();
}

static NOINLINE void train(void)
{
	layer(TRAIN_SHARED);
	layer(TRAIN_SHARED);
	own_leaf(TRAIN_OWN);
	KEEP_FRAME();
}

static NOINLINE void evaluate(void)
{
	layer(EVAL_SHARED);
	own_leaf(EVAL_OWN);
	KEEP_FRAME();
}

static NOINLINE void recurse_end(int chain)
{
	account__add(&acc[chain], app__launch(recurse_kernel, stream, unit / 2), unit / 2);
	KEEP_FRAME();
}

static NOINLINE void recurse(int depth, int chain)
{
	if (depth > 1)
		recurse(depth - 1, chain);
	else
		recurse_end(chain);
	KEEP_FRAME();
}

static NOINLINE int compare(const void *a, const void *b)
{
	int order = *(const int *)a - *(const int *)b;

	account__add(&acc[SORTED], app__launch(compare_kernel, stream, unit), unit);
	KEEP_FRAME();
	return order;
}

static NOINLINE void sorted(void)
{
	int pair[2] = { 2, 1 };

	qsort(pair, 2, sizeof(*pair), compare);	/* one comparison */
	KEEP_FRAME();
}

static NOINLINE void by_ex(uint64_t ns)
{
	CUlaunchConfig c = { 2, 1, 1, 64, 1, 1, 0, stream, NULL, 0 };
	void *params[] = { &ns };

	account__add(&acc[BY_EX], cuLaunchKernelEx(&c, entry, params, NULL), ns);
	KEEP_FRAME();
}

static NOINLINE void by_cooperative(uint64_t ns)
{
	void *params[] = { &ns };

	account__add(&acc[BY_COOPERATIVE],
		     cuLaunchCooperativeKernel(entry, 1, 2, 1, 64, 1, 1, 0, stream, params), ns);
	KEEP_FRAME();
}

static NOINLINE void by_old(uint64_t ns)
{
	CUresult r = cuFuncSetBlockShape(entry, 32, 1, 1);

	if (!r)
		r = cuParamSetSize(entry, sizeof(ns));
	if (!r)
		r = cuParamSetv(entry, 0, &ns, sizeof(ns));
	if (!r)
		r = cuLaunchGridAsync(entry, 1, 1, stream);
	account__add(&acc[BY_OLD], r, ns);
	KEEP_FRAME();
}

static NOINLINE void by_default_stream(uint64_t ns)
{
	account__add(&acc[BY_DEFAULT_STREAM], app__launch(entry, NULL, ns), ns);
	KEEP_FRAME();
}

static NOINLINE void entries(void)
{
	by_ex(unit);
	by_cooperative(unit * 2);
	by_old(unit * 3);
	by_default_stream(unit * 4);
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 100;
	CUmodule m;

	if (argc > 2)
		unit = strtoull(argv[2], NULL, 10);
	app__start();
	m = app__module(module_text);
	shared = app__function(m, K_SHARED);
	train_kernel = app__function(m, "spin_train");
	evaluate_kernel = app__function(m, "spin_evaluate");
	recurse_kernel = app__function(m, "spin_recurse");
	compare_kernel = app__function(m, "spin_compare");
	entry = app__function(m, "spin_entry");
	stream = app__stream();
	for (long i = 0; i < rounds; i++) {
		train();
		evaluate();
		recurse(1, RECURSE_1);
		recurse(3, RECURSE_3);
		sorted();
		entries();
		if (i % 16 == 15)
			MUST(cuCtxSynchronize());
	}
	MUST(cuCtxSynchronize());
	account__print(acc, NR_CHAINS);
	account__print_total(acc, NR_CHAINS);
	return app_failures != 0;
}
