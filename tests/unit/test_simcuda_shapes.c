// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Copies and sets of the virtual device that are no line: where bytes go, how long that takes, errors. */
#include <string.h>
#include "tests/unit/simcuda.h"

#define PITCH 40
#define ROWS 3
#define LAYERS 2
#define ROOM (PITCH * (ROWS + 2) * LAYERS)

static struct app a;
static unsigned char *host;
static CUdeviceptr memory, other;
static CUarray array;

/* Each byte of the host's memory is its own number. */
static void begin(void)
{
	CUarrayShape shape = { .width = 8, .height = ROWS, .depth = LAYERS, .format = CU_FORMAT_UINT16,
			       .channels = 1 };

	app__begin(&a);
	ok(cu(cuMemAlloc_v2)(&memory, ROOM));
	ok(cu(cuMemAlloc_v2)(&other, ROOM));
	ok(cu(cuMemAllocHost_v2)((void **)&host, ROOM));
	ok(cu(cuArray3DCreate_v2)(&array, &shape));
	for (size_t i = 0; i < ROOM; i++)
		host[i] = (unsigned char)i;
	memset((void *)(uintptr_t)memory, 0, ROOM);
	memset((void *)(uintptr_t)other, 0, ROOM);
}

static unsigned char at(CUdeviceptr p, size_t i)
{
	return ((unsigned char *)(uintptr_t)p)[i];
}

static CUside3D on_host(void)
{
	return (CUside3D){ .x = 1, .y = 1, .type = CU_MEMORY_HOST, .host = host, .pitch = PITCH,
			   .height = ROWS + 1 };
}

static CUside3D on_device(CUdeviceptr p)
{
	return (CUside3D){ .type = CU_MEMORY_DEVICE, .device = p, .pitch = PITCH, .height = ROWS };
}

static CUside3D in_array(void)
{
	return (CUside3D){ .x = 2, .type = CU_MEMORY_ARRAY, .array = array };
}

/* Length of the only work since a first event. */
static double ns_of(CUresult (*work)(void))
{
	CUevent e0, e1;
	float ms;

	ok(cu(cuEventCreate)(&e0, 0));
	ok(cu(cuEventCreate)(&e1, 0));
	ok(cu(cuEventRecord)(e0, a.stream));
	ok(work());
	ok(cu(cuEventRecord)(e1, a.stream));
	ok(cu(cuStreamSynchronize)(a.stream));
	ok(cu(cuEventElapsedTime)(&ms, e0, e1));
	return (double)ms * 1e6;
}

static CUresult up(void)
{
	CUcopy3D c = { on_host(), on_device(memory), 10, ROWS, LAYERS };

	return cu(cuMemcpy3DAsync_v2)(&c, a.stream);
}

START_TEST(rows_and_layers_find_their_places)
{
	CUcopy3D back = { in_array(), on_device(other), 10, ROWS, LAYERS };
	CUcopy3D in = { on_device(memory), in_array(), 10, ROWS, LAYERS };
	double ns;

	begin();
	in.to.array = back.from.array = array;
	in.from.device = memory;
	back.to.device = other;
	ns = ns_of(up);
	ck_assert(ns > 1006 && ns < 1008);	/* 60 bytes */
	ok(cu(cuMemcpy3D_v2)(&in));
	ok(cu(cuMemcpy3DAsync_v2)(&back, a.stream));
	for (size_t z = 0; z < LAYERS; z++)
		for (size_t y = 0; y < ROWS; y++)
			for (size_t x = 0; x < PITCH; x++) {
				size_t from = (z * (ROWS + 1) + y + 1) * PITCH + x + 1;
				unsigned char want = x < 10 ? (unsigned char)from : 0;

				ck_assert_uint_eq(at(memory, (z * ROWS + y) * PITCH + x), want);
				ck_assert_uint_eq(at(other, (z * ROWS + y) * PITCH + x), want);
			}
}
END_TEST

START_TEST(a_line_of_an_array_is_its_bytes)
{
	unsigned char back[20];

	begin();
	ok(cu(cuMemcpyHtoA_v2)(array, 4, host, 20));
	ok(cu(cuMemcpyAtoA_v2)(array, 40, array, 4, 20));
	ok(cu(cuMemcpyAtoD_v2)(memory, array, 40, 20));
	ok(cu(cuMemcpyDtoA_v2)(array, 0, memory, 20));
	ok(cu(cuMemcpyAtoH_v2)(back, array, 0, 20));
	for (size_t i = 0; i < 20; i++)
		ck_assert_uint_eq(back[i], i);
	/* 8 elements of 2 bytes, 3 rows, 2 layers */
	ck_assert_int_eq(cu(cuMemcpyHtoA_v2)(array, 77, host, 20), CU_INVALID_VALUE);
	ok(cu(cuMemcpyHtoA_v2)(array, 76, host, 20));
	ok(cu(cuArrayDestroy)(array));
	ck_assert_int_eq(cu(cuMemcpyHtoA_v2)(array, 0, host, 2), CU_INVALID_VALUE);
}
END_TEST

