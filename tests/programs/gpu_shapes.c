// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Copies and sets of more than a line of memory, of arrays, and of several at once, by every entry, each
 * from a function of its own, beside some launches.
 *
 *	gpu_shapes [ROUNDS] [BYTES]	default 20 rounds of rows of 4096 bytes and more
 *	gpu_shapes same ROUNDS		all rounds of 4096 bytes
 *	gpu_shapes capture ROUNDS	into a graph, which must stay whole
 *	gpu_shapes fail ROUNDS		by calls that the driver refuses
 *
 * At the end one line for each function, as gpu_copies has them.
 */
#include "tests/programs/gpu_app.h"

#define MAX_WAYS 96
#define LAUNCH_NS 5000
#define ROWS 3
#define LAYERS 2
#define ELEMENT 4		/* bytes of an array's */
#define MANY 50			/* copies of a large batch */

static struct copies {
	const char *path, *what;
	unsigned long count;
	uint64_t bytes, ns;
} ways[MAX_WAYS];

static size_t nr_ways, pitch;
static CUcontext context;
static CUstream stream;
static CUfunction kernel;
static CUdeviceptr device, other;
static CUarray array, array_b;
static char *host;
static struct account launches = { "main;all;launch", "spin_beside", 0, 0 };

static void add(const char *path, const char *what, CUresult r, size_t bytes)
{
	struct copies *w = ways;

	while (w->path && w->path != path)
		w++;
	nr_ways += !w->path;
	w->path = path;
	w->what = what;
	if (r) {
		app_failures++;
		return;
	}
	w->count++;
	w->bytes += bytes;
	w->ns += bytes / 8 + 1000;
}

/* --- what they are given ---------------------------------------------------------------------- */
#define AS_DEVICE(p) ((CUdeviceptr)(uintptr_t)(p))
#define IN_PLACE static inline __attribute__((always_inline))

enum end { H, D, D2, A, B, EITHER_H, EITHER_D };

IN_PLACE CUside3D side(enum end e)
{
	CUside3D s = { .type = CU_MEMORY_DEVICE, .pitch = pitch, .height = ROWS, .x = 8, .device = device };

	if (e == H)
		s = (CUside3D){ .type = CU_MEMORY_HOST, .host = host, .pitch = pitch, .height = ROWS,
				.y = 1 };
	else if (e == D2)
		s = (CUside3D){ .type = CU_MEMORY_DEVICE, .device = other, .pitch = pitch, .height = ROWS };
	else if (e == A || e == B)
		s = (CUside3D){ .type = CU_MEMORY_ARRAY, .array = e == A ? array : array_b, .x = ELEMENT };
	else if (e == EITHER_H || e == EITHER_D)
		s = (CUside3D){ .type = CU_MEMORY_UNIFIED, .pitch = pitch, .height = ROWS,
				.device = e == EITHER_H ? AS_DEVICE(host) : device };
	s.height += s.y;
	return s;
}

IN_PLACE CUside2D flat(enum end e)
{
	CUside3D s = side(e);

	return (CUside2D){ s.x, s.y, s.type, s.host, s.device, s.array, s.pitch };
}

#define FLAT(from, to) (&(CUcopy2D){ flat(from), flat(to), n, ROWS })
#define SOLID(from, to) (&(CUcopy3D){ side(from), side(to), n, ROWS, LAYERS })

IN_PLACE CUside3D in(CUside3D s, CUcontext c)
{
	s.context = c;
	return s;
}

#define PEER(from, to) (&(CUcopy3D){ in(side(from), context), in(side(to), context), n, ROWS, LAYERS })

/* Where nobody can tell beforehand that it may be read. */
static NOINLINE const CUcopy2D *far(size_t n)
{
	static CUcopy2D *c;

	if (!c)
		c = malloc(sizeof(*c));
	*c = *FLAT(D, D2);
	return c;
}

static CUcopyAttributes in_order = { .order = CU_ORDER_STREAM };
static size_t first_of_all;

/* Three copies of n, n + 8 and 8 bytes; far apart. */
struct batch {
	CUdeviceptr to[MANY], from[MANY];
	size_t sizes[MANY];
};

