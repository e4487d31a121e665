// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Copies and sets of two and three dimensions, and batches of copies. A call is one piece of work, a
 * batch too: 1 us and 8 bytes a nanosecond. What a program that has no context passes isn't looked at.
 */
#include "sim.h"
#include <string.h>

/* One end: rows that follow each other by `pitch` bytes, layers by `height` rows. */
struct box {
	enum place place;
	char *first;
	size_t pitch, height;
};

static char *address(CUdeviceptr p)
{
	return (char *)(uintptr_t)p;
}

static bool fits(size_t at, size_t n, size_t room)
{
	return at <= room && n <= room - at;
}

/* (x, y, z) in bytes, rows, layers. */
static CUresult box__of_array(struct box *b, CUarray a, size_t x, size_t y, size_t z, const CUcopy3D *c)
{
	size_t layers, row;

	if (!array__alive(a))
		return CU_INVALID_VALUE;
	row = a->shape.width * a->element;
	b->place = OF_ARRAY;
	b->pitch = row;
	b->height = a->shape.height ? a->shape.height : 1;
	layers = a->shape.depth ? a->shape.depth : 1;
	if (x % a->element || c->width % a->element || !fits(x, c->width, row) ||
	    !fits(y, c->height, b->height) || !fits(z, c->depth, layers))
		return CU_INVALID_VALUE;
	b->first = a->data + (z * b->height + y) * row + x;
	return CU_OK;
}

static CUresult box__of(struct box *b, const CUside3D *s, const CUcopy3D *c)
{
	char *base;

	if (s->lod)
		return CU_INVALID_VALUE;
	switch (s->type) {
	case CU_MEMORY_ARRAY:
		return box__of_array(b, s->array, s->x, s->y, s->z, c);
	case CU_MEMORY_HOST:
		base = (char *)(uintptr_t)s->host;
		b->place = OF_HOST;
		break;
	case CU_MEMORY_DEVICE:
		base = address(s->device);
		b->place = OF_DEVICE;
		break;
	case CU_MEMORY_UNIFIED:
		base = address(s->device);
		b->place = copy__place(base);
		break;
	default:
		return CU_INVALID_VALUE;
	}
	b->pitch = s->pitch ? s->pitch : s->x + c->width;
	b->height = s->height ? s->height : s->y + c->height;
	if (!fits(s->x, c->width, b->pitch) || !fits(s->y, c->height, b->height))
		return CU_INVALID_VALUE;
	b->first = base + (s->z * b->height + s->y) * b->pitch + s->x;
	return CU_OK;
}

static void copy_rows(const struct box *to, const struct box *from, size_t width, size_t height, size_t depth)
{
	for (size_t z = 0; z < depth; z++)
		for (size_t y = 0; y < height; y++)
			memmove(to->first + (z * to->height + y) * to->pitch,
				from->first + (z * from->height + y) * from->pitch, width);
}

/* Takes its place, and moves the bytes. */
static CUresult move(const struct op *op, const struct box *to, const struct box *from, const CUcopy3D *c)
{
	CUstream s;
	bool done;
	CUresult r = copy__occupy(op, &s, &done);

	if (r || done)
		return r;
	copy_rows(to, from, c->width, c->height, c->depth);
	return copy__finish(s, op->async);
}

static CUresult context_of(const CUside3D *s, bool peer)
{
	if (!peer)
		return s->context ? CU_INVALID_VALUE : CU_OK;
	return s->type == CU_MEMORY_DEVICE && !s->context ? CU_INVALID_CONTEXT : CU_OK;
}

static CUresult copy3d(const struct op *op, const CUcopy3D *c, bool peer)
{
	struct op whole = *op;
	struct box to, from;
	CUstream s;
	CUresult r = stream__resolve(thread__self(), op->stream, op->ptsz, &s);

	if (!r && !c)
		r = CU_INVALID_VALUE;
	if (!r)
		r = context_of(&c->from, peer);
	if (!r)
		r = context_of(&c->to, peer);
	if (!r)
		r = box__of(&from, &c->from, c);
	if (!r)
		r = box__of(&to, &c->to, c);
	if (r)
		return r;
	whole.kind = peer && from.place != OF_HOST && to.place != OF_HOST ? "memcpy_PtoP" :
									copy__name(from.place, to.place);
	whole.bytes = c->width * c->height * c->depth;
	return move(&whole, &to, &from, c);
}

static CUside3D side(const CUside2D *s)
{
	return (CUside3D){ .x = s->x, .y = s->y, .type = s->type, .host = s->host, .device = s->device,
			   .array = s->array, .pitch = s->pitch };
}

static CUresult copy2d(const struct op *op, const CUcopy2D *c)
{
	CUcopy3D whole;
	CUstream s;
	CUresult r = stream__resolve(thread__self(), op->stream, op->ptsz, &s);

	if (r || !c)
		return r ? r : CU_INVALID_VALUE;
	whole = (CUcopy3D){ side(&c->from), side(&c->to), c->width, c->height, 1 };
	return copy3d(op, &whole, false);
}

