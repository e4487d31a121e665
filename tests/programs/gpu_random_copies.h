/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The copies and sets of gpu_random, by all entries: printed as launches are, with kind and bytes. */
#ifndef TESTS_PROGRAMS_GPU_RANDOM_COPIES_H
#define TESTS_PROGRAMS_GPU_RANDOM_COPIES_H
#include "tests/programs/gpu_random_launch.h"

#define COPY_PITCH 512
#define COPY_ROWS 4
#define COPY_LAYERS 2
#define COPY_ROOM (COPY_PITCH * COPY_ROWS * COPY_LAYERS)
#define ELEMENT 4
#define MAX_BATCH 12

static CUdeviceptr device_memory;
static char *host_memory;
static CUarray arrays[2];

enum copy_shape { LINE, SET, FLAT, SOLID, BETWEEN, LIST, BOXES };

struct copy {
	struct where where;
	bool wait, bad;
	size_t n, rows, layers;		/* n: bytes of a row, as many as fill whole elements */
	char from, to;			/* H, D or A */
	CUdeviceptr at[2];		/* from, to */
	CUcopy2D flat;
	CUcopy3D solid;
	size_t count;
	CUdeviceptr ends[2][MAX_BATCH];
	size_t sizes[MAX_BATCH];
	CUbatchCopy boxes[MAX_BATCH];
	CUcopyAttributes order;
};

