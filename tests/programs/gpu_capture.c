// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Captures in every mode, on a blocking and on a non-blocking stream, while another thread launches
 * on its own stream all the time; replays each graph. A guest that does anything forbidden while
 * capturing shows as a failure, a wrong number of nodes or a broken capture.
 *
 *	gpu_capture [ROUNDS] [REPLAYS] [NS]	default 20 rounds, 3 replays each
 */
#include "tests/programs/gpu_app.h"

#define NODES 5
enum { BESIDE, LIVE, NR_CHAINS };

static const char module_text[] = PTX(SPIN("node") SPIN("side") SPIN("beside") SPIN("live"));
static struct account acc[NR_CHAINS] = {
	[BESIDE] = { "beside;launch_beside", "spin_beside", 0, 0 },
	[LIVE] = { "main;one_capture;launch_live", "spin_live", 0, 0 },
};
static const char *const mode_names[] = { "global", "thread", "relaxed" };
static unsigned long captures[3][2], replays[3];
static CUcontext context;
static CUfunction node, side, beside_kernel, live;
static uint64_t unit = 20000;
static bool stop;
static unsigned long turns;

static NOINLINE void launch_beside(CUstream s)
{
	account__add(&acc[BESIDE], app__launch(beside_kernel, s, unit), unit);
	KEEP_FRAME();
}

static NOINLINE void *beside(void *arg)
{
	CUstream s;

	(void)arg;
	MUST(cuCtxSetCurrent(context));
	s = app__stream();
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		launch_beside(s);
		__atomic_add_fetch(&turns, 1, __ATOMIC_RELEASE);
		usleep(100);
	}
	return NULL;
}

static void check(CUresult r, const char *what)
{
	if (!r)
		return;
	fprintf(stderr, "%s: %d\n", what, r);
	__atomic_add_fetch(&app_failures, 1, __ATOMIC_RELAXED);
}
#define CHECK(call) check(call, #call)

static NOINLINE void launch_node(CUfunction f, CUstream s)
{
	CHECK(app__launch(f, s, unit));
	KEEP_FRAME();
}

/* A side stream is forked and joined, so that two nodes run beside each other. */
static NOINLINE void record_work(CUstream s, CUstream other, CUevent fork, CUevent join)
{
	for (int k = 0; k < NODES; k++)
		launch_node(node, s);
	CHECK(cuEventRecord(fork, s));
	CHECK(cuStreamWaitEvent(other, fork, 0));
	launch_node(side, other);
	CHECK(cuEventRecord(join, other));
	CHECK(cuStreamWaitEvent(s, join, 0));
	KEEP_FRAME();
}

static NOINLINE void replay_graph(CUgraphExec x, CUstream s)
{
	CHECK(cuGraphLaunch(x, s));
	KEEP_FRAME();
}

static NOINLINE void launch_live(CUstream s)
{
	account__add(&acc[LIVE], app__launch(live, s, unit), unit);
	KEEP_FRAME();
}

/* The other thread gets to launch in the middle of the capture. */
static void let_other_thread_run(void)
{
	unsigned long before = __atomic_load_n(&turns, __ATOMIC_ACQUIRE);

	for (int i = 0; i < 10000 && __atomic_load_n(&turns, __ATOMIC_ACQUIRE) == before; i++)
		usleep(100);
}

static NOINLINE void one_capture(CUstream s, CUstream other, CUevent e[2], int mode, int blocking,
				 int times)
{
	CUgraph g = NULL;
	CUgraphExec x;
	size_t n = 0;
	CUresult r;

	CHECK(cuStreamBeginCapture_v2(s, mode));
	record_work(s, other, e[0], e[1]);
	let_other_thread_run();
	r = cuStreamEndCapture(s, &g);
	check(r, "cuStreamEndCapture");
	if (r || !g)
		return;
	captures[mode][blocking]++;
	CHECK(cuGraphGetNodes(g, NULL, &n));
	if (n != NODES + 1)
		check(-1, "the graph has another number of nodes");
	MUST(cuGraphInstantiateWithFlags(&x, g, 0));
	for (int i = 0; i < times; i++) {
		replay_graph(x, s);
		replays[mode]++;
	}
	launch_live(s);
	CHECK(cuStreamSynchronize(s));
	CHECK(cuGraphExecDestroy(x));
	CHECK(cuGraphDestroy(g));
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 20, times = argc > 2 ? atoi(argv[2]) : 3;
	CUstream s[2], other;
	CUevent e[2];
	pthread_t t;
	CUmodule m;

	if (argc > 3)
		unit = strtoull(argv[3], NULL, 10);
	context = app__start();
	m = app__module(module_text);
	node = app__function(m, "spin_node");
	side = app__function(m, "spin_side");
	beside_kernel = app__function(m, "spin_beside");
	live = app__function(m, "spin_live");
	s[0] = app__stream();
	MUST(cuStreamCreate(&s[1], 0));
	other = app__stream();
	for (int i = 0; i < 2; i++)
		MUST(cuEventCreate(&e[i], CU_EVENT_DISABLE_TIMING));
	launch_live(s[0]);	/* everything is loaded before the first capture */
	MUST(cuCtxSynchronize());
	if (pthread_create(&t, NULL, beside, NULL))
		return 8;
	let_other_thread_run();
	for (int i = 0; i < rounds; i++)
		for (int mode = 0; mode < 3; mode++)
			one_capture(s[i & 1], other, e, mode, i & 1, times);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
	MUST(cuCtxSynchronize());
	for (int mode = 0; mode < 3; mode++) {
		/* the side node runs beside nothing: it hangs on the last of the others */
		printf("captures %s %lu %lu\n", mode_names[mode], captures[mode][0],
		       captures[mode][1]);
		printf("graph main;one_capture;replay_graph %lu %d %llu\n", replays[mode],
		       NODES + 1, (unsigned long long)(replays[mode] * (NODES + 1) * unit));
	}
	/* the first launch was made by main itself */
	acc[LIVE].launches--;
	acc[LIVE].ns -= unit;
	printf("chain main;launch_live spin_live 1 %llu\n", (unsigned long long)unit);
	account__print(acc, NR_CHAINS);
	acc[LIVE].launches++;
	account__print_total(acc, NR_CHAINS);
	return app_failures != 0;
}
