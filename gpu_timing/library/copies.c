// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What stands in the slots of the entries that copy or set memory: each call is seen and timed as a
 * launch is. A kind (channel.h) and the number of bytes stand for the function and its shape. Here are
 * those along one line of memory.
 */
#include "gpu_timing/library/copies.h"

/*
 * A CUmemorytype; 0: memory that the driver doesn't know. False: it can't be asked. The question fails for
 * no address.
 */
static bool memory_type(CUdeviceptr at, unsigned int *type)
{
	CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
	void *value = type;

	*type = 0;
	return lib.driver.pointer_attributes &&
	       !lib.driver.pointer_attributes(1, &attribute, &value, at);
}

enum place place__of(CUdeviceptr at)
{
	unsigned int type;

	if (!memory_type(at, &type))
		return PLACE_UNKNOWN;
	switch (type) {
	case 0:	/* the host's */
	case CU_MEMORYTYPE_HOST:
		return PLACE_HOST;
	case CU_MEMORYTYPE_DEVICE:
		return PLACE_DEVICE;
	default:
		return PLACE_UNKNOWN;
	}
}

bool place__is_pageable(CUdeviceptr at)
{
	unsigned int type;

	return memory_type(at, &type) && !type;
}

enum copy_kind copy__kind(enum place to, enum place from)
{
	static const uint8_t kinds[NR_PLACES][NR_PLACES] = {	/* from, to */
		[PLACE_HOST] = { 0, COPY_HTOH, COPY_HTOD, COPY_HTOA },
		[PLACE_DEVICE] = { 0, COPY_DTOH, COPY_DTOD, COPY_DTOA },
		[PLACE_ARRAY] = { 0, COPY_ATOH, COPY_ATOD, COPY_ATOA },
	};

	return (enum copy_kind)kinds[from][to];
}

COPY_HOOKS(htod, SLOT_HTOD, COPY_HTOD, n, LOOK_AT_HOST(from),
	   (CUdeviceptr to, const void *from, size_t n), (to, from, n))
COPY_HOOKS(dtoh, SLOT_DTOH, COPY_DTOH, n, LOOK_AT_HOST(to),
	   (void *to, CUdeviceptr from, size_t n), (to, from, n))
COPY_HOOKS(dtod, SLOT_DTOD, COPY_DTOD, n, NOTHING,
	   (CUdeviceptr to, CUdeviceptr from, size_t n), (to, from, n))
COPY_HOOKS(copy, SLOT_COPY, COPY_UNKNOWN, n,
	   SETTLE(copy__kind(place__of(to), place__of(from)), n);
	   LOOK_AT(place__is_pageable(to) || place__is_pageable(from)),
	   (CUdeviceptr to, CUdeviceptr from, size_t n), (to, from, n))
COPY_HOOKS(peer, SLOT_PEER, COPY_PTOP, n, NOTHING,
	   (CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from, CUcontext from_ctx, size_t n),
	   (to, to_ctx, from, from_ctx, n))
COPY_HOOKS(set8, SLOT_SET8, COPY_SET, n, NOTHING,
	   (CUdeviceptr to, uint8_t value, size_t n), (to, value, n))
COPY_HOOKS(set16, SLOT_SET16, COPY_SET, n * 2, NOTHING,
	   (CUdeviceptr to, uint16_t value, size_t n), (to, value, n))
COPY_HOOKS(set32, SLOT_SET32, COPY_SET, n * 4, NOTHING,
	   (CUdeviceptr to, uint32_t value, size_t n), (to, value, n))

void *hook__copy(uint32_t slot)
{
	static void *const hooks[SLOT_SHAPES - SLOT_COPIES] = {
#define COPY_AT(slot) [slot - SLOT_COPIES]
		COPY_HOOKED(SLOT_HTOD, htod), COPY_HOOKED(SLOT_DTOH, dtoh), COPY_HOOKED(SLOT_DTOD, dtod),
		COPY_HOOKED(SLOT_COPY, copy), COPY_HOOKED(SLOT_PEER, peer), COPY_HOOKED(SLOT_SET8, set8),
		COPY_HOOKED(SLOT_SET16, set16), COPY_HOOKED(SLOT_SET32, set32),
#undef COPY_AT
	};

	return slot < SLOT_SHAPES ? hooks[slot - SLOT_COPIES] : hook__shape(slot);
}
