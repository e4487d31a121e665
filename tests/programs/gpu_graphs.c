// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Graphs whose time is to be split among their kernels. Beside what gpu_app.h says it prints
 *
 *	inside PATH WHAT NS FROM	of the graphs launched from there: what WHAT takes in all replays
 *				together, captured FROM there; "-": nobody can know what or where
 *
 *	gpu_graphs WHAT [REPLAYS]
 *
 *	decode		kernels one by one first, then captured and replayed
 *	often		the same, each of them 300 times first
 *	stale		captured and destroyed; then made node by node, at the same addresses
 *	cold		captured and replayed, none of them launched before
 *	some		one of them launched before
 *	shapes		one kernel in two shapes, each launched before
 *	built		made node by node: kernels, a graph in it, and nodes that take no time
 *	copies		copies and sets among the kernels
 *	update		made to run other kernels, by both calls that update; then an update that fails
 *	nodes		single nodes changed: to the same kernel, to another, off
 *	sources		nodes of the graph changed, and then those of what was made of it
 *	again		destroyed and made again, at the same address, of other kernels
 *	large N		N nodes of two kernels; says on lines "took" how long each step took
 *	poor N		the same, then updated: for a capture that can't pay for reading it twice
 *	threads		four threads that make and replay their own
 */
#include "tests/programs/gpu_app.h"

/* No frames of their own. */
#define INLINE static inline __attribute__((always_inline))

enum { A, B, C, D, NR };

static const char text[] = PTX(SPIN("a") SPIN("b") SPIN("c") SPIN("d"));
static const char *const names[NR] = { "spin_a", "spin_b", "spin_c", "spin_d" };
static uint64_t lengths[NR] = { 3000, 7000, 20000, 11000 };
static CUfunction kernel[NR];
static CUcontext context;
static struct account warm[NR] = {
	{ "main;warm_up", "spin_a", 0, 0 }, { "main;warm_up", "spin_b", 0, 0 },
	{ "main;warm_up", "spin_c", 0, 0 }, { "main;warm_up", "spin_d", 0, 0 },
};
static unsigned long replays = 5;
static int capture_mode = CU_MODE_GLOBAL;

INLINE CUresult launch(int k, CUstream s, unsigned int grid, uint64_t ns)
{
	void *params[] = { &ns };

	return cuLaunchKernel(kernel[k], grid, 1, 1, 32, 1, 1, 0, s, params, NULL);
}

static NOINLINE void warm_up(CUstream s, int k, unsigned int grid, uint64_t ns)
{
	account__add(&warm[k], launch(k, s, grid, ns), ns);
	KEEP_FRAME();
}

static NOINLINE void replay(CUgraphExec x, CUstream s)
{
	MUST(cuGraphLaunch(x, s));
	KEEP_FRAME();
}

static void say_graph(const char *path, unsigned long times, int nodes, uint64_t ns)
{
	printf("graph %s %lu %d %llu\n", path, times, nodes, (unsigned long long)(times * ns));
}

#define CAPTURED "main;capture;capture_one"

static void say_inside(const char *path, const char *what, uint64_t ns, const char *from)
{
	printf("inside %s %s %llu %s\n", path, what, (unsigned long long)ns, from);
}

INLINE void replay_all(CUgraphExec x, CUstream s)
{
	for (unsigned long i = 0; i < replays; i++)
		replay(x, s);
	MUST(cuStreamSynchronize(s));
}

#define REPLAY "main;replay"	/* what lies between is part of main */

static NOINLINE void capture_one(CUstream s, int k)
{
	MUST(launch(k, s, 1, lengths[k]));
	KEEP_FRAME();
}

/* As many nodes of each kernel, one behind the other. */
static NOINLINE CUgraph capture(CUstream s, const int count[NR])
{
	CUgraph g;

	MUST(cuStreamBeginCapture_v2(s, capture_mode));
	for (int k = 0; k < NR; k++)
		for (int i = 0; i < count[k]; i++)
			capture_one(s, k);
	MUST(cuStreamEndCapture(s, &g));
	return g;
}

static CUgraphExec instantiate(CUgraph g)
{
	CUgraphExec x;

	MUST(cuGraphInstantiateWithFlags(&x, g, 0));
	return x;
}

