// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Copies and sets of more than a line of memory, of arrays, and of several at once. What a struct of the
 * program's says is known when the driver has read it, too: before that it is read only where it can't
 * be a bad address, which the driver might have refused without a look at it.
 */
#include "gpu_timing/library/copies.h"

#define NEAR_BYTES 65536u
#define MAX_ASKED 16	/* copies of a batch of which the driver is asked: some 0.1 us each */

/* On the stack of our caller, where the runtime library has all that it passes on. */
static inline __attribute__((always_inline)) bool is_near(const void *at, size_t size)
{
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);

	return (uintptr_t)at - frame < NEAR_BYTES - size;
}

#define IF_NEAR(c, value) (is_near(c, sizeof(*(c))) ? (value) : 0)
/* The driver has taken it, but who knows what else stands in its slots. */
#define IF_GIVEN(c, value) ((c) ? (value) : 0)

/* --- one copy, of two or three dimensions ------------------------------------------------------ */

static enum place place_by(CUmemorytype type, CUdeviceptr at, bool ask)
{
	switch (type) {
	case CU_MEMORYTYPE_HOST:
		return PLACE_HOST;
	case CU_MEMORYTYPE_DEVICE:
		return PLACE_DEVICE;
	case CU_MEMORYTYPE_ARRAY:
		return PLACE_ARRAY;
	case CU_MEMORYTYPE_UNIFIED:
		return ask ? place__of(at) : PLACE_UNKNOWN;
	default:
		return PLACE_UNKNOWN;
	}
}

/* Of both structs. */
#define KIND(c, ask) copy__kind(place_by((c)->dstMemoryType, (c)->dstDevice, ask),		\
				place_by((c)->srcMemoryType, (c)->srcDevice, ask))
#define BYTES_2D(c) ((c)->WidthInBytes * (c)->Height)
#define BYTES_3D(c) ((c)->WidthInBytes * (c)->Height * (c)->Depth)

/* Between contexts, unless one of its ends is the host's. */
static enum copy_kind peer_kind(const CUDA_MEMCPY3D_PEER *c, bool ask)
{
	enum copy_kind kind = KIND(c, ask);

	switch (kind) {
	case COPY_DTOD:
	case COPY_ATOD:
	case COPY_DTOA:
	case COPY_ATOA:
		return COPY_PTOP;
	default:
		return kind;
	}
}

COPY_HOOKS(copy2d, SLOT_COPY2D, IF_NEAR(c, KIND(c, false)), IF_NEAR(c, BYTES_2D(c)),
	   SETTLE(IF_GIVEN(c, KIND(c, true)), IF_GIVEN(c, BYTES_2D(c))), (const CUDA_MEMCPY2D *c), (c))
COPY_HOOKS_SYNC(copy2d_unaligned, SLOT_COPY2D_UNALIGNED, IF_NEAR(c, KIND(c, false)),
		IF_NEAR(c, BYTES_2D(c)), SETTLE(IF_GIVEN(c, KIND(c, true)), IF_GIVEN(c, BYTES_2D(c))),
		(const CUDA_MEMCPY2D *c), (c))
COPY_HOOKS(copy3d, SLOT_COPY3D, IF_NEAR(c, KIND(c, false)), IF_NEAR(c, BYTES_3D(c)),
	   SETTLE(IF_GIVEN(c, KIND(c, true)), IF_GIVEN(c, BYTES_3D(c))), (const CUDA_MEMCPY3D *c), (c))
COPY_HOOKS(peer3d, SLOT_PEER3D, IF_NEAR(c, peer_kind(c, false)), IF_NEAR(c, BYTES_3D(c)),
	   SETTLE(IF_GIVEN(c, peer_kind(c, true)), IF_GIVEN(c, BYTES_3D(c))),
	   (const CUDA_MEMCPY3D_PEER *c), (c))

/* --- arrays ------------------------------------------------------------------------------------ */

COPY_HOOKS(htoa, SLOT_HTOA, COPY_HTOA, n, NOTHING,
	   (CUarray to, size_t at, const void *from, size_t n), (to, at, from, n))
COPY_HOOKS(atoh, SLOT_ATOH, COPY_ATOH, n, NOTHING,
	   (void *to, CUarray from, size_t at, size_t n), (to, from, at, n))
