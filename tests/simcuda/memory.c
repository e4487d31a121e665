// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Memory: the host's stands in for the device's. Copies and sets take 1 us and 8 bytes a
 * nanosecond of the stream; the bytes move at the call.
 */
#include "sim.h"
#include <stdlib.h>
#include <string.h>

#define COPY_NS(bytes) ((int64_t)((bytes) / 8) + 1000)

static void *host(CUdeviceptr p)
{
	return (void *)(uintptr_t)p;
}

/* Held: its line is written when it has been placed, by whoever does that. */
static void push(CUstream s, const struct work *w, const struct truth_line *l)
{
	struct queue_item *i = queue__push(s, I_WORK);

	i->work = *w;
	if (!copies_on)
		return;
	i->truth = malloc(sizeof(*l));
	*i->truth = *l;
}

CUresult copy__occupy(const struct op *op, CUstream *s, bool *done)
{
	struct thread *t = thread__self();
	struct work w = { .ns = COPY_NS(op->bytes), .copy = true };
	struct truth_line line;
	CUgraphNode node = NULL;
	CUresult r = stream__resolve(t, op->stream, op->ptsz, s);

	*done = false;
	if (!r && !op->async)
		r = capture__unsafe(t);
	if (!r && capture__any())
		r = capture__node(*s, strcmp(op->kind, "memset") ? CU_NODE_MEMCPY : CU_NODE_MEMSET, &node);
	if (r)
		return r;
	line = (struct truth_line){ .entry = op->entry, .copy = op->kind, .bytes = op->bytes,
				    .stream = op->stream, .ctx_id = (*s)->ctx->id, .tid = t->tid };
	if (node) {
		node->full_ns = w.ns;
		capture__unlock();
		*done = true;
		trace__write(t, &line, SIM_NONE, SIM_NONE);
		return CU_OK;
	}
	count(t, C_copies);
	stream__reserve(*s, 1);
	if (queue__holds(*s)) {
		push(*s, &w, &line);
		stream__unlock(*s);
		return CU_OK;
	}
	stream__place(*s, &w, now_ns());
	stream__unlock(*s);
	trace__write(t, &line, w.start, w.end);
	return CU_OK;
}

/* With a stream the call waits only where a device's memory goes into the host's that isn't pinned. */
static bool returns_at_once(const struct op *op, const char *kind, const void *to)
{
	return op->async && (strcmp(kind, "memcpy_DtoH") || memory__type(to) == MEMORY_PINNED);
}

CUresult copy__finish(CUstream s, bool async)
{
	if (async)
		return CU_OK;
	trace__flush(thread__self());
	return stream__wait_done(s);
}

/* Of a copy between any two addresses. */
static const char *direction(const void *to, const void *from)
{
	return copy__name(copy__place(from), copy__place(to));
}

static CUresult copy(const struct op *op, void *to, const void *from)
{
	struct op whole = *op;
	CUstream s;
	bool done;
	CUresult r;

	if (!whole.kind)
		whole.kind = direction(to, from);
	r = copy__occupy(&whole, &s, &done);
	if (r || done)
		return r;
	if (op->bytes)
		memmove(to, from, op->bytes);
	return copy__finish(s, returns_at_once(&whole, whole.kind, to));
}

enum place copy__place(const void *p)
{
	return memory__type(p) == MEMORY_DEVICE ? OF_DEVICE : OF_HOST;
}

const char *copy__name(enum place from, enum place to)
{
	static const char *const names[3][3] = {
		[OF_HOST] = { "memcpy_HtoH", "memcpy_HtoD", "memcpy_HtoA" },
		[OF_DEVICE] = { "memcpy_DtoH", "memcpy_DtoD", "memcpy_DtoA" },
		[OF_ARRAY] = { "memcpy_AtoH", "memcpy_AtoD", "memcpy_AtoA" },
	};

	return names[from][to];
}

/* The value's bytes again and again; sets without a stream run beside the host, too. */
static CUresult set(const struct op *op, CUdeviceptr to, const void *value, size_t size)
{
	CUstream s;
	bool done;
	CUresult r = copy__occupy(op, &s, &done);

	for (size_t i = 0; !r && !done && i < op->bytes; i += size)
		memcpy((char *)host(to) + i, value, size);
	return r;
}

