// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * By how much is an event bracket longer than the kernel inside it? The kernel spins on the
 * global timer and stores its own start and end for each block.
 * Without arguments everything; probe_bracket busy|idle|shared US BLOCKS one case, for a run
 * beside CUPTI, which says how long it takes the same kernels to be.
 */
#include "probe_common.h"

enum { ROUNDS = 300, BLOCKS_MOST = 132, EVENTS_MOST = 2 * ROUNDS + 2 };

static CUfunction f_spin, f_fill, f_ticks;
static CUstream stream;
static CUdeviceptr out;
static CUevent events[EVENTS_MOST];
static unsigned long long times[ROUNDS * BLOCKS_MOST * 2];

static void spin(unsigned long long ns, int blocks, int slot)
{
	unsigned long long at = out + (unsigned long long)slot * BLOCKS_MOST * 16;
	void *args[] = { &ns, &at };

	MUST(cu.LaunchKernel(slot < 0 ? f_fill : f_spin, (unsigned int)blocks, 1, 1,
			     32, 1, 1, 0, stream, args, NULL));
}

/* The kernel's own duration in us: last end less first start over its blocks. */
static double own_us(int slot, int n_slots, int blocks)
{
	unsigned long long low = ~0ull, high = 0;

	for (int s = slot; s < slot + n_slots; s++)
		for (int b = 0; b < blocks; b++) {
			unsigned long long *t = &times[(s * BLOCKS_MOST + b) * 2];

			low = t[0] < low ? t[0] : low;
			high = t[1] > high ? t[1] : high;
		}
	return (double)(high - low) / 1e3;
}

static double bracket_us(CUevent a, CUevent b)
{
	float ms = 0;

	MUST(cu.Elapsed(&ms, a, b));
	return (double)ms * 1e3;
}

static void fetch(void)
{
	MUST(cu.StreamSynchronize(stream));
	MUST(cu.MemcpyDtoH(times, out, sizeof(times)));
}

enum how { BUSY, IDLE, SHARED };

static void measure(enum how how, unsigned long long ns, int blocks)
{
	static const char *const names[] = { "busy, two events", "idle, two events",
		"busy, one shared event" };
	int rounds = ns >= 1000000 ? ROUNDS / 2 : ROUNDS;
	static double offset[ROUNDS], own[ROUNDS];
	char what[100];

	if (how != IDLE)
		spin(how == BUSY ? 300000 : 3000000, 1, -1);
	for (int i = 0; i < rounds; i++) {
		if (how == SHARED && !i)
			MUST(cu.EventRecord(events[0], stream));
		if (how != SHARED)
			MUST(cu.EventRecord(events[2 * i], stream));
		spin(ns, blocks, i);
		MUST(cu.EventRecord(events[how == SHARED ? i + 1 : 2 * i + 1], stream));
		if (how == BUSY)
			spin(20000, 1, -1);
		if (how == IDLE) {
			MUST(cu.StreamSynchronize(stream));
			sleep_us(30);
		}
	}
	fetch();
	for (int i = 0; i < rounds; i++) {
		own[i] = own_us(i, 1, blocks);
		offset[i] = (how == SHARED ? bracket_us(events[i], events[i + 1]) :
			     bracket_us(events[2 * i], events[2 * i + 1])) - own[i];
	}
	snprintf(what, sizeof(what), "%s, spin %llu us, %d blocks", names[how], ns / 1000, blocks);
	probe_spread(what, offset, (size_t)rounds);
	probe_spread("    own duration", own, (size_t)rounds);
}

static void measure_empty(int busy)
{
	static double v[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		if (busy)
			spin(20000, 1, -1);
		MUST(cu.EventRecord(events[2 * i], stream));
		MUST(cu.EventRecord(events[2 * i + 1], stream));
		if (!busy)
			MUST(cu.StreamSynchronize(stream));
	}
	fetch();
	for (int i = 0; i < ROUNDS; i++)
		v[i] = bracket_us(events[2 * i], events[2 * i + 1]);
	probe_spread(busy ? "empty bracket, busy" : "empty bracket, idle", v, ROUNDS);
}

static void measure_graph(int busy)
{
	static double offset[ROUNDS], own[ROUNDS];
	CUgraphExec exec;
	CUgraph graph;

	MUST(cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	for (int i = 0; i < 100; i++)
		spin(10000, 1, i);
	MUST(cu.StreamEndCapture(stream, &graph));
	MUST(cu.GraphInstantiate(&exec, graph, 0));
	MUST(cu.GraphLaunch(exec, stream));
	for (int i = 0; i < ROUNDS; i++) {
		if (busy)
			spin(300000, 1, -1);
		else
			MUST(cu.StreamSynchronize(stream));
		MUST(cu.EventRecord(events[0], stream));
		MUST(cu.GraphLaunch(exec, stream));
		MUST(cu.EventRecord(events[1], stream));
		fetch();
		own[i] = own_us(0, 100, 1);
		offset[i] = bracket_us(events[0], events[1]) - own[i];
	}
	probe_spread(busy ? "graph of 100 x 10 us, busy" : "graph of 100 x 10 us, idle", offset,
		     ROUNDS);
	probe_spread("    own duration, first start to last end", own, ROUNDS);
}

static void measure_ticks(void)
{
	static unsigned long long tick[256];
	static double v[256];
	int n = 256;
	void *args[] = { &out, &n };

	MUST(cu.LaunchKernel(f_ticks, 1, 1, 1, 1, 1, 1, 0, stream, args, NULL));
	MUST(cu.StreamSynchronize(stream));
	MUST(cu.MemcpyDtoH(tick, out, sizeof(tick)));
	for (int i = 0; i < 256; i++)
		v[i] = (double)tick[i];
	probe_spread("steps of the global timer, ns", v, 256);
}

int main(int argc, char **argv)
{
	static const unsigned long long lengths[] = { 1000, 10000, 100000, 200000, 1000000 };
	CUcontext ctx;
	CUmodule module;
	CUdevice dev;

	setvbuf(stdout, NULL, _IOLBF, 0);
	cu_load();
	MUST(cu.Init(0));
	MUST(cu.DeviceGet(&dev, 0));
	MUST(cu.PrimaryRetain(&ctx, dev));
	MUST(cu.CtxSetCurrent(ctx));
	MUST(cu.ModuleLoad(&module, probe_cubin()));
	MUST(cu.ModuleGetFunction(&f_spin, module, "k_spin"));
	MUST(cu.ModuleGetFunction(&f_fill, module, "k_fill"));
	MUST(cu.ModuleGetFunction(&f_ticks, module, "k_ticks"));
	MUST(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cu.MemAlloc(&out, sizeof(times)));
	for (int i = 0; i < EVENTS_MOST; i++)
		MUST(cu.EventCreate(&events[i], 0));
	for (int i = 0; i < 2000; i++)
		spin(100000, 132, -1);
	fetch();
	if (argc > 3) {
		enum how how = argv[1][0] == 'b' ? BUSY : argv[1][0] == 'i' ? IDLE : SHARED;

		measure(how, strtoull(argv[2], NULL, 10) * 1000, atoi(argv[3]));
		return 0;
	}
	measure_ticks();
	for (int b = 1; b <= 132; b += 131)
		for (int how = 0; how < 3; how++)
			for (int i = 0; i < 5; i++)
				measure((enum how)how, lengths[i], b);
	measure_empty(1);
	measure_empty(0);
	measure_graph(1);
	measure_graph(0);
	return 0;
}