static struct batch *batch_of(size_t n, const void *to, const void *from)
{
	static struct batch b;

	for (size_t i = 0; i < 3; i++) {
		b.to[i] = AS_DEVICE(to) + i * pitch;
		b.from[i] = AS_DEVICE(from) + i * pitch;
		b.sizes[i] = i < 2 ? n + 8 * i : 8;
	}
	return &b;
}

#define BATCH_BYTES (2 * n + 16)
#define ON_DEVICE(p) ((const void *)(uintptr_t)(p))
#define BATCH(b, nr) (b)->to, (b)->from, (b)->sizes, nr, &in_order, &first_of_all, 1

static struct batch *mixed_batch(size_t n)
{
	struct batch *b = batch_of(n, ON_DEVICE(device), host);

	b->from[1] = other;
	return b;
}

static struct batch *large_batch(void)
{
	static struct batch b;

	for (size_t i = 0; i < MANY; i++) {
		b.to[i] = device + 64 * i;
		b.from[i] = AS_DEVICE(host) + 64 * i;
		b.sizes[i] = i + 1;
	}
	return &b;
}

/* n bytes wide, which are elements of an array where one is of it. */
static CUoperand operand(enum end e)
{
	CUside3D s = side(e);

	if (e == A || e == B)
		return (CUoperand){ CU_OPERAND_ARRAY, { .array = { s.array, 1, 0, 0 } } };
	return (CUoperand){ CU_OPERAND_POINTER,
			    { .pointer = { e == H ? AS_DEVICE(s.host) : s.device, 0, 0, { 0, 0 } } } };
}

static CUbatchCopy *solids(size_t n, enum end from, enum end to, enum end also)
{
	static CUbatchCopy list[2];
	size_t elements = from == A || to == A ? n / ELEMENT : n;

	list[0] = (CUbatchCopy){ operand(from), operand(to), elements, ROWS, LAYERS, CU_ORDER_STREAM, 0 };
	list[1] = (CUbatchCopy){ operand(also), operand(to), elements, 1, 1, CU_ORDER_ANY, 0 };
	return list;
}

#define SOLID_BYTES (n * ROWS * LAYERS)
#define TWO_BYTES (SOLID_BYTES + n)

/* --- the ways --------------------------------------------------------------------------------- */
/* Waited for: of more than a few under way not all are timed, and their sizes differ. */
#define WAY(name, what, bytes, call)								\
	static NOINLINE void name(size_t n)							\
	{											\
		static const char path[] = "main;all;" #name;					\
												\
		add(path, what, call, bytes);							\
		MUST(cuCtxSynchronize());							\
	}

