/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of GPU work (kernels), each kept once and known by a number. */
#ifndef LOADER_WORKS_H
#define LOADER_WORKS_H

#include <stddef.h>
#include <stdint.h>

struct works;

struct works *works__new(void);		/* NULL: out of memory */
void works__free(struct works *n);	/* NULL is fine */

/* The number of a kernel that has no name, which is not to be mixed up with any text. */
#define WORKS_NAMELESS UINT32_MAX

/* Any bytes; from a 0 on they are cut. 0: out of memory. */
uint32_t works__add(struct works *n, const char *text, size_t len);
/* "" for a number that was never given out. */
const char *works__get(const struct works *n, uint32_t name);

/*
 * What a kernel takes of the device, in one word: registers of each thread and static shared memory of
 * each block. 0: not known, or more than any device has. Two kernels of one name may differ in it.
 */
#define WORKS_MAX_REGISTERS 0x3ffu
#define WORKS_MAX_SHARED 0x3fffffu

static inline uint32_t works__sizes(uint32_t registers, uint32_t shared_bytes)
{
	return registers > WORKS_MAX_REGISTERS || shared_bytes > WORKS_MAX_SHARED || !registers ?
		       0 : registers << 22 | shared_bytes;
}

static inline uint32_t works__registers(uint32_t sizes)
{
	return sizes >> 22;
}

static inline uint32_t works__shared_bytes(uint32_t sizes)
{
	return sizes & WORKS_MAX_SHARED;
}

#endif
