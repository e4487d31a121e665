// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Copies of several at once, and copies with attributes: a call is one piece of work, its bytes their sum. */
#include "sim.h"
#include <string.h>

/* The kind that all of them have, or "memcpy". */
static void add_kind(const char **kind, enum place from, enum place to)
{
	const char *one = copy__name(from, to);

	*kind = !*kind || *kind == one ? one : "memcpy";
}

static bool attributes_ok(const CUcopyAttributes *a)
{
	return a->order >= CU_ORDER_STREAM && a->order <= CU_ORDER_ANY && a->flags <= 1;
}

/* No default stream, unless it is the thread's own. */
static CUresult resolve(const struct op *op)
{
	CUstream s;

	if ((!op->stream && !op->ptsz) || op->stream == CU_STREAM_LEGACY_HANDLE)
		return CU_INVALID_VALUE;
	return stream__resolve(thread__self(), op->stream, op->ptsz, &s);
}

static CUresult check_batch(const CUdeviceptr *to, const CUdeviceptr *from, const size_t *sizes, size_t n,
			    const CUcopyAttributes *a, const size_t *first, size_t nr)
{
	if (!n || !to || !from || !sizes || !a || !first || !nr || nr > n || first[0])
		return CU_INVALID_VALUE;
	for (size_t i = 0; i < nr; i++)
		if (!attributes_ok(&a[i]) || first[i] >= n || (i && first[i] <= first[i - 1]))
			return CU_INVALID_VALUE;
	return CU_OK;
}

static CUresult batch(struct op op, const CUdeviceptr *to, const CUdeviceptr *from, const size_t *sizes,
		      size_t n, const CUcopyAttributes *a, const size_t *first, size_t nr)
{
	CUstream s;
	bool done;
	CUresult r = resolve(&op);

	if (!r)
		r = check_batch(to, from, sizes, n, a, first, nr);
	for (size_t i = 0; !r && i < n; i++) {
		add_kind(&op.kind, copy__place((void *)(uintptr_t)from[i]),
			 copy__place((void *)(uintptr_t)to[i]));
		op.bytes += sizes[i];
	}
	if (!r)
		r = copy__occupy(&op, &s, &done);
	for (size_t i = 0; !r && !done && i < n; i++)
		memmove((void *)(uintptr_t)to[i], (void *)(uintptr_t)from[i], sizes[i]);
	return r;
}

static CUresult attributed(struct op op, CUdeviceptr to, CUdeviceptr from, const CUcopyAttributes *a)
{
	CUstream s;
	bool done;
	CUresult r = resolve(&op);

	if (!r && (!a || !attributes_ok(a)))
		r = CU_INVALID_VALUE;
	add_kind(&op.kind, copy__place((void *)(uintptr_t)from), copy__place((void *)(uintptr_t)to));
	if (!r)
		r = copy__occupy(&op, &s, &done);
	if (!r && !done)
		memmove((void *)(uintptr_t)to, (void *)(uintptr_t)from, op.bytes);
	return r;
}

/* --- of three dimensions ---------------------------------------------------------------------- */
struct side {
	enum place place;
	char *first;
	size_t row, layer;		/* bytes, rows */
};

static size_t element_of(const CUoperand *o)
{
	if (o->type != CU_OPERAND_ARRAY)
		return 1;
	return array__alive(o->op.array.array) ? o->op.array.array->element : 0;
}

static bool side__of(struct side *s, const CUoperand *o, const CUbatchCopy *c, size_t element)
{
	CUarray a = o->op.array.array;

	if (o->type == CU_OPERAND_POINTER) {
		s->first = (char *)(uintptr_t)o->op.pointer.at;
		s->place = copy__place(s->first);
		s->row = (o->op.pointer.row ? o->op.pointer.row : c->width) * element;
		s->layer = o->op.pointer.layer ? o->op.pointer.layer : c->height;
		return s->row >= c->width * element && s->layer >= c->height;
	}
	if (o->type != CU_OPERAND_ARRAY || !array__alive(a) || a->element != element)
		return false;
	s->place = OF_ARRAY;
	s->row = a->shape.width * element;
	s->layer = a->shape.height ? a->shape.height : 1;
	s->first = a->data + (o->op.array.z * s->layer + o->op.array.y) * s->row + o->op.array.x * element;
	return o->op.array.x + c->width <= a->shape.width && o->op.array.y + c->height <= s->layer &&
	       o->op.array.z + c->depth <= (a->shape.depth ? a->shape.depth : 1);
}

