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

/* Takes its place in the stream; *done: it has become a node instead. */
static CUresult occupy(CUstream handle, bool ptsz, bool async, int node_type, size_t bytes,
		       CUstream *s, bool *done)
{
	struct thread *t = thread__self();
	struct work w = { .ns = COPY_NS(bytes) };
	CUgraphNode node = NULL;
	CUresult r = stream__resolve(t, handle, ptsz, s);

	*done = false;
	if (!r && !async)
		r = capture__unsafe(t);
	if (!r && capture__any())
		r = capture__node(*s, node_type, &node);
	if (r)
		return r;
	if (node) {
		node->ns = w.ns;
		capture__unlock();
		*done = true;
		return CU_OK;
	}
	count(t, C_copies);
	stream__reserve(*s, 1);
	if (queue__holds(*s))
		queue__push(*s, I_WORK)->work = w;
	else
		stream__place(*s, &w, now_ns());
	stream__unlock(*s);
	return CU_OK;
}

static CUresult finish(CUstream s, bool async)
{
	if (async)
		return CU_OK;
	trace__flush(thread__self());
	return stream__wait_done(s);
}

static CUresult copy(void *to, const void *from, size_t n, CUstream handle, bool ptsz, bool async)
{
	CUstream s;
	bool done;
	CUresult r = occupy(handle, ptsz, async, CU_NODE_MEMCPY, n, &s, &done);

	if (r || done)
		return r;
	if (n)
		memmove(to, from, n);
	return finish(s, async);
}

static CUresult set8(CUdeviceptr to, unsigned char v, size_t n, CUstream handle, bool ptsz)
{
	CUstream s;
	bool done;
	CUresult r = occupy(handle, ptsz, true, CU_NODE_MEMSET, n, &s, &done);

	if (!r && !done && n)
		memset(host(to), v, n);
	return r;
}

static CUresult set32(CUdeviceptr to, unsigned v, size_t n, CUstream handle, bool ptsz)
{
	CUstream s;
	bool done;
	CUresult r = occupy(handle, ptsz, true, CU_NODE_MEMSET, n * 4, &s, &done);

	for (size_t i = 0; !r && !done && i < n; i++)
		((unsigned *)host(to))[i] = v;
	return r;
}

/* Sets without a stream run beside the host too; only copies wait. */
#define COPY(name, ptsz, to_type, to, from_type, from)                                            \
	API(name, to_type d, from_type s, size_t n)                                               \
	{                                                                                         \
		ENTER();                                                                          \
		RET(copy(to, from, n, NULL, ptsz, false));                                        \
	}
#define COPY_ASYNC(name, ptsz, to_type, to, from_type, from)                                      \
	API(name, to_type d, from_type s, size_t n, CUstream stream)                              \
	{                                                                                         \
		ENTER();                                                                          \
		RET(copy(to, from, n, stream, ptsz, true));                                       \
	}
COPY(cuMemcpy, false, CUdeviceptr, host(d), CUdeviceptr, host(s))
COPY(cuMemcpy_ptds, true, CUdeviceptr, host(d), CUdeviceptr, host(s))
COPY(cuMemcpyHtoD_v2, false, CUdeviceptr, host(d), const void *, s)
COPY(cuMemcpyHtoD_v2_ptds, true, CUdeviceptr, host(d), const void *, s)
COPY(cuMemcpyDtoH_v2, false, void *, d, CUdeviceptr, host(s))
COPY(cuMemcpyDtoH_v2_ptds, true, void *, d, CUdeviceptr, host(s))
COPY(cuMemcpyDtoD_v2, false, CUdeviceptr, host(d), CUdeviceptr, host(s))
COPY(cuMemcpyDtoD_v2_ptds, true, CUdeviceptr, host(d), CUdeviceptr, host(s))
COPY_ASYNC(cuMemcpyAsync, false, CUdeviceptr, host(d), CUdeviceptr, host(s))
COPY_ASYNC(cuMemcpyAsync_ptsz, true, CUdeviceptr, host(d), CUdeviceptr, host(s))
COPY_ASYNC(cuMemcpyHtoDAsync_v2, false, CUdeviceptr, host(d), const void *, s)
COPY_ASYNC(cuMemcpyHtoDAsync_v2_ptsz, true, CUdeviceptr, host(d), const void *, s)
COPY_ASYNC(cuMemcpyDtoHAsync_v2, false, void *, d, CUdeviceptr, host(s))
COPY_ASYNC(cuMemcpyDtoHAsync_v2_ptsz, true, void *, d, CUdeviceptr, host(s))
COPY_ASYNC(cuMemcpyDtoDAsync_v2, false, CUdeviceptr, host(d), CUdeviceptr, host(s))
COPY_ASYNC(cuMemcpyDtoDAsync_v2_ptsz, true, CUdeviceptr, host(d), CUdeviceptr, host(s))

#define SET(name, set, ptsz, type)                                                                \
	API(name, CUdeviceptr d, type v, size_t n)                                                \
	{                                                                                         \
		ENTER();                                                                          \
		RET(set(d, v, n, NULL, ptsz));                                                    \
	}
#define SET_ASYNC(name, set, ptsz, type)                                                          \
	API(name, CUdeviceptr d, type v, size_t n, CUstream stream)                               \
	{                                                                                         \
		ENTER();                                                                          \
		RET(set(d, v, n, stream, ptsz));                                                  \
	}
SET(cuMemsetD8_v2, set8, false, unsigned char)
SET(cuMemsetD8_v2_ptds, set8, true, unsigned char)
SET(cuMemsetD32_v2, set32, false, unsigned)
SET(cuMemsetD32_v2_ptds, set32, true, unsigned)
SET_ASYNC(cuMemsetD8Async, set8, false, unsigned char)
SET_ASYNC(cuMemsetD8Async_ptsz, set8, true, unsigned char)
SET_ASYNC(cuMemsetD32Async, set32, false, unsigned)
SET_ASYNC(cuMemsetD32Async_ptsz, set32, true, unsigned)

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
		*p = (CUdeviceptr)(uintptr_t)malloc(n);
	RET(r);
}

API(cuMemFree_v2, CUdeviceptr p)
{
	ENTER();
	free(host(p));
	RET(CU_OK);
}

static CUresult host_alloc(void **p, size_t n)
{
	if (!p || !n)
		return CU_INVALID_VALUE;
	*p = malloc(n);
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
	free(p);
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
		*p = (CUdeviceptr)(uintptr_t)malloc(n);
	return r;
}

static CUresult free_async(CUdeviceptr p, CUstream handle, bool ptsz)
{
	CUstream s;
	CUresult r = stream__resolve(thread__self(), handle, ptsz, &s);

	if (!r)
		free(host(p));
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