WAY(flat_up, "memcpy HtoD", n * ROWS, cuMemcpy2DAsync_v2(FLAT(H, D), stream))
WAY(flat_down, "memcpy DtoH", n * ROWS, cuMemcpy2DAsync_v2_ptsz(FLAT(D, H), NULL))
WAY(flat_across, "memcpy DtoD", n * ROWS, cuMemcpy2D_v2(FLAT(D, D2)))
WAY(flat_beside, "memcpy HtoH", n * ROWS, cuMemcpy2D_v2_ptds(FLAT(H, EITHER_H)))
WAY(flat_either, "memcpy HtoD", n * ROWS, cuMemcpy2DUnaligned_v2(FLAT(EITHER_H, EITHER_D)))
WAY(flat_either_own, "memcpy DtoH", n * ROWS, cuMemcpy2DUnaligned_v2_ptds(FLAT(EITHER_D, H)))
WAY(flat_in, "memcpy HtoA", n * ROWS, cuMemcpy2DAsync_v2(FLAT(H, A), stream))
WAY(flat_out, "memcpy AtoD", n * ROWS, cuMemcpy2D_v2(FLAT(A, D)))
WAY(flat_far, "memcpy DtoD", n * ROWS, cuMemcpy2DAsync_v2(far(n), stream))
WAY(flat_none, "memcpy DtoD", 0 * n, cuMemcpy2DAsync_v2(&(CUcopy2D){ flat(D), flat(D2), 0, ROWS }, stream))
WAY(solid_up, "memcpy HtoD", SOLID_BYTES, cuMemcpy3DAsync_v2(SOLID(H, D), stream))
WAY(solid_down, "memcpy DtoH", SOLID_BYTES, cuMemcpy3DAsync_v2_ptsz(SOLID(D, H), NULL))
WAY(solid_in, "memcpy DtoA", SOLID_BYTES, cuMemcpy3D_v2(SOLID(D, A)))
WAY(solid_out, "memcpy AtoH", SOLID_BYTES, cuMemcpy3D_v2_ptds(SOLID(A, H)))
WAY(solid_within, "memcpy AtoA", SOLID_BYTES, cuMemcpy3D_v2(SOLID(A, B)))
WAY(solid_either, "memcpy DtoD", SOLID_BYTES, cuMemcpy3DAsync_v2(SOLID(EITHER_D, D2), stream))
WAY(peer, "memcpy PtoP", SOLID_BYTES, cuMemcpy3DPeerAsync(PEER(D, D2), stream))
WAY(peer_own, "memcpy PtoP", SOLID_BYTES, cuMemcpy3DPeerAsync_ptsz(PEER(A, D), NULL))
WAY(peer_now, "memcpy PtoP", SOLID_BYTES, cuMemcpy3DPeer(PEER(D, D2)))
WAY(peer_now_own, "memcpy HtoD", SOLID_BYTES, cuMemcpy3DPeer_ptds(PEER(H, D)))

WAY(htoa, "memcpy HtoA", n, cuMemcpyHtoAAsync_v2(array, 8, host, n, stream))
WAY(htoa_own, "memcpy HtoA", n, cuMemcpyHtoAAsync_v2_ptsz(array, 8, host, n, NULL))
WAY(htoa_now, "memcpy HtoA", n + 4, cuMemcpyHtoA_v2(array, 8, host, n + 4))
WAY(htoa_now_own, "memcpy HtoA", n, cuMemcpyHtoA_v2_ptds(array, 0, host, n))
WAY(atoh, "memcpy AtoH", n * 2, cuMemcpyAtoHAsync_v2(host, array, 4, n * 2, stream))
WAY(atoh_own, "memcpy AtoH", n, cuMemcpyAtoHAsync_v2_ptsz(host, array, 4, n, NULL))
WAY(atoh_now, "memcpy AtoH", n, cuMemcpyAtoH_v2(host, array, 0, n))
WAY(atoh_now_own, "memcpy AtoH", n, cuMemcpyAtoH_v2_ptds(host, array, 0, n))
WAY(atod, "memcpy AtoD", n, cuMemcpyAtoD_v2(device, array, 0, n))
WAY(atod_own, "memcpy AtoD", n + 8, cuMemcpyAtoD_v2_ptds(device, array, 0, n + 8))
WAY(dtoa, "memcpy DtoA", n, cuMemcpyDtoA_v2(array, 0, device, n))
WAY(dtoa_own, "memcpy DtoA", n, cuMemcpyDtoA_v2_ptds(array, 4, device, n))
WAY(atoa, "memcpy AtoA", n, cuMemcpyAtoA_v2(array, 0, array_b, 4, n))
WAY(atoa_own, "memcpy AtoA", n * 3, cuMemcpyAtoA_v2_ptds(array, 0, array_b, 0, n * 3))