/* Its bytes; 0: it isn't right. */
static size_t look_at(const CUbatchCopy *c, struct side *to, struct side *from)
{
	size_t element = element_of(c->from.type == CU_OPERAND_ARRAY ? &c->from : &c->to);

	if (!element || !side__of(to, &c->to, c, element) || !side__of(from, &c->from, c, element) ||
	    c->order < CU_ORDER_STREAM || c->order > CU_ORDER_ANY || c->flags > 1)
		return 0;
	return c->width * c->height * c->depth * element;
}

static void move(const CUbatchCopy *c)
{
	struct side to, from;
	size_t bytes = look_at(c, &to, &from), width = bytes / c->height / c->depth;

	for (size_t z = 0; z < c->depth; z++)
		for (size_t y = 0; y < c->height; y++)
			memmove(to.first + (z * to.layer + y) * to.row,
				from.first + (z * from.layer + y) * from.row, width);
}

static CUresult batch3d(struct op op, size_t n, const CUbatchCopy *list, unsigned long long flags)
{
	struct side to, from;
	CUstream s;
	bool done;
	CUresult r = resolve(&op);

	if (!r && (!n || !list || flags))
		r = CU_INVALID_VALUE;
	for (size_t i = 0; !r && i < n; i++) {
		size_t bytes = look_at(&list[i], &to, &from);

		if (!bytes)
			return CU_INVALID_VALUE;
		add_kind(&op.kind, from.place, to.place);
		op.bytes += bytes;
	}
	if (!r)
		r = copy__occupy(&op, &s, &done);
	for (size_t i = 0; !r && !done && i < n; i++)
		move(&list[i]);
	return r;
}

static CUresult failed(CUresult r, size_t *at)
{
	if (r && at)
		*at = SIZE_MAX;
	return r;
}

#define OP(name, bytes, ptsz) (struct op){ #name, NULL, bytes, s, ptsz, true }
#define FORMS(macro, name) macro(name, false) macro(name##_ptsz, true)
#define BATCH(name, ptsz)                                                                         \
	API(name, CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t n, CUcopyAttributes *a, \
	    size_t *first, size_t nr, size_t *at, CUstream s)                                     \
	{                                                                                         \
		ENTER();                                                                          \
		RET(failed(batch(OP(name, 0, ptsz), to, from, sizes, n, a, first, nr), at));      \
	}
#define BATCH_V2(name, ptsz)                                                                      \
	API(name, CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t n, CUcopyAttributes *a, \
	    size_t *first, size_t nr, CUstream s)                                                 \
	{                                                                                         \
		ENTER();                                                                          \
		RET(batch(OP(name, 0, ptsz), to, from, sizes, n, a, first, nr));                  \
	}
#define BATCH_3D(name, ptsz)                                                                      \
	API(name, size_t n, CUbatchCopy *list, size_t *at, unsigned long long flags, CUstream s)  \
	{                                                                                         \
		ENTER();                                                                          \
		RET(failed(batch3d(OP(name, 0, ptsz), n, list, flags), at));                      \
	}
#define BATCH_3D_V2(name, ptsz)                                                                   \
	API(name, size_t n, CUbatchCopy *list, unsigned long long flags, CUstream s)              \
	{                                                                                         \
		ENTER();                                                                          \
		RET(batch3d(OP(name, 0, ptsz), n, list, flags));                                  \
	}
#define ATTRIBUTED(name, ptsz)                                                                    \
	API(name, CUdeviceptr to, CUdeviceptr from, size_t n, CUcopyAttributes *a, CUstream s)    \
	{                                                                                         \
		ENTER();                                                                          \
		RET(attributed(OP(name, n, ptsz), to, from, a));                                  \
	}
#define ATTRIBUTED_3D(name, ptsz)                                                                 \
	API(name, CUbatchCopy *c, unsigned long long flags, CUstream s)                           \
	{                                                                                         \
		ENTER();                                                                          \
		RET(batch3d(OP(name, 0, ptsz), 1, c, flags));                                     \
	}
FORMS(BATCH, cuMemcpyBatchAsync)
FORMS(BATCH_V2, cuMemcpyBatchAsync_v2)
FORMS(BATCH_3D, cuMemcpy3DBatchAsync)
FORMS(BATCH_3D_V2, cuMemcpy3DBatchAsync_v2)
FORMS(ATTRIBUTED, cuMemcpyWithAttributesAsync)
FORMS(ATTRIBUTED_3D, cuMemcpy3DWithAttributesAsync)