#define COPY(name, ptsz_, to_type, to, from_type, from, kind_)                                    \
	API(name, to_type d, from_type s, size_t n)                                               \
	{                                                                                         \
		ENTER();                                                                          \
		RET(copy(&(struct op){ #name, kind_, n, NULL, ptsz_, false }, to, from));         \
	}
#define COPY_ASYNC(name, ptsz_, to_type, to, from_type, from, kind_)                              \
	API(name, to_type d, from_type s, size_t n, CUstream stream)                              \
	{                                                                                         \
		ENTER();                                                                          \
		RET(copy(&(struct op){ #name, kind_, n, stream, ptsz_, true }, to, from));        \
	}
COPY(cuMemcpy, false, CUdeviceptr, host(d), CUdeviceptr, host(s), NULL)
COPY(cuMemcpy_ptds, true, CUdeviceptr, host(d), CUdeviceptr, host(s), NULL)
COPY(cuMemcpyHtoD_v2, false, CUdeviceptr, host(d), const void *, s, "memcpy_HtoD")
COPY(cuMemcpyHtoD_v2_ptds, true, CUdeviceptr, host(d), const void *, s, "memcpy_HtoD")
COPY(cuMemcpyDtoH_v2, false, void *, d, CUdeviceptr, host(s), "memcpy_DtoH")
COPY(cuMemcpyDtoH_v2_ptds, true, void *, d, CUdeviceptr, host(s), "memcpy_DtoH")
COPY(cuMemcpyDtoD_v2, false, CUdeviceptr, host(d), CUdeviceptr, host(s), "memcpy_DtoD")
COPY(cuMemcpyDtoD_v2_ptds, true, CUdeviceptr, host(d), CUdeviceptr, host(s), "memcpy_DtoD")
COPY_ASYNC(cuMemcpyAsync, false, CUdeviceptr, host(d), CUdeviceptr, host(s), NULL)
COPY_ASYNC(cuMemcpyAsync_ptsz, true, CUdeviceptr, host(d), CUdeviceptr, host(s), NULL)
COPY_ASYNC(cuMemcpyHtoDAsync_v2, false, CUdeviceptr, host(d), const void *, s, "memcpy_HtoD")
COPY_ASYNC(cuMemcpyHtoDAsync_v2_ptsz, true, CUdeviceptr, host(d), const void *, s, "memcpy_HtoD")
COPY_ASYNC(cuMemcpyDtoHAsync_v2, false, void *, d, CUdeviceptr, host(s), "memcpy_DtoH")
COPY_ASYNC(cuMemcpyDtoHAsync_v2_ptsz, true, void *, d, CUdeviceptr, host(s), "memcpy_DtoH")
COPY_ASYNC(cuMemcpyDtoDAsync_v2, false, CUdeviceptr, host(d), CUdeviceptr, host(s), "memcpy_DtoD")
COPY_ASYNC(cuMemcpyDtoDAsync_v2_ptsz, true, CUdeviceptr, host(d), CUdeviceptr, host(s), "memcpy_DtoD")

#define PEER(name, ptsz_)                                                                         \
	API(name, CUdeviceptr d, CUcontext dc, CUdeviceptr s, CUcontext sc, size_t n)             \
	{                                                                                         \
		ENTER();                                                                          \
		if (!dc || !sc)                                                                   \
			RET(CU_INVALID_CONTEXT);                                                  \
		RET(copy(&(struct op){ #name, "memcpy_PtoP", n, NULL, ptsz_, false }, host(d),    \
			 host(s)));                                                               \
	}
#define PEER_ASYNC(name, ptsz_)                                                                   \
	API(name, CUdeviceptr d, CUcontext dc, CUdeviceptr s, CUcontext sc, size_t n,             \
	    CUstream stream)                                                                      \
	{                                                                                         \
		ENTER();                                                                          \
		if (!dc || !sc)                                                                   \
			RET(CU_INVALID_CONTEXT);                                                  \
		RET(copy(&(struct op){ #name, "memcpy_PtoP", n, stream, ptsz_, true }, host(d),   \
			 host(s)));                                                               \
	}
PEER(cuMemcpyPeer, false)
PEER(cuMemcpyPeer_ptds, true)
PEER_ASYNC(cuMemcpyPeerAsync, false)
PEER_ASYNC(cuMemcpyPeerAsync_ptsz, true)

#define SET(name, ptsz_, type)                                                                    \
	API(name, CUdeviceptr d, type v, size_t n)                                                \
	{                                                                                         \
		ENTER();                                                                          \
		RET(set(&(struct op){ #name, "memset", n * sizeof(v), NULL, ptsz_, true }, d, &v, \
			sizeof(v)));                                                              \
	}
#define SET_ASYNC(name, ptsz_, type)                                                              \
	API(name, CUdeviceptr d, type v, size_t n, CUstream stream)                               \
	{                                                                                         \
		ENTER();                                                                          \
		RET(set(&(struct op){ #name, "memset", n * sizeof(v), stream, ptsz_, true }, d,   \
			&v, sizeof(v)));                                                          \
	}
SET(cuMemsetD8_v2, false, unsigned char)
SET(cuMemsetD8_v2_ptds, true, unsigned char)
SET(cuMemsetD16_v2, false, unsigned short)
SET(cuMemsetD16_v2_ptds, true, unsigned short)
SET(cuMemsetD32_v2, false, unsigned)
SET(cuMemsetD32_v2_ptds, true, unsigned)
SET_ASYNC(cuMemsetD8Async, false, unsigned char)
SET_ASYNC(cuMemsetD8Async_ptsz, true, unsigned char)
SET_ASYNC(cuMemsetD16Async, false, unsigned short)
SET_ASYNC(cuMemsetD16Async_ptsz, true, unsigned short)
SET_ASYNC(cuMemsetD32Async, false, unsigned)
SET_ASYNC(cuMemsetD32Async_ptsz, true, unsigned)

/* --- allocation ------------------------------------------------------------------------------- */
API(cuMemGetInfo_v2, size_t *unused, size_t *total)
{
	ENTER();
	*unused = (size_t)1 << 33;
	*total = (size_t)1 << 34;
	RET(CU_OK);
}

API(cuMemAlloc_v2, CUdeviceptr *p, size_t n)
{
	struct thread *t = thread__self();
	CUcontext c;
	CUresult r;

	ENTER();
	r = ctx__current(t, &c);
	if (!r && (!p || !n))
		r = CU_INVALID_VALUE;
	if (!r)
		r = capture__unsafe(t);
	if (!r)
		*p = (CUdeviceptr)(uintptr_t)memory__allocate(n, MEMORY_DEVICE);
	RET(r);
}

API(cuMemFree_v2, CUdeviceptr p)
{
	ENTER();
	memory__free(host(p));
	RET(CU_OK);
}

static CUresult host_alloc(void **p, size_t n)
{
	if (!p || !n)
		return CU_INVALID_VALUE;
	*p = memory__allocate(n, MEMORY_PINNED);
	return CU_OK;
}

API(cuMemAllocHost_v2, void **p, size_t n) { ENTER(); RET(host_alloc(p, n)); }

API(cuMemHostAlloc, void **p, size_t n, unsigned flags)
{
	(void)flags;
	ENTER();
	RET(host_alloc(p, n));
}

API(cuMemFreeHost, void *p)
{
	ENTER();
	memory__free(p);
	RET(CU_OK);
}

API(cuMemHostGetDevicePointer_v2, CUdeviceptr *d, void *p, unsigned flags)
{
	(void)flags;
	ENTER();
	*d = (CUdeviceptr)(uintptr_t)p;
	RET(CU_OK);
}

static CUresult alloc_async(CUdeviceptr *p, size_t n, CUstream handle, bool ptsz)
{
	CUstream s;
	CUresult r = stream__resolve(thread__self(), handle, ptsz, &s);

	if (!r)
		*p = (CUdeviceptr)(uintptr_t)memory__allocate(n, MEMORY_DEVICE);
	return r;
}

static CUresult free_async(CUdeviceptr p, CUstream handle, bool ptsz)
{
	CUstream s;
	CUresult r = stream__resolve(thread__self(), handle, ptsz, &s);

	if (!r)
		memory__free(host(p));
	return r;
}

API(cuMemAllocAsync, CUdeviceptr *p, size_t n, CUstream s)
{
	ENTER();
	RET(alloc_async(p, n, s, false));
}

API(cuMemAllocAsync_ptsz, CUdeviceptr *p, size_t n, CUstream s)
{
	ENTER();
	RET(alloc_async(p, n, s, true));
}

API(cuMemFreeAsync, CUdeviceptr p, CUstream s) { ENTER(); RET(free_async(p, s, false)); }
API(cuMemFreeAsync_ptsz, CUdeviceptr p, CUstream s) { ENTER(); RET(free_async(p, s, true)); }