#define COPY_2D(name, ptsz_)                                                                      \
	API(name, const CUcopy2D *c)                                                              \
	{                                                                                         \
		ENTER();                                                                          \
		RET(copy2d(&(struct op){ #name, NULL, 0, NULL, ptsz_, false }, c));               \
	}
#define COPY_2D_ASYNC(name, ptsz_)                                                                \
	API(name, const CUcopy2D *c, CUstream s)                                                  \
	{                                                                                         \
		ENTER();                                                                          \
		RET(copy2d(&(struct op){ #name, NULL, 0, s, ptsz_, true }, c));                   \
	}
#define COPY_3D(name, ptsz_, peer)                                                                \
	API(name, const CUcopy3D *c)                                                              \
	{                                                                                         \
		ENTER();                                                                          \
		RET(copy3d(&(struct op){ #name, NULL, 0, NULL, ptsz_, false }, c, peer));         \
	}
#define COPY_3D_ASYNC(name, ptsz_, peer)                                                          \
	API(name, const CUcopy3D *c, CUstream s)                                                  \
	{                                                                                         \
		ENTER();                                                                          \
		RET(copy3d(&(struct op){ #name, NULL, 0, s, ptsz_, true }, c, peer));             \
	}
COPY_2D(cuMemcpy2D_v2, false)
COPY_2D(cuMemcpy2D_v2_ptds, true)
COPY_2D(cuMemcpy2DUnaligned_v2, false)
COPY_2D(cuMemcpy2DUnaligned_v2_ptds, true)
COPY_2D_ASYNC(cuMemcpy2DAsync_v2, false)
COPY_2D_ASYNC(cuMemcpy2DAsync_v2_ptsz, true)
COPY_3D(cuMemcpy3D_v2, false, false)
COPY_3D(cuMemcpy3D_v2_ptds, true, false)
COPY_3D_ASYNC(cuMemcpy3DAsync_v2, false, false)
COPY_3D_ASYNC(cuMemcpy3DAsync_v2_ptsz, true, false)
COPY_3D(cuMemcpy3DPeer, false, true)
COPY_3D(cuMemcpy3DPeer_ptds, true, true)
COPY_3D_ASYNC(cuMemcpy3DPeerAsync, false, true)
COPY_3D_ASYNC(cuMemcpy3DPeerAsync_ptsz, true, true)

/* --- sets ------------------------------------------------------------------------------------- */
/* Those without a stream run beside the host, too. */
static CUresult set(const char *entry, CUdeviceptr to, size_t pitch, const void *value, size_t size,
		    size_t width, size_t height, CUstream stream, bool ptsz)
{
	struct op op = { entry, "memset", size * width * height, stream, ptsz, true };
	CUstream s;
	bool done;
	CUresult r = stream__resolve(thread__self(), stream, ptsz, &s);

	if (!r && (height > 1 && pitch < size * width))
		r = CU_INVALID_VALUE;
	if (!r)
		r = copy__occupy(&op, &s, &done);
	for (size_t y = 0; !r && !done && y < height; y++)
		for (size_t x = 0; x < width; x++)
			memcpy(address(to) + y * pitch + x * size, value, size);
	return r;
}

#define SET(name, ptsz, type)                                                                     \
	API(name, CUdeviceptr to, size_t pitch, type v, size_t w, size_t h)                       \
	{                                                                                         \
		ENTER();                                                                          \
		RET(set(#name, to, pitch, &v, sizeof(v), w, h, NULL, ptsz));                      \
	}
#define SET_ASYNC(name, ptsz, type)                                                               \
	API(name, CUdeviceptr to, size_t pitch, type v, size_t w, size_t h, CUstream s)           \
	{                                                                                         \
		ENTER();                                                                          \
		RET(set(#name, to, pitch, &v, sizeof(v), w, h, s, ptsz));                         \
	}
SET(cuMemsetD2D8_v2, false, unsigned char)
SET(cuMemsetD2D8_v2_ptds, true, unsigned char)
SET(cuMemsetD2D16_v2, false, unsigned short)
SET(cuMemsetD2D16_v2_ptds, true, unsigned short)
SET(cuMemsetD2D32_v2, false, unsigned)
SET(cuMemsetD2D32_v2_ptds, true, unsigned)
SET_ASYNC(cuMemsetD2D8Async, false, unsigned char)
SET_ASYNC(cuMemsetD2D8Async_ptsz, true, unsigned char)
SET_ASYNC(cuMemsetD2D16Async, false, unsigned short)
SET_ASYNC(cuMemsetD2D16Async_ptsz, true, unsigned short)
SET_ASYNC(cuMemsetD2D32Async, false, unsigned)
SET_ASYNC(cuMemsetD2D32Async_ptsz, true, unsigned)