INLINE CUgraphExec captured(CUstream s, const int count[NR])
{
	CUgraph g = capture(s, count);
	CUgraphExec x = instantiate(g);

	MUST(cuGraphDestroy(g));
	return x;
}

static int nodes_of(const int count[NR])
{
	return count[A] + count[B] + count[C] + count[D];
}

static uint64_t ns_of(const int count[NR])
{
	uint64_t ns = 0;

	for (int k = 0; k < NR; k++)
		ns += (uint64_t)count[k] * lengths[k];
	return ns;
}

/* What each takes is known: the parts are what they are. */
static void say_known(const int count[NR], const char *from)
{
	say_graph(REPLAY, replays, nodes_of(count), ns_of(count));
	for (int k = 0; k < NR; k++)
		if (count[k])
			say_inside(REPLAY, names[k], replays * (uint64_t)count[k] * lengths[k], from);
}

INLINE void warm_up_all(CUstream s, const int count[NR])
{
	for (int k = 0; k < NR; k++)
		if (count[k])
			warm_up(s, k, 1, lengths[k]);
	MUST(cuStreamSynchronize(s));
}

INLINE void decode(CUstream s)
{
	static const int count[NR] = { 4, 1, 2, 0 };
	CUgraphExec x;

	warm_up_all(s, count);
	x = captured(s, count);
	replay_all(x, s);
	say_known(count, CAPTURED);
}

INLINE void often(CUstream s)
{
	static const int count[NR] = { 4, 1, 2, 0 };
	CUgraphExec x;

	for (int i = 0; i < 300; i++)
		warm_up_all(s, count);
	x = captured(s, count);
	replay_all(x, s);
	say_known(count, CAPTURED);
}

INLINE void cold(CUstream s)
{
	static const int count[NR] = { 3, 1, 1, 0 };
	CUgraphExec x = captured(s, count);

	replay_all(x, s);
	say_graph(REPLAY, replays, 5, ns_of(count));
	say_inside(REPLAY, names[A], replays * ns_of(count) * 3 / 5, CAPTURED);
	say_inside(REPLAY, names[B], replays * ns_of(count) / 5, CAPTURED);
	say_inside(REPLAY, names[C], replays * ns_of(count) / 5, CAPTURED);
}

/* A takes 3 us by what is known, and so do the others: 4 of 6 parts are its own. */
INLINE void some(CUstream s)
{
	static const int count[NR] = { 4, 1, 1, 0 };
	CUgraphExec x;

	warm_up(s, A, 1, lengths[A]);
	MUST(cuStreamSynchronize(s));
	x = captured(s, count);
	replay_all(x, s);
	say_graph(REPLAY, replays, 6, ns_of(count));
	say_inside(REPLAY, names[A], replays * ns_of(count) * 4 / 6, CAPTURED);
	say_inside(REPLAY, names[B], replays * ns_of(count) / 6, CAPTURED);
	say_inside(REPLAY, names[C], replays * ns_of(count) / 6, CAPTURED);
}

/* One shape of A is in the graph, and takes as long as it did there; on average A takes longer. */
INLINE void shapes(CUstream s)
{
	static const int count[NR] = { 3, 1, 0, 0 };
	CUgraphExec x;

	warm_up_all(s, count);
	for (int i = 0; i < 7; i++)
		warm_up(s, A, 64, 50000);
	MUST(cuStreamSynchronize(s));
	x = captured(s, count);
	replay_all(x, s);
	say_known(count, CAPTURED);
}

static CUgraphNode add(CUgraph g, CUgraphNode after, int k)
{
	uint64_t ns = lengths[k];
	void *params[] = { &ns };
	const CUkernelNodeParams p = { .func = kernel[k], .gridX = 1, .gridY = 1, .gridZ = 1, .blockX = 32,
				       .blockY = 1, .blockZ = 1, .params = params };
	CUgraphNode n;

	MUST(cuGraphAddKernelNode_v2(&n, g, after ? &after : NULL, after != NULL, &p));
	return n;
}