COPY_HOOKS_SYNC(atod, SLOT_ATOD, COPY_ATOD, n, NOTHING,
		(CUdeviceptr to, CUarray from, size_t at, size_t n), (to, from, at, n))
COPY_HOOKS_SYNC(dtoa, SLOT_DTOA, COPY_DTOA, n, NOTHING,
		(CUarray to, size_t at, CUdeviceptr from, size_t n), (to, at, from, n))
COPY_HOOKS_SYNC(atoa, SLOT_ATOA, COPY_ATOA, n, NOTHING,
		(CUarray to, size_t to_at, CUarray from, size_t from_at, size_t n),
		(to, to_at, from, from_at, n))

/* --- sets -------------------------------------------------------------------------------------- */

COPY_HOOKS(set2d8, SLOT_SET2D8, COPY_SET, width * height, NOTHING,
	   (CUdeviceptr to, size_t pitch, uint8_t value, size_t width, size_t height),
	   (to, pitch, value, width, height))
COPY_HOOKS(set2d16, SLOT_SET2D16, COPY_SET, 2 * width * height, NOTHING,
	   (CUdeviceptr to, size_t pitch, uint16_t value, size_t width, size_t height),
	   (to, pitch, value, width, height))
COPY_HOOKS(set2d32, SLOT_SET2D32, COPY_SET, 4 * width * height, NOTHING,
	   (CUdeviceptr to, size_t pitch, uint32_t value, size_t width, size_t height),
	   (to, pitch, value, width, height))

/* --- batches ----------------------------------------------------------------------------------- */

/* The i-th of those of n copies that are looked at; they are spread over all. */
static size_t spread(size_t i, size_t n)
{
	return n <= MAX_ASKED ? i : i * n / MAX_ASKED;
}

static uint64_t batch_bytes(const size_t *sizes, size_t n)
{
	uint64_t bytes = 0;

	for (size_t i = 0; sizes && i < n; i++)
		bytes += sizes[i];
	return bytes;
}

/* That of all, or none. */
static enum copy_kind batch_kind(const CUdeviceptr *to, const CUdeviceptr *from, size_t n)
{
	enum copy_kind kind = COPY_UNKNOWN, one;

	for (size_t i = 0; to && from && i < n && i < MAX_ASKED; i++) {
		size_t at = spread(i, n);

		one = copy__kind(place__of(to[at]), place__of(from[at]));
		if (!one || (i && one != kind))
			return COPY_UNKNOWN;
		kind = one;
	}
	return kind;
}

BATCH_HOOKS(batch, SLOT_BATCH, n, SETTLE(batch_kind(to, from, n), batch_bytes(sizes, n)),
	    (CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t n, void *attributes,
	     size_t *indices, size_t nr, size_t *failed),
	    (to, from, sizes, n, attributes, indices, nr, failed))
BATCH_HOOKS(batch_v2, SLOT_BATCH_V2, n, SETTLE(batch_kind(to, from, n), batch_bytes(sizes, n)),
	    (CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t n, void *attributes,
	     size_t *indices, size_t nr),
	    (to, from, sizes, n, attributes, indices, nr))
COPY_HOOKS_ASYNC(attributes, SLOT_ATTRIBUTES, COPY_UNKNOWN, n,
		 SETTLE(copy__kind(place__of(to), place__of(from)), n),
		 (CUdeviceptr to, CUdeviceptr from, size_t n, void *attributes), (to, from, n, attributes))

/* Bytes of an array's elements; 0: not known, those of compressed and video formats. */
static size_t element_bytes(CUarray array)
{
	CUDA_ARRAY3D_DESCRIPTOR d;

	if (!lib.driver.array_descriptor || lib.driver.array_descriptor(&d, array))
		return 0;
	/* By number: many are younger than the oldest cuda.h. */
	switch ((unsigned int)d.Format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return d.NumChannels;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 2 * (size_t)d.NumChannels;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 4 * (size_t)d.NumChannels;
	case 0xc0:	/* UNORM_INT8X1, X2, X4, then INT16; the same of SNORM */
	case 0xc6:
		return 1;
	case 0xc1:
	case 0xc3:
	case 0xc7:
	case 0xc9:
		return 2;
	case 0xc2:
	case 0xc4:
	case 0xc8:
	case 0xca:
	case 0x50:	/* UNORM_INT_101010_2 */
		return 4;
	case 0xc5:
	case 0xcb:
		return 8;
	default:
		return 0;
	}
}