WAY(set8, "memset", n * ROWS, cuMemsetD2D8Async(device, pitch, 0x41, n, ROWS, stream))
WAY(set8_own, "memset", n * ROWS, cuMemsetD2D8Async_ptsz(device, pitch, 0x42, n, ROWS, NULL))
WAY(set8_now, "memset", n * ROWS, cuMemsetD2D8_v2(device, pitch, 0x43, n, ROWS))
WAY(set8_now_own, "memset", n, cuMemsetD2D8_v2_ptds(device, 0, 0x44, n, 1))
WAY(set16, "memset", n / 4 * 2 * 2, cuMemsetD2D16Async(device, pitch, 0x4546, n / 4, 2, stream))
WAY(set16_own, "memset", n / 4 * 2 * 2, cuMemsetD2D16Async_ptsz(device, pitch, 0x4748, n / 4, 2, stream))
WAY(set16_now, "memset", n / 4 * 2 * 3, cuMemsetD2D16_v2(device, pitch, 0x494a, n / 4, 3))
WAY(set16_now_own, "memset", n / 4 * 2 * 3, cuMemsetD2D16_v2_ptds(device, pitch, 0x4b4c, n / 4, 3))
WAY(set32, "memset", n / 8 * 4 * 3, cuMemsetD2D32Async(device, pitch, 0x4d4e4f50, n / 8, 3, stream))
WAY(set32_own, "memset", n / 8 * 4 * 3, cuMemsetD2D32Async_ptsz(device, pitch, 0x51525354, n / 8, 3, NULL))
WAY(set32_now, "memset", n / 8 * 4 * 2, cuMemsetD2D32_v2(device, pitch, 0x55565758, n / 8, 2))
WAY(set32_now_own, "memset", n / 8 * 4 * 2, cuMemsetD2D32_v2_ptds(device, pitch, 0x595a5b5c, n / 8, 2))

WAY(batch, "memcpy HtoD", BATCH_BYTES,
    cuMemcpyBatchAsync(BATCH(batch_of(n, ON_DEVICE(device), host), 3), NULL, stream))
WAY(batch_own, "memcpy DtoH", BATCH_BYTES,
    cuMemcpyBatchAsync_ptsz(BATCH(batch_of(n, host, ON_DEVICE(device)), 3), NULL, NULL))
WAY(batch_new, "memcpy", BATCH_BYTES, cuMemcpyBatchAsync_v2(BATCH(mixed_batch(n), 3), stream))
WAY(batch_new_own, "memcpy DtoD", BATCH_BYTES,
    cuMemcpyBatchAsync_v2_ptsz(BATCH(batch_of(n, ON_DEVICE(other), ON_DEVICE(device)), 3), NULL))
WAY(batch_large, "memcpy HtoD", 0 * n + MANY * (MANY + 1) / 2,
    cuMemcpyBatchAsync_v2(BATCH(large_batch(), MANY), stream))
WAY(solids_by, "memcpy DtoD", TWO_BYTES, cuMemcpy3DBatchAsync(2, solids(n, D, D2, D), NULL, 0, stream))
WAY(solids_by_own, "memcpy HtoA", TWO_BYTES, cuMemcpy3DBatchAsync_ptsz(2, solids(n, H, A, H), NULL, 0, NULL))
WAY(solids_new, "memcpy AtoD", TWO_BYTES, cuMemcpy3DBatchAsync_v2(2, solids(n, A, D, B), 0, stream))
WAY(solids_new_own, "memcpy", TWO_BYTES, cuMemcpy3DBatchAsync_v2_ptsz(2, solids(n, H, D, D2), 0, NULL))
WAY(with, "memcpy HtoD", n, cuMemcpyWithAttributesAsync(device, AS_DEVICE(host), n, &in_order, stream))
WAY(with_own, "memcpy DtoD", n, cuMemcpyWithAttributesAsync_ptsz(device, other, n, &in_order, NULL))
WAY(solid_with, "memcpy AtoD", SOLID_BYTES, cuMemcpy3DWithAttributesAsync(solids(n, A, D, A), 0, stream))
WAY(solid_with_own, "memcpy AtoA", SOLID_BYTES,
    cuMemcpy3DWithAttributesAsync_ptsz(solids(n, A, B, A), 0, NULL))

static NOINLINE void launch(void)
{
	account__add(&launches, app__launch(kernel, stream, LAUNCH_NS), LAUNCH_NS);
	KEEP_FRAME();
}

