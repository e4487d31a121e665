// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Arrays: rows one behind the other, in memory without an address. Copies along a line of one. */
#include "sim.h"
#include <stdlib.h>
#include <string.h>

static struct slab arrays = SLAB(struct CUarray_st);

static size_t format_bytes(int format)
{
	switch (format) {
	case CU_FORMAT_UINT8:
		return 1;
	case CU_FORMAT_UINT16:
		return 2;
	case CU_FORMAT_UINT32:
	case CU_FORMAT_FLOAT:
		return 4;
	default:
		return 0;
	}
}

static size_t at_least_one(size_t n)
{
	return n ? n : 1;
}

static size_t size_of(const struct CUarray_st *a)
{
	return a->element * a->shape.width * at_least_one(a->shape.height) * at_least_one(a->shape.depth);
}

API(cuArray3DCreate_v2, CUarray *out, const CUarrayShape *shape)
{
	CUcontext c;
	CUarray a;
	CUresult r;

	ENTER();
	r = ctx__current(thread__self(), &c);
	if (r)
		RET(r);
	if (!out || !shape || !shape->width || !format_bytes(shape->format) ||
	    (shape->channels != 1 && shape->channels != 2 && shape->channels != 4) ||
	    (shape->depth && !shape->height))
		RET(CU_INVALID_VALUE);
	a = slab__get(&arrays);
	a->magic = M_ARRAY;
	a->shape = *shape;
	a->element = format_bytes(shape->format) * shape->channels;
	a->data = calloc(1, size_of(a));
	*out = a;
	RET(CU_OK);
}

API(cuArray3DGetDescriptor_v2, CUarrayShape *shape, CUarray a)
{
	ENTER();
	if (!shape || !array__alive(a))
		RET(CU_INVALID_VALUE);
	*shape = a->shape;
	RET(CU_OK);
}

API(cuArrayDestroy, CUarray a)
{
	ENTER();
	if (!array__alive(a))
		RET(CU_INVALID_HANDLE);
	a->magic = M_DEAD;
	free(a->data);
	slab__put(&arrays, a);
	RET(CU_OK);
}

/* One end of a copy along a line: an array and an offset in bytes, or an address. */
struct end {
	bool is_array;
	CUarray array;
	size_t at;
	const void *address;
};

static char *end__place(const struct end *e, size_t n)
{
	if (!e->is_array)
		return (char *)(uintptr_t)e->address;
	if (!array__alive(e->array) || e->at > size_of(e->array) || n > size_of(e->array) - e->at)
		return NULL;
	return e->array->data + e->at;
}

static CUresult copy(const struct op *op, struct end to, struct end from)
{
	char *there, *here;
	CUstream s;
	bool done;
	CUresult r = stream__resolve(thread__self(), op->stream, op->ptsz, &s);

	if (r)
		return r;
	there = end__place(&to, op->bytes);
	here = end__place(&from, op->bytes);
	if ((!there && (to.is_array || op->bytes)) || (!here && (from.is_array || op->bytes)))
		return CU_INVALID_VALUE;
	r = copy__occupy(op, &s, &done);
	if (r || done)
		return r;
	if (op->bytes)
		memmove(there, here, op->bytes);
	return copy__finish(s, op->async);
}

#define ARRAY(a, at) (struct end){ true, a, at, NULL }
#define HOST(p) (struct end){ false, NULL, 0, p }
#define DEVICE(p) HOST((const void *)(uintptr_t)(p))
#define LIST(...) __VA_ARGS__

#define LINE(name, ptsz_, kind_, params, to, from)                                                \
	API(name, LIST params, size_t n)                                                          \
	{                                                                                         \
		ENTER();                                                                          \
		RET(copy(&(struct op){ #name, kind_, n, NULL, ptsz_, false }, to, from));         \
	}
#define LINE_ASYNC(name, ptsz_, kind_, params, to, from)                                          \
	API(name, LIST params, size_t n, CUstream stream)                                         \
	{                                                                                         \
		ENTER();                                                                          \
		RET(copy(&(struct op){ #name, kind_, n, stream, ptsz_, true }, to, from));        \
	}
#define TO_ARRAY(type) (CUarray a, size_t at, type p)
#define FROM_ARRAY(type) (type p, CUarray a, size_t at)
LINE(cuMemcpyHtoA_v2, false, "memcpy_HtoA", TO_ARRAY(const void *), ARRAY(a, at), HOST(p))
LINE(cuMemcpyHtoA_v2_ptds, true, "memcpy_HtoA", TO_ARRAY(const void *), ARRAY(a, at), HOST(p))
LINE_ASYNC(cuMemcpyHtoAAsync_v2, false, "memcpy_HtoA", TO_ARRAY(const void *), ARRAY(a, at), HOST(p))
LINE_ASYNC(cuMemcpyHtoAAsync_v2_ptsz, true, "memcpy_HtoA", TO_ARRAY(const void *), ARRAY(a, at), HOST(p))
LINE(cuMemcpyAtoH_v2, false, "memcpy_AtoH", FROM_ARRAY(void *), HOST(p), ARRAY(a, at))
LINE(cuMemcpyAtoH_v2_ptds, true, "memcpy_AtoH", FROM_ARRAY(void *), HOST(p), ARRAY(a, at))
LINE_ASYNC(cuMemcpyAtoHAsync_v2, false, "memcpy_AtoH", FROM_ARRAY(void *), HOST(p), ARRAY(a, at))
LINE_ASYNC(cuMemcpyAtoHAsync_v2_ptsz, true, "memcpy_AtoH", FROM_ARRAY(void *), HOST(p), ARRAY(a, at))
LINE(cuMemcpyAtoD_v2, false, "memcpy_AtoD", FROM_ARRAY(CUdeviceptr), DEVICE(p), ARRAY(a, at))
LINE(cuMemcpyAtoD_v2_ptds, true, "memcpy_AtoD", FROM_ARRAY(CUdeviceptr), DEVICE(p), ARRAY(a, at))
LINE(cuMemcpyDtoA_v2, false, "memcpy_DtoA", TO_ARRAY(CUdeviceptr), ARRAY(a, at), DEVICE(p))
LINE(cuMemcpyDtoA_v2_ptds, true, "memcpy_DtoA", TO_ARRAY(CUdeviceptr), ARRAY(a, at), DEVICE(p))
LINE(cuMemcpyAtoA_v2, false, "memcpy_AtoA", (CUarray a, size_t at, CUarray b, size_t from), ARRAY(a, at),
     ARRAY(b, from))
LINE(cuMemcpyAtoA_v2_ptds, true, "memcpy_AtoA", (CUarray a, size_t at, CUarray b, size_t from),
     ARRAY(a, at), ARRAY(b, from))
