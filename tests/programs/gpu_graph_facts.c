// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a driver says of graphs, which the library's reading of them relies on: lines "fact WHAT: ANSWER".
 *
 *	gpu_graph_facts [NODES]		costs are of a graph of so many nodes (20000)
 */
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "tests/programs/gpu_app.h"

static const char text[] = PTX(SPIN("a"));

static __attribute__((format(printf, 2, 3))) void fact(const char *what, const char *answer, ...)
{
	va_list args;

	va_start(args, answer);
	printf("fact %s: ", what);
	vprintf(answer, args);
	putchar('\n');
	va_end(args);
}

struct tip {
	int status;
	CUgraph graph;
	const CUgraphNode *nodes;
	size_t nr;
};

/* What the stream captures into, and what its next node comes after. */
static struct tip tip_of(CUstream s)
{
	struct tip t = { 0 };
	unsigned long long id;
	const void *edges;

	MUST(cuStreamGetCaptureInfo_v3(s, &t.status, &id, &t.graph, &t.nodes, &edges, &t.nr));
	return t;
}

static CUgraphNode last_of(CUgraph g)
{
	CUgraphNode all[2];
	size_t nr = 2;

	MUST(cuGraphGetNodes(g, all, &nr));
	return nr ? all[nr - 1] : NULL;
}

/* A handle that the driver gives, against what the program has given. */
static const char *said(const void *given, CUfunction f, CUkernel k)
{
	if (given == (const void *)f)
		return k ? "the same as function, and a kernel" : "the same as function";
	if (given == (const void *)k)
		return f ? "the same as kernel, and a function" : "the same as kernel";
	return f && k ? "others in both" : f ? "another function" : k ? "another kernel" : "none";
}

static void say_handle(const char *what, CUgraphNode node, const void *given)
{
	CUkernelNodeParams p = { 0 };
	const char *name = NULL;
	CUresult r = cuGraphKernelNodeGetParams_v2(node, &p);

	if (!r)
		r = p.func ? cuFuncGetName(&name, p.func) : cuKernelGetName(&name, p.kern);
	fact(what, "%s, name %s, result %d", said(given, p.func, p.kern), name ? name : "-", r);
}

static void of_capture(CUstream s, CUfunction f, CUkernel k)
{
	CUgraph g, given;
	struct tip t;
	CUgraphNode node;

	MUST(cuStreamBeginCapture_v2(s, CU_MODE_GLOBAL));
	MUST(app__launch(f, s, 1000));
	t = tip_of(s);
	node = t.nr ? t.nodes[0] : NULL;
	MUST(cuStreamEndCapture(s, &g));
	fact("a capture tells of the graph that it ends with", "%s", t.graph == g ? "yes" : "no");
	fact("what a launch left is the stream's only last node", "%s",
	     t.nr == 1 && node == last_of(g) ? "yes" : "no");
	say_handle("node of a captured function", node, f);
	MUST(cuGraphDestroy(g));

	MUST(cuGraphCreate(&given, 0));
	MUST(cuStreamBeginCaptureToGraph(s, given, NULL, NULL, 0, CU_MODE_GLOBAL));
	MUST(app__launch((CUfunction)(void *)k, s, 1000));
	t = tip_of(s);
	node = t.nr ? t.nodes[0] : NULL;
	MUST(cuStreamEndCapture(s, &g));
	fact("a capture into a graph that is there tells of that", "%s",
	     t.graph == given && g == given ? "yes" : "no");
	say_handle("node of a captured kernel", node, k);
	MUST(cuGraphDestroy(given));
}

static void say_made(const char *what, CUgraph g, CUfunction f, CUkernel k)
{
	uint64_t ns = 1000;
	void *params[] = { &ns };
	const CUkernelNodeParams p = { .func = f, .kern = k, .gridX = 1, .gridY = 1, .gridZ = 1, .blockX = 32,
				       .blockY = 1, .blockZ = 1, .params = params };
	CUgraphNode n;
	CUresult r = cuGraphAddKernelNode_v2(&n, g, NULL, 0, &p);

	if (r)
		fact(what, "refused, result %d", r);
	else
		say_handle(what, n, k ? (void *)k : (void *)f);
}

static void of_nodes(CUfunction f, CUkernel k)
{
	CUgraph g;

	MUST(cuGraphCreate(&g, 0));
	say_made("node made of a function", g, f, NULL);
	say_made("node made of a kernel", g, NULL, k);
	say_made("node made of a kernel as a function", g, (CUfunction)(void *)k, NULL);
	MUST(cuGraphDestroy(g));
}

#define ROUNDS 1000

static void of_one_call(CUstream s, CUfunction f)
{
	CUgraphNode node;
	struct tip t = { 0 };
	int64_t begun;
	CUgraph g;

	MUST(cuStreamBeginCapture_v2(s, CU_MODE_GLOBAL));
	MUST(app__launch(f, s, 1000));
	begun = app__now();
	for (int i = 0; i < ROUNDS; i++)
		t = tip_of(s);
	fact("ns of cuStreamGetCaptureInfo", "%lld", (long long)(app__now() - begun) / ROUNDS);
	begun = app__now();
	for (int i = 0; i < ROUNDS; i++) {
		struct iovec to = { &node, sizeof(node) };
		struct iovec from = { (void *)(uintptr_t)t.nodes, sizeof(node) };

		if (syscall(SYS_process_vm_readv, getpid(), &to, 1, &from, 1, 0) != sizeof(node))
			exit(8);
	}
	fact("ns of process_vm_readv", "%lld", (long long)(app__now() - begun) / ROUNDS);
	MUST(cuStreamEndCapture(s, &g));
	MUST(cuGraphDestroy(g));
}

/* Node by node, as the library does. */
static void of_reading(CUstream s, CUfunction f, size_t nr)
{
	CUgraphNode *nodes = calloc(nr, sizeof(*nodes));
	int64_t begun, listed;
	CUkernelNodeParams p;
	size_t all = nr;
	CUgraph g;
	int type;

	MUST(cuStreamBeginCapture_v2(s, CU_MODE_GLOBAL));
	for (size_t i = 0; i < nr; i++)
		MUST(app__launch(f, s, 1000));
	MUST(cuStreamEndCapture(s, &g));
	begun = app__now();
	MUST(cuGraphGetNodes(g, nodes, &all));
	listed = app__now();
	for (size_t i = 0; i < all; i++) {
		MUST(cuGraphNodeGetType(nodes[i], &type));
		MUST(cuGraphKernelNodeGetParams_v2(nodes[i], &p));
	}
	fact("us to list and to ask these nodes", "%lld + %lld of %zu", (long long)(listed - begun) / 1000,
	     (long long)(app__now() - listed) / 1000, all);
	MUST(cuGraphDestroy(g));
	free(nodes);
}

int main(int argc, char **argv)
{
	CUlibrary library;
	CUfunction f;
	CUkernel k;
	CUstream s;

	app__start();
	f = app__function(app__module(text), "spin_a");
	MUST(cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
	MUST(cuLibraryGetKernel(&k, library, "spin_a"));
	s = app__stream();
	of_capture(s, f, k);
	of_nodes(f, k);
	of_one_call(s, f);
	of_reading(s, f, argc > 1 ? (size_t)atoi(argv[1]) : 20000);
	return 0;
}