INLINE void built(CUstream s)
{
	static const int count[NR] = { 2, 3, 0, 1 };
	CUgraph g, child;
	CUgraphNode n;
	CUevent e;

	warm_up_all(s, count);
	MUST(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	MUST(cuGraphCreate(&g, 0));
	MUST(cuGraphCreate(&child, 0));
	add(child, add(child, NULL, B), B);
	n = add(g, add(g, NULL, A), D);
	MUST(cuGraphAddChildGraphNode(&n, g, &n, 1, child));
	MUST(cuGraphAddEmptyNode(&n, g, &n, 1));
	MUST(cuGraphAddEventRecordNode(&n, g, &n, 1, e));
	add(g, add(g, n, A), B);
	replay_all(instantiate(g), s);
	say_graph(REPLAY, replays, 9, ns_of(count));
	for (int k = 0; k < NR; k++)
		if (count[k])
			say_inside(REPLAY, names[k], replays * (uint64_t)count[k] * lengths[k], "-");
}

INLINE void stale(CUstream s)
{
	static const int count[NR] = { 2, 0, 0, 0 };
	CUgraphNode n[2], was[2];
	CUgraph g = capture(s, count), other;
	size_t nr = 2;

	warm_up(s, A, 1, lengths[A]);
	MUST(cuStreamSynchronize(s));
	MUST(cuGraphGetNodes(g, was, &nr));
	MUST(cuGraphDestroy(g));
	MUST(cuGraphCreate(&other, 0));
	n[0] = add(other, NULL, A);
	n[1] = add(other, n[0], A);
	if (other != g || (n[0] != was[0] && n[0] != was[1]) || (n[1] != was[0] && n[1] != was[1]))
		fprintf(stderr, "another address\n");
	replay_all(instantiate(other), s);
	say_known(count, "-");
}

/* What a copy in a graph takes isn't known by what others take: a mean part, a third here. */
INLINE void copies(CUstream s)
{
	const uint64_t ns = lengths[A] + 2 * (1000 + 8000 / 8);
	CUdeviceptr d;
	CUgraph g;

	MUST(cuMemAlloc_v2(&d, 8000));
	warm_up(s, A, 1, lengths[A]);
	MUST(cuStreamSynchronize(s));
	MUST(cuStreamBeginCapture_v2(s, CU_MODE_GLOBAL));
	MUST(cuMemsetD8Async(d, 1, 8000, s));
	capture_one(s, A);
	MUST(cuMemcpyDtoDAsync_v2(d, d, 8000, s));
	MUST(cuStreamEndCapture(s, &g));
	replay_all(instantiate(g), s);
	say_graph(REPLAY, replays, 3, ns);
	say_inside(REPLAY, names[A], replays * ns / 3, "main;capture_one");
	say_inside(REPLAY, "memset", replays * ns / 3, "main");
	say_inside(REPLAY, "memcpy", replays * ns / 3, "main");
}

INLINE void update(CUstream s)
{
	static const int first[NR] = { 2, 1, 0, 0 }, second[NR] = { 0, 1, 2, 0 }, third[NR] = { 0, 0, 0, 3 },
			 other[NR] = { 1, 0, 0, 0 };
	static const int *const count[] = { first, second, third };
	CUgraphExec x = captured(s, first);
	CUgraphUpdateInfo info;
	CUgraphNode bad;
	int result;

	for (int k = 0; k < NR; k++)
		warm_up(s, k, 1, lengths[k]);
	replay_all(x, s);
	MUST(cuGraphExecUpdate_v2(x, capture(s, second), &info));
	replay_all(x, s);
	MUST(cuGraphExecUpdate(x, capture(s, third), &bad, &result));
	replay_all(x, s);
	for (int i = 0; i < 3; i++)
		say_known(count[i], CAPTURED);
	if (cuGraphExecUpdate_v2(x, capture(s, other), &info) != CU_GRAPH_EXEC_UPDATE_FAILURE)
		app_failures++;
	replay_all(x, s);
	say_graph(REPLAY, replays, 3, ns_of(third));
	say_inside(REPLAY, "-", replays * ns_of(third), "-");
}

static CUkernelNodeParams params_of(int k, void **params)
{
	return (CUkernelNodeParams){ .func = kernel[k], .gridX = 1, .gridY = 1, .gridZ = 1, .blockX = 32,
				     .blockY = 1, .blockZ = 1, .params = params };
}

static void say_unknown(int nodes, uint64_t ns)
{
	say_graph(REPLAY, replays, nodes, ns);
	say_inside(REPLAY, "-", replays * ns, "-");
}

INLINE void nodes(CUstream s)
{
	static const int count[NR] = { 1, 1, 0, 0 };
	uint64_t length = lengths[A];
	void *params[] = { &length };
	CUkernelNodeParams p = params_of(A, params);
	CUgraphNodeParams any = { .type = CU_NODE_KERNEL };
	CUgraphNode a, b;
	CUgraphExec x;
	CUgraph g;

	warm_up_all(s, count);
	MUST(cuGraphCreate(&g, 0));
	a = add(g, NULL, A);
	b = add(g, a, B);
	x = instantiate(g);
	MUST(cuGraphExecKernelNodeSetParams_v2(x, a, &p));
	MUST(cuGraphNodeSetEnabled(x, b, 1));
	replay_all(x, s);
	say_known(count, "-");
	MUST(cuGraphExecKernelNodeSetParams(x, a, &p));
	any.kernel = p;
	MUST(cuGraphExecNodeSetParams(x, a, &any));
	replay_all(x, s);
	say_known(count, "-");
	p = params_of(B, params);
	MUST(cuGraphExecKernelNodeSetParams_v2(x, a, &p));
	replay_all(x, s);
	say_unknown(2, ns_of(count));
	/* It has had another meanwhile: what is left of that isn't known. */
	p = params_of(A, params);
	MUST(cuGraphExecKernelNodeSetParams_v2(x, a, &p));
	replay_all(x, s);
	say_unknown(2, ns_of(count));
	x = instantiate(g);
	MUST(cuGraphNodeSetEnabled(x, b, 0));
	replay_all(x, s);
	say_unknown(2, lengths[A]);
}

INLINE void sources(CUstream s)
{
	static const int count[NR] = { 1, 1, 0, 0 };
	uint64_t length = lengths[A];
	void *params[] = { &length };
	CUkernelNodeParams p = params_of(B, params);
	CUgraphNodeParams any = { .type = CU_NODE_KERNEL };
	CUgraphExec x, y, z;
	CUgraphNode a;
	CUgraph g;

	warm_up_all(s, count);
	MUST(cuGraphCreate(&g, 0));
	a = add(g, NULL, A);
	add(g, a, B);
	x = instantiate(g);
	y = instantiate(g);
	MUST(cuGraphKernelNodeSetParams_v2(a, &p));
	/* It runs what it did. */
	replay_all(x, s);
	say_known(count, "-");
	/* Its node has got the kernel that the graph's has by now, and had another when that was read. */
	MUST(cuGraphExecKernelNodeSetParams_v2(x, a, &p));
	replay_all(x, s);
	say_unknown(2, ns_of(count));
	z = instantiate(g);
	MUST(cuGraphExecKernelNodeSetParams_v2(z, a, &p));
	replay_all(z, s);
	say_graph(REPLAY, replays, 2, ns_of(count));
	say_inside(REPLAY, names[B], replays * ns_of(count), "-");
	p = params_of(A, params);
	MUST(cuGraphKernelNodeSetParams(a, &p));
	any.kernel = params_of(B, params);
	MUST(cuGraphNodeSetParams(a, &any));
	replay_all(y, s);
	say_known(count, "-");
	MUST(cuGraphExecNodeSetParams(y, a, &any));
	replay_all(y, s);
	say_unknown(2, ns_of(count));
}

INLINE void again(CUstream s)
{
	static const int first[NR] = { 2, 1, 0, 0 }, second[NR] = { 0, 0, 1, 1 };
	uintptr_t was = 0;
	CUgraphExec x;

	for (int k = 0; k < NR; k++)
		warm_up(s, k, 1, lengths[k]);
	for (int i = 0; i < 3; i++) {
		const int *count = i & 1 ? second : first;

		x = captured(s, count);
		if (i && (uintptr_t)x != was)
			fprintf(stderr, "another address\n");
		was = (uintptr_t)x;
		replay_all(x, s);
		say_known(count, CAPTURED);
		MUST(cuGraphExecDestroy(x));
	}
}

/* Since the step before. */
static void say_took(const char *what, int nr, int64_t *begun)
{
	printf("took %lld us to %s %d nodes\n", (long long)(app__now() - *begun) / 1000, what, nr);
	*begun = app__now();
}

INLINE void large(CUstream s, int nr, bool known)
{
	const int count[NR] = { nr - 1, 1, 0, 0 };
	CUgraphUpdateInfo info;
	CUgraphExec x;
	int64_t begun;
	CUgraph g;

	lengths[A] = 100;	/* else it is longer than can be told to the nanosecond */
	warm_up_all(s, count);
	begun = app__now();
	g = capture(s, count);
	say_took("capture", nr, &begun);
	x = instantiate(g);
	say_took("instantiate", nr, &begun);
	if (known) {
		MUST(cuGraphExecUpdate_v2(x, g, &info));
		say_took("update", nr, &begun);
	}
	MUST(cuGraphDestroy(g));
	say_took("destroy", nr, &begun);
	replay_all(x, s);
	if (known)
		say_known(count, CAPTURED);
	else
		say_unknown(nr, ns_of(count));
}

INLINE void poor(CUstream s, int nr)
{
	const int count[NR] = { nr - 1, 1, 0, 0 };
	CUgraphUpdateInfo info;
	CUgraphExec x;
	CUgraph g;

	replays = 2;
	lengths[A] = 100;
	warm_up_all(s, count);
	g = capture(s, count);
	x = instantiate(g);
	replay_all(x, s);
	say_known(count, CAPTURED);
	MUST(cuGraphExecUpdate_v2(x, g, &info));
	replay_all(x, s);
	say_unknown(nr, ns_of(count));
}

#define TURNS 50

static NOINLINE void *one_thread(void *arg)
{
	int k = (int)(intptr_t)arg, count[NR] = { 0 };
	CUstream s;

	MUST(cuCtxSetCurrent(context));
	s = app__stream();
	for (int i = 0; i < TURNS; i++) {
		CUgraphExec x;

		count[k] = 1 + i % 3;
		x = captured(s, count);
		replay(x, s);
		MUST(cuStreamSynchronize(s));
		MUST(cuGraphExecDestroy(x));
	}
	return NULL;
}

INLINE void threads(CUstream s)
{
	uint64_t sum = 0;
	pthread_t t[NR];

	capture_mode = CU_MODE_THREAD;
	for (int k = 0; k < NR; k++)
		warm_up(s, k, 1, lengths[k]);
	MUST(cuStreamSynchronize(s));
	for (int k = 0; k < NR; k++)
		if (pthread_create(&t[k], NULL, one_thread, (void *)(intptr_t)k))
			exit(8);
	for (int k = 0; k < NR; k++)
		pthread_join(t[k], NULL);
	for (int i = 0; i < TURNS; i++)
		sum += 1 + (uint64_t)i % 3;
	for (int k = 0; k < NR; k++) {
		say_graph("one_thread;replay", TURNS, 0, 0);
		printf("graph one_thread;replay 0 0 %llu\n", (unsigned long long)(sum * lengths[k]));
		say_inside("one_thread;replay", names[k], sum * lengths[k], "one_thread;capture;capture_one");
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "decode";
	int nr = argc > 2 ? atoi(argv[2]) : 0;
	CUmodule m;
	CUstream s;

	context = app__start();
	m = app__module(text);
	for (int k = 0; k < NR; k++)
		kernel[k] = app__function(m, names[k]);
	s = app__stream();
	if (nr && strcmp(what, "large") && strcmp(what, "poor"))
		replays = (unsigned long)nr;
	if (!strcmp(what, "decode"))
		decode(s);
	else if (!strcmp(what, "often"))
		often(s);
	else if (!strcmp(what, "stale"))
		stale(s);
	else if (!strcmp(what, "cold"))
		cold(s);
	else if (!strcmp(what, "some"))
		some(s);
	else if (!strcmp(what, "shapes"))
		shapes(s);
	else if (!strcmp(what, "built"))
		built(s);
	else if (!strcmp(what, "copies"))
		copies(s);
	else if (!strcmp(what, "update"))
		update(s);
	else if (!strcmp(what, "nodes"))
		nodes(s);
	else if (!strcmp(what, "sources"))
		sources(s);
	else if (!strcmp(what, "again"))
		again(s);
	else if (!strcmp(what, "large"))
		large(s, nr, nr <= 65536);
	else if (!strcmp(what, "poor"))
		poor(s, nr);
	else if (!strcmp(what, "threads"))
		threads(s);
	else
		return 64;
	MUST(cuCtxSynchronize());
	account__print(warm, NR);
	account__print_total(warm, NR);
	return app_failures != 0;
}