static void (*const calls[])(size_t n) = {
	flat_up, flat_down, flat_across, flat_beside, flat_either, flat_either_own, flat_in, flat_out,
	flat_far, flat_none, solid_up, solid_down, solid_in, solid_out, solid_within, solid_either, peer,
	peer_own, peer_now, peer_now_own, htoa, htoa_own, htoa_now, htoa_now_own, atoh, atoh_own, atoh_now,
	atoh_now_own, atod, atod_own, dtoa, dtoa_own, atoa, atoa_own, set8, set8_own, set8_now,
	set8_now_own, set16, set16_own, set16_now, set16_now_own, set32, set32_own, set32_now,
	set32_now_own, batch, batch_own, batch_new, batch_new_own, batch_large, solids_by, solids_by_own,
	solids_new, solids_new_own, with, with_own, solid_with, solid_with_own,
};

static NOINLINE void all(size_t n)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		calls[i](n);
	launch();
	MUST(cuCtxSynchronize());
	KEEP_FRAME();
}

/* --- other ways ------------------------------------------------------------------------------- */
#define CAPTURED 6

/* What was put into a graph is whole, and no more than what this program put there. */
static int capture(long rounds, size_t n)
{
	CUgraphExec exec;
	CUgraph graph;
	size_t nodes;

	for (long i = 0; i < rounds; i++) {
		MUST(cuStreamBeginCapture_v2(stream, CU_MODE_GLOBAL));
		MUST(cuMemcpy2DAsync_v2(FLAT(EITHER_H, EITHER_D), stream));
		MUST(cuMemcpy3DAsync_v2(SOLID(D, A), stream));
		MUST(cuMemcpy3DPeerAsync(PEER(D, D2), stream));
		MUST(cuMemcpyHtoAAsync_v2(array, 0, host, n, stream));
		MUST(cuMemsetD2D8Async(device, pitch, 1, n, ROWS, stream));
		MUST(cuMemcpyWithAttributesAsync(device, AS_DEVICE(host), n, &in_order, stream));
		MUST(cuStreamEndCapture(stream, &graph));
		MUST(cuGraphGetNodes(graph, NULL, &nodes));
		if (nodes != CAPTURED)
			app_failures++;
		MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
		MUST(cuGraphLaunch(exec, stream));
		MUST(cuStreamSynchronize(stream));
	}
	printf("captured %ld, failures %lu\n", rounds * CAPTURED, app_failures);
	return app_failures != 0;
}

static unsigned long refused;

static void wants(CUresult want, CUresult got)
{
	refused++;
	if (want == got)
		return;
	printf("%lu: %d, not %d\n", refused, got, want);
	app_failures++;
}

