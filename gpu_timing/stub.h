/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The driver's exported entries are stubs: they compare a word with a magic value (equal once the
 * driver has shut down) and call, or jump, through an 8-byte slot of its data. Two shapes are
 * known; anything else is refused. Read in libcuda 580.159.04: all 671 entries with a slot have the
 * first shape. A pure function, so that it can be tested byte by byte.
 */
#ifndef GPU_TIMING_STUB_H
#define GPU_TIMING_STUB_H

#include <stddef.h>
#include <stdint.h>

#define STUB_GONE 0x321cba00u	/* what the word holds after the driver's exit handler */
#define STUB_MAX_SIZE 512

/* What an entry (enum channel_slot) takes that its stub has to pass on by code, x86-64: cuda.h 13.0. */
struct stub_args {
	unsigned int on_stack;	/* arguments on the stack */
	unsigned int narrow;	/* the register argument, from 1, that has 8 or 16 bits; 0: none */
	unsigned int bits;	/* of that */
};

struct stub_args stub__args(uint32_t slot);

struct stub {
	uint64_t gone;		/* address of that word */
	uint64_t slot;		/* address of the slot */
};

/*
 * code: the size bytes of an entry that lies at address `at` and takes such arguments. 0, or
 * -ENOEXEC: not exactly one of the known shapes, or the slot's callee would not get the entry's own
 * arguments in their order.
 */
int stub__decode(const uint8_t *code, size_t size, uint64_t at, struct stub_args args,
		 struct stub *stub);

#endif
