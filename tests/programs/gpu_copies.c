// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Copies and sets of memory by every entry, each from a function of its own, beside some launches.
 *
 *	gpu_copies [ROUNDS] [BYTES]	default 20 rounds of 4096 bytes and more
 *	gpu_copies capture ROUNDS	into a graph, which must stay whole
 *	gpu_copies fail ROUNDS		by a call that the driver refuses
 *
 * At the end one line for each function: copy COUNT BYTES NS PATH WHAT. NS is by the rule of the virtual
 * device: 1 us, and a nanosecond for 8 bytes, each.
 */
#include "tests/programs/gpu_app.h"

#define MAX_WAYS 64
#define LAUNCH_NS 5000

static struct copies {
	const char *path, *what;
	unsigned long count;
	uint64_t bytes, ns;
} ways[MAX_WAYS];

static size_t nr_ways;
static CUcontext context;
static CUstream stream;
static CUfunction kernel;
static CUdeviceptr device, other;
static char *host;
static struct account launches = { "main;all;launch", "spin_beside", 0, 0 };

static struct copies *way(const char *path, const char *what)
{
	size_t i;

	for (i = 0; i < nr_ways; i++)
		if (ways[i].path == path)
			return &ways[i];
	ways[nr_ways] = (struct copies){ .path = path, .what = what };
	return &ways[nr_ways++];
}

static void add(struct copies *w, CUresult r, size_t bytes)
{
	if (r) {
		app_failures++;
		return;
	}
	w->count++;
	w->bytes += bytes;
	w->ns += bytes / 8 + 1000;
}

/* Waited for: of more than a few under way not all are timed, and their sizes differ. */
#define AS_DEVICE(p) ((CUdeviceptr)(uintptr_t)(p))
#define WAY(name, what, bytes, call)								\
	static NOINLINE void name(size_t n)							\
	{											\
		static const char path[] = "main;all;" #name;					\
												\
		add(way(path, what), call, bytes);						\
		MUST(cuCtxSynchronize());							\
	}

WAY(htod, "memcpy HtoD", n, cuMemcpyHtoDAsync_v2(device, host, n, stream))
WAY(htod_own, "memcpy HtoD", n + 8, cuMemcpyHtoDAsync_v2_ptsz(device, host, n + 8, NULL))
WAY(dtoh, "memcpy DtoH", n * 2, cuMemcpyDtoHAsync_v2(host, device, n * 2, stream))
WAY(dtoh_own, "memcpy DtoH", n * 2, cuMemcpyDtoHAsync_v2_ptsz(host, device, n * 2, stream))
WAY(dtod, "memcpy DtoD", n * 3, cuMemcpyDtoDAsync_v2(other, device, n * 3, NULL))
WAY(dtod_own, "memcpy DtoD", n * 3, cuMemcpyDtoDAsync_v2_ptsz(other, device, n * 3, NULL))
WAY(up, "memcpy HtoD", n, cuMemcpyAsync(device, AS_DEVICE(host), n, stream))
WAY(down, "memcpy DtoH", n, cuMemcpyAsync_ptsz(AS_DEVICE(host), device + n, n, stream))
WAY(across, "memcpy DtoD", n, cuMemcpyAsync(other + n, device, n, stream))
WAY(beside, "memcpy HtoH", n, cuMemcpyAsync(AS_DEVICE(host), AS_DEVICE(host) + n, n, stream))
WAY(peer, "memcpy PtoP", n, cuMemcpyPeerAsync(other, context, device, context, n, stream))
WAY(peer_own, "memcpy PtoP", n, cuMemcpyPeerAsync_ptsz(other, context, device, context, n, NULL))
WAY(set8, "memset", n, cuMemsetD8Async(device, 0x41, n, stream))
WAY(set8_own, "memset", n, cuMemsetD8Async_ptsz(device, 0x42, n, NULL))
WAY(set16, "memset", n * 2, cuMemsetD16Async(device, 0x4344, n, stream))
WAY(set16_own, "memset", n * 2, cuMemsetD16Async_ptsz(device, 0x4546, n, NULL))
WAY(set32, "memset", n * 4, cuMemsetD32Async(device, 0x4748494a, n, stream))
WAY(set32_own, "memset", n * 4, cuMemsetD32Async_ptsz(device, 0x4b4c4d4e, n, stream))