/* Each is refused before the driver looks at what it was given, or since that is wrong. */
static void refused_calls(size_t n)
{
	CUcopy2D *bad2 = (CUcopy2D *)16, flat_wrong = *FLAT(H, D);
	CUcopy3D *bad3 = (CUcopy3D *)16, solid_wrong = *SOLID(D, D2);
	struct batch *b = batch_of(n, ON_DEVICE(device), host);
	size_t at = 7;

	MUST(cuCtxSetCurrent(NULL));
	wants(CU_INVALID_CONTEXT, cuMemcpy2D_v2(bad2));
	wants(CU_INVALID_CONTEXT, cuMemcpy2DUnaligned_v2_ptds(bad2));
	wants(CU_INVALID_CONTEXT, cuMemcpy2DAsync_v2(bad2, NULL));
	wants(CU_INVALID_CONTEXT, cuMemcpy3D_v2(bad3));
	wants(CU_INVALID_CONTEXT, cuMemcpy3DAsync_v2_ptsz(bad3, NULL));
	wants(CU_INVALID_CONTEXT, cuMemcpy3DPeer(bad3));
	wants(CU_INVALID_CONTEXT,
	      cuMemcpyBatchAsync_v2_ptsz((void *)16, (void *)16, (void *)16, 9, NULL, NULL, 1, NULL));
	wants(CU_INVALID_CONTEXT, cuMemcpy3DBatchAsync_v2_ptsz(9, (void *)16, 0, NULL));
	wants(CU_INVALID_CONTEXT, cuMemcpy3DWithAttributesAsync_ptsz((void *)16, 0, NULL));
	MUST(cuCtxSetCurrent(context));
	wants(CU_INVALID_VALUE, cuMemcpy2DAsync_v2(NULL, stream));
	wants(CU_INVALID_VALUE, cuMemcpy3D_v2(NULL));
	wants(CU_INVALID_VALUE, cuMemcpy3DPeerAsync(NULL, stream));
	wants(CU_INVALID_CONTEXT, cuMemcpy3DPeerAsync(&solid_wrong, stream));
	flat_wrong.from.type = 9;
	wants(CU_INVALID_VALUE, cuMemcpy2D_v2(&flat_wrong));
	solid_wrong.to.pitch = n - 1;
	wants(CU_INVALID_VALUE, cuMemcpy3DAsync_v2(&solid_wrong, stream));
	wants(CU_INVALID_VALUE, cuMemcpyHtoA_v2(NULL, 0, host, 8));
	wants(CU_INVALID_VALUE, cuMemcpyAtoA_v2(array, 0, array_b, ~(size_t)0, 8));
	wants(CU_INVALID_VALUE, cuMemsetD2D8Async(device, 8, 1, 9, 2, stream));
	wants(CU_INVALID_VALUE, cuMemcpyBatchAsync(b->to, b->from, b->sizes, 0, &in_order, &first_of_all, 1,
						    &at, stream));
	wants(CU_INVALID_VALUE, cuMemcpyBatchAsync_v2(NULL, NULL, NULL, 3, &in_order, &first_of_all, 1,
						       stream));
	wants(CU_INVALID_VALUE, cuMemcpyBatchAsync_v2(BATCH(b, 3), NULL));
	wants(CU_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(2, NULL, 0, stream));
	wants(CU_INVALID_VALUE, cuMemcpyWithAttributesAsync(device, AS_DEVICE(host), n, NULL, stream));
	if (at != SIZE_MAX)
		app_failures++;
}

static int fail(long rounds, size_t n)
{
	for (long i = 0; i < rounds; i++)
		refused_calls(n);
	printf("refused %lu, failures %lu\n", refused, app_failures);
	return app_failures != 0;
}

int main(int argc, char **argv)
{
	bool same = argc > 2 && !strcmp(argv[1], "same");
	bool other_way = argc > 2 && (same || !strcmp(argv[1], "capture") || !strcmp(argv[1], "fail"));
	long rounds = argc > 1 && !other_way ? atol(argv[1]) : argc > 2 ? atol(argv[2]) : 20;
	size_t bytes = argc > 2 && !other_way ? strtoul(argv[2], NULL, 10) & ~(size_t)(ELEMENT - 1) : 4096;
	CUarrayShape shape = { .height = ROWS, .depth = LAYERS, .format = CU_FORMAT_FLOAT, .channels = 1 };
	size_t room;

	pitch = bytes + 8 * (size_t)rounds + 32;
	room = pitch * (ROWS + 1) * LAYERS + pitch + 64 * MANY;
	shape.width = pitch / ELEMENT;
	context = app__start();
	kernel = app__function(app__module(PTX(SPIN("beside"))), "spin_beside");
	stream = app__stream();
	MUST(cuMemAlloc_v2(&device, room));
	MUST(cuMemAlloc_v2(&other, room));
	MUST(cuMemHostAlloc((void **)&host, room, 0));
	MUST(cuArray3DCreate_v2(&array, &shape));
	MUST(cuArray3DCreate_v2(&array_b, &shape));
	memset(host, 0, room);
	if (other_way && !same)
		return !strcmp(argv[1], "fail") ? fail(rounds, bytes) : capture(rounds, bytes);
	for (long i = 0; i < rounds; i++)
		all(bytes + (same ? 0 : 8 * (size_t)i));
	for (size_t i = 0; i < nr_ways; i++)
		printf("copy %lu %llu %llu %s %s\n", ways[i].count, (unsigned long long)ways[i].bytes,
		       (unsigned long long)ways[i].ns, ways[i].path, ways[i].what);
	account__print(&launches, 1);
	account__print_total(&launches, 1);
	return app_failures != 0;
}
