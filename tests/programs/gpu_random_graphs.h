/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What gpu_random does with captures and graphs: each function is a turn, or part of one. */
#ifndef TESTS_PROGRAMS_GPU_RANDOM_GRAPHS_H
#define TESTS_PROGRAMS_GPU_RANDOM_GRAPHS_H
#include "tests/programs/gpu_random_launch.h"

static void keep_graph(CUgraph g)
{
	struct graph *slot = graph__free();
	size_t n = 0;

	if (!slot) {
		say(cuGraphDestroy(g), "cuGraphDestroy");
		return;
	}
	*slot = (struct graph){ .g = g, .id = ++ids[GRAPH] };
	say(cuGraphGetNodes(g, NULL, &n), "cuGraphGetNodes g%d %zu", slot->id, n);
	slot->nodes = (int)n;
	say(cuGraphInstantiateWithFlags(&slot->x, g, 0), "instantiate g%d", slot->id);
}

static void begin_capture(void)
{
	struct stream *s = stream__pick();
	int mode = one_in(30) ? 9 : (int)below(3);

	if (!s || (captures_in(0) && !one_in(4)))
		return;
	if (!say(cuStreamBeginCapture_v2(s->h, mode), "cuStreamBeginCapture s%d %d", s->id, mode))
		s->capturer = me;
}

static void end_capture_of(struct stream *s)
{
	CUgraph g = NULL;
	CUresult r = cuStreamEndCapture(s->h, &g);

	if (r != CU_CAPTURE_WRONG_THREAD && r != CU_CAPTURE_UNMATCHED)
		s->capturer = 0;
	say(r, "cuStreamEndCapture s%d", s->id);
	if (!r && g)
		keep_graph(g);
}

static void end_captures(void)
{
	for (size_t i = 0; i < NR(streams); i++)
		if (streams[i].id && streams[i].capturer && (streams[i].capturer == me || one_in(10)))
			end_capture_of(&streams[i]);
}

/* Another stream's launch between two of this one's. */
static void fork_and_join(void)
{
	struct stream *s = stream__pick(), *other = stream__pick();
	struct event *e = event__pick(), *f = event__pick();

	if (!s || !other || !e || !f || s == other)
		return;
	say(cuEventRecord(e->h, s->h), "fork s%d s%d e%d e%d", s->id, other->id, e->id, f->id);
	say(cuStreamWaitEvent(other->h, e->h, 0), "forked");
	launch_into(entry__pick(), where__of(other, false));
	say(cuEventRecord(f->h, other->h), "join");
	say(cuStreamWaitEvent(s->h, f->h, 0), "joined");
}

static void capture_own(void)
{
	struct where w = { .h = CU_STREAM_PER_THREAD, .text = "own" };
	CUgraph g = NULL;

	if (say(cuStreamBeginCapture_v2(w.h, (int)below(3)), "cuStreamBeginCapture own"))
		return;
	for (int n = 1 + (int)below(4); n; n--)
		launch_into(entry__pick(), w);
	if (!say(cuStreamEndCapture(w.h, &g), "cuStreamEndCapture own") && g)
		keep_graph(g);
}

static void exchange_mode(void)
{
	int mode = (int)below(3);
	CUresult r = cuThreadExchangeStreamCaptureMode(&mode);

	say(r, "cuThreadExchangeStreamCaptureMode was %d", mode);
}

static void build_graph(void)
{
	uint64_t ns = 1000 + below(30000);
	void *params[] = { &ns };
	CUkernelNodeParams p = { .gridX = 1, .gridY = 1, .gridZ = 1, .blockX = 32, .blockY = 1,
				 .blockZ = 1, .params = params };
	CUgraphNode last = NULL;
	char name[16];
	CUgraph g;

	MUST(cuGraphCreate(&g, 0));
	for (int n = (int)below(4); n; n--) {
		p.func = function__pick(ctx__now(), true, name);
		say(cuGraphAddKernelNode_v2(&last, g, last ? &last : NULL, last != NULL, &p), "node");
	}
	keep_graph(g);
}

static void update_graph(void)
{
	struct graph *from = graph__pick(), *to = graph__pick();
	CUgraphUpdateInfo info;
	CUresult r;

	if (!from || !to)
		return;
	r = cuGraphExecUpdate_v2(to->x, from->g, &info);
	say(r, "update g%d from g%d", to->id, from->id);
	if (!r)
		to->nodes = from->nodes;
}

static void end_graph(void)
{
	struct graph *g = graph__pick();

	if (!g)
		return;
	say(cuGraphExecDestroy(g->x), "cuGraphExecDestroy g%d", g->id);
	say(cuGraphDestroy(g->g), "cuGraphDestroy g%d", g->id);
	g->id = 0;
}

#endif