static bool is_array(const CUmemcpy3DOperand *o)
{
	return o->type == CU_MEMCPY_OPERAND_TYPE_ARRAY;
}

static enum place operand_place(const CUmemcpy3DOperand *o)
{
	return is_array(o) ? PLACE_ARRAY : place__of(o->op.ptr.ptr);
}

/* An extent counts elements, which between two pointers are bytes. */
static uint64_t op_bytes(const CUDA_MEMCPY3D_BATCH_OP *op, CUarray *array, size_t *size)
{
	const CUmemcpy3DOperand *o = is_array(&op->src) ? &op->src : &op->dst;
	uint64_t elements = op->extent.width * op->extent.height * op->extent.depth;

	if (!is_array(o))
		return elements;
	/* Mostly they are all of one. */
	if (*array != o->op.array.array) {
		*array = o->op.array.array;
		*size = element_bytes(*array);
	}
	return elements * *size;
}

static uint64_t batch3d_bytes(const CUDA_MEMCPY3D_BATCH_OP *ops, size_t n)
{
	CUarray array = NULL;
	uint64_t bytes = 0;
	size_t size = 0;

	for (size_t i = 0; ops && i < n; i++)
		bytes += op_bytes(&ops[i], &array, &size);
	return bytes;
}

static enum copy_kind batch3d_kind(const CUDA_MEMCPY3D_BATCH_OP *ops, size_t n)
{
	enum copy_kind kind = COPY_UNKNOWN, one;

	for (size_t i = 0; ops && i < n && i < MAX_ASKED; i++) {
		const CUDA_MEMCPY3D_BATCH_OP *op = &ops[spread(i, n)];

		one = copy__kind(operand_place(&op->dst), operand_place(&op->src));
		if (!one || (i && one != kind))
			return COPY_UNKNOWN;
		kind = one;
	}
	return kind;
}

BATCH_HOOKS(batch3d, SLOT_BATCH3D, n, SETTLE(batch3d_kind(ops, n), batch3d_bytes(ops, n)),
	    (size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *failed, unsigned long long flags),
	    (n, ops, failed, flags))
BATCH_HOOKS(batch3d_v2, SLOT_BATCH3D_V2, n, SETTLE(batch3d_kind(ops, n), batch3d_bytes(ops, n)),
	    (size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags), (n, ops, flags))
BATCH_HOOKS(attributes3d, SLOT_ATTRIBUTES3D, 1, SETTLE(batch3d_kind(op, 1), batch3d_bytes(op, 1)),
	    (CUDA_MEMCPY3D_BATCH_OP *op, unsigned long long flags), (op, flags))

void *hook__shape(uint32_t slot)
{
	static void *const hooks[SLOT_GRAPHS - SLOT_SHAPES] = {
#define COPY_AT(slot) [slot - SLOT_SHAPES]
		COPY_HOOKED(SLOT_COPY2D, copy2d), COPY_HOOKED(SLOT_COPY3D, copy3d),
		COPY_HOOKED(SLOT_PEER3D, peer3d), COPY_HOOKED(SLOT_HTOA, htoa),
		COPY_HOOKED(SLOT_ATOH, atoh), COPY_HOOKED(SLOT_SET2D8, set2d8),
		COPY_HOOKED(SLOT_SET2D16, set2d16), COPY_HOOKED(SLOT_SET2D32, set2d32),
		COPY_HOOKED_SYNC(SLOT_COPY2D_UNALIGNED, copy2d_unaligned),
		COPY_HOOKED_SYNC(SLOT_ATOD, atod), COPY_HOOKED_SYNC(SLOT_DTOA, dtoa),
		COPY_HOOKED_SYNC(SLOT_ATOA, atoa),
		COPY_HOOKED_ASYNC(SLOT_BATCH, batch), COPY_HOOKED_ASYNC(SLOT_BATCH_V2, batch_v2),
		COPY_HOOKED_ASYNC(SLOT_BATCH3D, batch3d), COPY_HOOKED_ASYNC(SLOT_BATCH3D_V2, batch3d_v2),
		COPY_HOOKED_ASYNC(SLOT_ATTRIBUTES, attributes),
		COPY_HOOKED_ASYNC(SLOT_ATTRIBUTES3D, attributes3d),
#undef COPY_AT
	};

	return hooks[slot - SLOT_SHAPES];
}