START_TEST(sets_leave_what_is_between_the_rows)
{
	begin();
	ok(cu(cuMemsetD2D16Async)(memory, PITCH, 0x0201, 5, ROWS, a.stream));
	for (size_t i = 0; i < PITCH * ROWS; i++)
		ck_assert_uint_eq(at(memory, i), i % PITCH < 10 ? 1 + i % PITCH % 2 : 0);
	ok(cu(cuMemsetD2D8_v2)(memory, PITCH, 9, PITCH, ROWS));
	ck_assert_uint_eq(at(memory, PITCH * ROWS - 1), 9);
	ck_assert_int_eq(cu(cuMemsetD2D32_v2)(memory, 7, 0, 2, 2), CU_INVALID_VALUE);
	ok(cu(cuMemsetD2D32_v2)(memory, 0, 0, 2, 1));
}
END_TEST

static CUresult three_copies(void)
{
	CUdeviceptr to[] = { memory, memory + 50, memory + 100 };
	CUdeviceptr from[] = { (uintptr_t)host, (uintptr_t)host + 1, (uintptr_t)host + 2 };
	size_t sizes[] = { 16, 8, 32 }, first = 0;
	CUcopyAttributes order = { .order = CU_ORDER_ANY };

	return cu(cuMemcpyBatchAsync_v2)(to, from, sizes, 3, &order, &first, 1, a.stream);
}

START_TEST(a_batch_is_one_piece_of_work)
{
	CUbatchCopy one = { { CU_OPERAND_POINTER, { .pointer = { .row = 20 } } },
			    { CU_OPERAND_ARRAY, { .array = { .y = 1 } } }, 8, 2, 1, CU_ORDER_STREAM, 0 };
	CUcopyAttributes order = { .order = CU_ORDER_STREAM };
	unsigned char row[16];
	CUcopy2D down = { { .y = 2, .type = CU_MEMORY_ARRAY }, { .type = CU_MEMORY_HOST, .host = row }, 16,
			  1 };
	size_t first = 0, failed = 0;
	double ns;

	begin();
	ns = ns_of(three_copies);
	ck_assert(ns > 1006.5 && ns < 1007.5);	/* 56 bytes */
	ck_assert_uint_eq(at(memory, 15), 15);
	ck_assert_uint_eq(at(memory, 57), 8);
	ck_assert_uint_eq(at(memory, 131), 33);
	/* its rows are 20 elements apart where it comes from */
	one.from.op.pointer.at = (uintptr_t)host;
	one.to.op.array.array = down.from.array = array;
	ok(cu(cuMemcpy3DBatchAsync_v2)(1, &one, 0, a.stream));
	ok(cu(cuMemcpy2D_v2)(&down));
	for (size_t i = 0; i < sizeof(row); i++)
		ck_assert_uint_eq(row[i], 40 + i);
	one.depth = 0;
	ck_assert_int_eq(cu(cuMemcpy3DBatchAsync)(1, &one, &failed, 0, a.stream), CU_INVALID_VALUE);
	ck_assert_uint_eq(failed, SIZE_MAX);
	ck_assert_int_eq(cu(cuMemcpyBatchAsync_v2)(&memory, &other, &first, 1, &order, &first, 1, NULL),
			 CU_INVALID_VALUE);
	ok(cu(cuMemcpyBatchAsync_v2_ptsz)(&memory, &other, &first, 1, &order, &first, 1, NULL));
	order.order = 0;
	ck_assert_int_eq(cu(cuMemcpyWithAttributesAsync)(memory, other, 8, &order, a.stream),
			 CU_INVALID_VALUE);
}
END_TEST

START_TEST(what_cant_be_copied_is_refused)
{
	CUcopy3D c = { on_host(), on_device(0), 10, ROWS, LAYERS }, good;

	begin();
	c.from.host = host;
	c.to.device = memory;
	good = c;
	ok(cu(cuMemcpy3D_v2)(&c));
#define REFUSED(member, value, result)						\
	do {									\
		c = good;							\
		c.member = value;						\
		ck_assert_int_eq(cu(cuMemcpy3D_v2)(&c), result);		\
	} while (0)
	REFUSED(from.type, 0, CU_INVALID_VALUE);
	REFUSED(to.type, 5, CU_INVALID_VALUE);
	REFUSED(from.lod, 1, CU_INVALID_VALUE);
	REFUSED(from.pitch, 10, CU_INVALID_VALUE);
	REFUSED(to.height, ROWS - 1, CU_INVALID_VALUE);
	REFUSED(to.context, a.context, CU_INVALID_VALUE);
	REFUSED(to.type, CU_MEMORY_ARRAY, CU_INVALID_VALUE);
	c = good;
	c.to = in_array();
	c.width = 16;
	ck_assert_int_eq(cu(cuMemcpy3D_v2)(&c), CU_INVALID_VALUE);
	ck_assert_int_eq(cu(cuMemcpy3D_v2)(NULL), CU_INVALID_VALUE);
	ck_assert_int_eq(cu(cuMemcpy3DPeer)(&good), CU_INVALID_CONTEXT);
	/* Without a context nothing is looked at. */
	ok(cu(cuCtxSetCurrent)(NULL));
	ck_assert_int_eq(cu(cuMemcpy3D_v2)((CUcopy3D *)16), CU_INVALID_CONTEXT);
}
END_TEST

UNIT_MAIN("simcuda_shapes", rows_and_layers_find_their_places, a_line_of_an_array_is_its_bytes,
	  sets_leave_what_is_between_the_rows, a_batch_is_one_piece_of_work, what_cant_be_copied_is_refused)