/* Without a stream of their own. */
WAY(now_htod, "memcpy HtoD", n, cuMemcpyHtoD_v2(device, host, n))
WAY(now_htod_own, "memcpy HtoD", n + 8, cuMemcpyHtoD_v2_ptds(device, host, n + 8))
WAY(now_dtoh, "memcpy DtoH", n, cuMemcpyDtoH_v2(host, device, n))
WAY(now_dtoh_own, "memcpy DtoH", n, cuMemcpyDtoH_v2_ptds(host, device, n))
WAY(now_dtod, "memcpy DtoD", n, cuMemcpyDtoD_v2(other, device, n))
WAY(now_dtod_own, "memcpy DtoD", n, cuMemcpyDtoD_v2_ptds(other, device, n))
WAY(now_up, "memcpy HtoD", n, cuMemcpy(device, AS_DEVICE(host), n))
WAY(now_down, "memcpy DtoH", n, cuMemcpy_ptds(AS_DEVICE(host), device, n))
WAY(now_peer, "memcpy PtoP", n, cuMemcpyPeer(other, context, device, context, n))
WAY(now_peer_own, "memcpy PtoP", n, cuMemcpyPeer_ptds(other, context, device, context, n))
WAY(now_set8, "memset", n, cuMemsetD8_v2(device, 0x41, n))
WAY(now_set8_own, "memset", n, cuMemsetD8_v2_ptds(device, 0x41, n))
WAY(now_set16, "memset", n * 2, cuMemsetD16_v2(device, 0x4142, n))
WAY(now_set16_own, "memset", n * 2, cuMemsetD16_v2_ptds(device, 0x4142, n))
WAY(now_set32, "memset", n * 4, cuMemsetD32_v2(device, 0x41424344, n))
WAY(now_set32_own, "memset", n * 4, cuMemsetD32_v2_ptds(device, 0x41424344, n))

static NOINLINE void launch(void)
{
	account__add(&launches, app__launch(kernel, stream, LAUNCH_NS), LAUNCH_NS);
	KEEP_FRAME();
}

static void (*const calls[])(size_t n) = {
	htod, htod_own, dtoh, dtoh_own, dtod, dtod_own, up, down, across, beside, peer, peer_own,
	set8, set8_own, set16, set16_own, set32, set32_own,
	now_htod, now_htod_own, now_dtoh, now_dtoh_own, now_dtod, now_dtod_own, now_up, now_down,
	now_peer, now_peer_own, now_set8, now_set8_own, now_set16, now_set16_own, now_set32,
	now_set32_own,
};

static NOINLINE void all(size_t n)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		calls[i](n);
	launch();
	MUST(cuCtxSynchronize());
	KEEP_FRAME();
}

/* What was put into a graph is whole, and no more than what this program put there. */
static int capture(long rounds)
{
	CUgraphExec exec;
	CUgraph graph;
	size_t nodes;

	for (long i = 0; i < rounds; i++) {
		MUST(cuStreamBeginCapture_v2(stream, CU_MODE_GLOBAL));
		MUST(cuMemcpyHtoDAsync_v2(device, host, 4096, stream));
		MUST(cuMemcpyAsync(other, device, 4096, stream));
		MUST(cuMemsetD8Async(device, 1, 4096, stream));
		MUST(cuStreamEndCapture(stream, &graph));
		MUST(cuGraphGetNodes(graph, NULL, &nodes));
		if (nodes != 3)
			app_failures++;
		MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
		MUST(cuGraphLaunch(exec, stream));
		MUST(cuStreamSynchronize(stream));
	}
	printf("captured %ld, failures %lu\n", rounds * 3, app_failures);
	return app_failures != 0;
}

static int fail(long rounds)
{
	for (long i = 0; i < rounds; i++)
		if (cuMemcpyPeerAsync(other, NULL, device, context, 64, stream) != CU_INVALID_CONTEXT)
			app_failures++;
	printf("refused %ld, failures %lu\n", rounds, app_failures);
	return app_failures != 0;
}

int main(int argc, char **argv)
{
	bool other_way = argc > 2 && (!strcmp(argv[1], "capture") || !strcmp(argv[1], "fail"));
	long rounds = argc > 1 && !other_way ? atol(argv[1]) : argc > 2 ? atol(argv[2]) : 20;
	size_t bytes = argc > 2 && !other_way ? strtoul(argv[2], NULL, 10) : 4096;
	size_t room = (bytes + 8 * (size_t)rounds) * 4;

	context = app__start();
	kernel = app__function(app__module(PTX(SPIN("beside"))), "spin_beside");
	stream = app__stream();
	MUST(cuMemAlloc_v2(&device, room));
	MUST(cuMemAlloc_v2(&other, room));
	MUST(cuMemHostAlloc((void **)&host, room, 0));
	memset(host, 0, room);
	if (other_way)
		return !strcmp(argv[1], "fail") ? fail(rounds) : capture(rounds);
	for (long i = 0; i < rounds; i++)
		all(bytes + 8 * (size_t)i);
	for (size_t i = 0; i < nr_ways; i++)
		printf("copy %lu %llu %llu %s %s\n", ways[i].count, (unsigned long long)ways[i].bytes,
		       (unsigned long long)ways[i].ns, ways[i].path, ways[i].what);
	account__print(&launches, 1);
	account__print_total(&launches, 1);
	return app_failures != 0;
}