/* With a stream, and without: by the thread's own form or not. */
#define ASYNC(entry, ...)									\
	(c->where.own ? entry##_ptsz(__VA_ARGS__, c->where.h) : entry(__VA_ARGS__, c->where.h))
#define WAITS(entry, ...) (c->where.own ? entry##_ptds(__VA_ARGS__) : entry(__VA_ARGS__))
#define BOTH(name, async, waits, ...)								\
	static CUresult name(struct copy *c)							\
	{											\
		return c->wait ? WAITS(waits, __VA_ARGS__) : ASYNC(async, __VA_ARGS__);		\
	}
#define ONE(name, how, entry, ...)								\
	static CUresult name(struct copy *c) { return how(entry, __VA_ARGS__); }
#define HOST_OF(p) ((void *)(uintptr_t)(p))
#define FROM c->at[0]
#define TO c->at[1]
#define ARRAY(i) (c->bad ? NULL : arrays[i])
#define PEER_CTX (c->bad ? NULL : contexts[0].h)

BOTH(do_htod, cuMemcpyHtoDAsync_v2, cuMemcpyHtoD_v2, TO, HOST_OF(FROM), c->n)
BOTH(do_dtoh, cuMemcpyDtoHAsync_v2, cuMemcpyDtoH_v2, HOST_OF(TO), FROM, c->n)
BOTH(do_dtod, cuMemcpyDtoDAsync_v2, cuMemcpyDtoD_v2, TO, FROM, c->n)
BOTH(do_any, cuMemcpyAsync, cuMemcpy, TO, FROM, c->n)
BOTH(do_peer, cuMemcpyPeerAsync, cuMemcpyPeer, TO, PEER_CTX, FROM, PEER_CTX, c->n)
BOTH(do_set8, cuMemsetD8Async, cuMemsetD8_v2, TO, 7, c->n)
BOTH(do_set16, cuMemsetD16Async, cuMemsetD16_v2, TO, 7, c->n / 2)
BOTH(do_set32, cuMemsetD32Async, cuMemsetD32_v2, TO, 7, c->n / 4)
BOTH(do_htoa, cuMemcpyHtoAAsync_v2, cuMemcpyHtoA_v2, ARRAY(0), 8, HOST_OF(FROM), c->n)
BOTH(do_atoh, cuMemcpyAtoHAsync_v2, cuMemcpyAtoH_v2, HOST_OF(TO), ARRAY(0), 4, c->n)
ONE(do_atod, WAITS, cuMemcpyAtoD_v2, TO, ARRAY(1), 4, c->n)
ONE(do_dtoa, WAITS, cuMemcpyDtoA_v2, ARRAY(1), 0, FROM, c->n)
ONE(do_atoa, WAITS, cuMemcpyAtoA_v2, ARRAY(1), 0, ARRAY(0), 12, c->n)
BOTH(do_flat, cuMemcpy2DAsync_v2, cuMemcpy2D_v2, c->bad ? NULL : &c->flat)
ONE(do_unaligned, WAITS, cuMemcpy2DUnaligned_v2, c->bad ? NULL : &c->flat)
BOTH(do_solid, cuMemcpy3DAsync_v2, cuMemcpy3D_v2, c->bad ? NULL : &c->solid)
BOTH(do_between, cuMemcpy3DPeerAsync, cuMemcpy3DPeer, c->bad ? NULL : &c->solid)
BOTH(do_flat8, cuMemsetD2D8Async, cuMemsetD2D8_v2, TO, COPY_PITCH, 7, c->n, c->rows)
BOTH(do_flat16, cuMemsetD2D16Async, cuMemsetD2D16_v2, TO, COPY_PITCH, 7, c->n / 2, c->rows)
BOTH(do_flat32, cuMemsetD2D32Async, cuMemsetD2D32_v2, TO, COPY_PITCH, 7, c->n / 4, c->rows)
#define BATCH c->ends[1], c->ends[0], c->sizes, c->bad ? 0 : c->count, &c->order, &(size_t){ 0 }, 1
ONE(do_batch, ASYNC, cuMemcpyBatchAsync, BATCH, NULL)
ONE(do_batch_v2, ASYNC, cuMemcpyBatchAsync_v2, BATCH)
ONE(do_boxes, ASYNC, cuMemcpy3DBatchAsync, c->bad ? 0 : c->count, c->boxes, NULL, 0)
ONE(do_boxes_v2, ASYNC, cuMemcpy3DBatchAsync_v2, c->bad ? 0 : c->count, c->boxes, 0)
ONE(do_with, ASYNC, cuMemcpyWithAttributesAsync, TO, FROM, c->n, c->bad ? NULL : &c->order)
ONE(do_box_with, ASYNC, cuMemcpy3DWithAttributesAsync, c->boxes, c->bad)

static const struct copy_entry {
	const char *async, *waits;	/* NULL: there is none */
	CUresult (*call)(struct copy *c);
	enum copy_shape shape;
	const char *ends;		/* from, to; NULL: by chance */
} copy_entries[] = {
	{ "cuMemcpyHtoDAsync_v2", "cuMemcpyHtoD_v2", do_htod, LINE, "HD" },
	{ "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoH_v2", do_dtoh, LINE, "DH" },
	{ "cuMemcpyDtoDAsync_v2", "cuMemcpyDtoD_v2", do_dtod, LINE, "DD" },
	{ "cuMemcpyAsync", "cuMemcpy", do_any, LINE, NULL },
	{ "cuMemcpyPeerAsync", "cuMemcpyPeer", do_peer, LINE, "PP" },
	{ "cuMemsetD8Async", "cuMemsetD8_v2", do_set8, LINE, "SS" },
	{ "cuMemsetD16Async", "cuMemsetD16_v2", do_set16, LINE, "SS" },
	{ "cuMemsetD32Async", "cuMemsetD32_v2", do_set32, LINE, "SS" },
	{ "cuMemcpyHtoAAsync_v2", "cuMemcpyHtoA_v2", do_htoa, LINE, "HA" },
	{ "cuMemcpyAtoHAsync_v2", "cuMemcpyAtoH_v2", do_atoh, LINE, "AH" },
	{ NULL, "cuMemcpyAtoD_v2", do_atod, LINE, "AD" },
	{ NULL, "cuMemcpyDtoA_v2", do_dtoa, LINE, "DA" },
	{ NULL, "cuMemcpyAtoA_v2", do_atoa, LINE, "AA" },
	{ "cuMemcpy2DAsync_v2", "cuMemcpy2D_v2", do_flat, FLAT, NULL },
	{ NULL, "cuMemcpy2DUnaligned_v2", do_unaligned, FLAT, NULL },
	{ "cuMemcpy3DAsync_v2", "cuMemcpy3D_v2", do_solid, SOLID, NULL },
	{ "cuMemcpy3DPeerAsync", "cuMemcpy3DPeer", do_between, BETWEEN, NULL },
	{ "cuMemsetD2D8Async", "cuMemsetD2D8_v2", do_flat8, SET, "SS" },
	{ "cuMemsetD2D16Async", "cuMemsetD2D16_v2", do_flat16, SET, "SS" },
	{ "cuMemsetD2D32Async", "cuMemsetD2D32_v2", do_flat32, SET, "SS" },
	{ "cuMemcpyBatchAsync", NULL, do_batch, LIST, NULL },
	{ "cuMemcpyBatchAsync_v2", NULL, do_batch_v2, LIST, NULL },
	{ "cuMemcpy3DBatchAsync", NULL, do_boxes, BOXES, NULL },
	{ "cuMemcpy3DBatchAsync_v2", NULL, do_boxes_v2, BOXES, NULL },
	{ "cuMemcpyWithAttributesAsync", NULL, do_with, LINE, NULL },
	{ "cuMemcpy3DWithAttributesAsync", NULL, do_box_with, BOXES, NULL },
};

static CUdeviceptr address_in(char end)
{
	return end == 'H' ? (CUdeviceptr)(uintptr_t)host_memory : device_memory;
}

/* By its type, or by an address of which the type isn't said. */
static CUside3D side_in(char end, CUcontext ctx)
{
	CUside3D s = { .pitch = COPY_PITCH, .height = COPY_ROWS, .context = ctx };

	if (end == 'A')
		return (CUside3D){ .type = CU_MEMORY_ARRAY, .array = arrays[below(2)], .context = ctx };
	s.device = address_in(end);
	s.type = CU_MEMORY_UNIFIED;
	if (one_in(3))
		return s;
	s.host = HOST_OF(s.device);
	s.type = end == 'H' ? CU_MEMORY_HOST : CU_MEMORY_DEVICE;
	return s;
}

static CUside2D flattened(CUside3D s)
{
	return (CUside2D){ s.x, s.y, s.type, s.host, s.device, s.array, s.pitch };
}

static CUoperand operand_in(char end)
{
	if (end == 'A')
		return (CUoperand){ CU_OPERAND_ARRAY, { .array = { .array = arrays[0] } } };
	return (CUoperand){ CU_OPERAND_POINTER, { .pointer = { .at = address_in(end) } } };
}

/* One more of it: of different ones it is "memcpy". */
static void kind_of(char kind[16], char from, char to)
{
	char one[16];

	snprintf(one, sizeof(one), from == 'S' ? "memset" : "memcpy_%cto%c", from, to);
	strcpy(kind, !kind[0] || !strcmp(kind, one) ? one : "memcpy");
}

/* All but entry, stream and how many: *kind and its bytes. */
static size_t copy__fill(struct copy *c, const struct copy_entry *e, char kind[16])
{
	bool arrays_too = e->shape != LINE && e->shape != LIST;
	CUcontext ctx = e->shape == BETWEEN ? contexts[0].h : NULL;
	const char *some = "HDA";
	size_t bytes;

	c->n = one_in(20) && e->shape != BOXES ? 0 : 4 * (1 + below(100));
	c->rows = 1 + below(COPY_ROWS);
	c->layers = 1 + below(COPY_LAYERS);
	c->order.order = CU_ORDER_STREAM;
	c->from = e->ends ? e->ends[0] : some[below(arrays_too ? 3 : 2)];
	c->to = e->ends ? e->ends[1] : some[below(arrays_too ? 3 : 2)];
	c->at[0] = address_in(c->from);
	c->at[1] = address_in(c->to);
	c->solid = (CUcopy3D){ side_in(c->from, ctx), side_in(c->to, ctx), c->n, c->rows, c->layers };
	c->flat = (CUcopy2D){ flattened(c->solid.from), flattened(c->solid.to), c->n, c->rows };
	kind_of(kind, c->from, c->to);
	if (e->shape == BETWEEN && c->from != 'H' && c->to != 'H')
		strcpy(kind, "memcpy_PtoP");
	bytes = c->n;
	if (e->shape == SET || e->shape == FLAT || e->shape == SOLID || e->shape == BETWEEN)
		bytes *= c->rows * (e->shape >= SOLID ? c->layers : 1);
	if (e->shape < LIST)
		return bytes;
	c->count = e->call == do_box_with ? 1 : 1 + below(MAX_BATCH);
	bytes = 0;
	for (size_t i = 0; i < c->count; i++) {
		/* Mostly as the first one. */
		char from = i && one_in(30) ? 'D' : c->from, to = i && one_in(30) ? 'H' : c->to;
		bool array = from == 'A' || to == 'A';

		c->ends[0][i] = address_in(from) + 16 * i;
		c->ends[1][i] = address_in(to) + 16 * i;
		c->sizes[i] = 1 + below(16);
		c->boxes[i] = (CUbatchCopy){ operand_in(from), operand_in(to), c->n / (array ? ELEMENT : 1),
					     c->rows, c->layers, CU_ORDER_ANY, 0 };
		bytes += e->shape == LIST ? c->sizes[i] : c->n * c->rows * c->layers;
		kind_of(kind, from, to);
	}
	return bytes;
}

/* Into that stream, or, if it may wait, by a call without one. */
static void copy_into(struct where w, bool may_wait)
{
	const struct copy_entry *e = &copy_entries[below(NR(copy_entries))];
	struct copy c = { .where = w };
	int asked, status = 0, ctx, current = ctx__now(), self = me;
	char kind[16] = "", key[32];
	size_t bytes;
	CUresult r;

	c.wait = !e->async || (e->waits && one_in(3));
	if (c.wait && !may_wait)
		return;
	if (c.wait)
		c.where = where__of(NULL, false);
	c.where.own = one_in(2);
	bytes = copy__fill(&c, e, kind);
	c.bad = one_in(30) && (e->shape >= FLAT || c.from == 'A' || c.to == 'A' || c.from == 'P');
	strcpy(key, where__key(&c.where, &ctx));
	asked = c.where.own ? cuStreamIsCapturing_ptsz(c.where.h, &status) :
			      cuStreamIsCapturing(c.where.h, &status);
	launches++;
	r = e->call(&c);
	me = self;
	printf("t%d launch n=%d entry=%s%s kernel=%s grid=%zu block=- shared=- ns=- attributes=000 hooked=1 "
	       "stream=%s key=%s ctx=%d current=%d asked=%d:%d during=0 = %d\n", me, launches,
	       c.wait ? e->waits : e->async, !c.where.own ? "" : c.wait ? "_ptds" : "_ptsz", kind, bytes,
	       c.where.text, key, ctx, current, asked, status, r);
}

static void make_memory(void)
{
	CUarrayShape shape = { COPY_PITCH / ELEMENT, COPY_ROWS, COPY_LAYERS, CU_FORMAT_FLOAT, 1, 0 };

	MUST(cuMemAlloc_v2(&device_memory, COPY_ROOM));
	MUST(cuMemAllocHost_v2((void **)&host_memory, COPY_ROOM));
	memset(host_memory, 0, COPY_ROOM);
	for (int i = 0; i < 2; i++)
		MUST(cuArray3DCreate_v2(&arrays[i], &shape));
}

#endif
