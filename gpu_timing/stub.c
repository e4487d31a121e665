// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "gpu_timing/channel.h"
#include "gpu_timing/stub.h"

#define BREAKPOINT 0xcc		/* int3 */

#include <errno.h>
#include <linux/types.h>
#include <stdbool.h>
#include <string.h>

struct cursor {
	const uint8_t *code;
	size_t size;
	size_t at;
	uint64_t base;
};

/* Steps over these bytes if they are there. */
static bool match(struct cursor *c, const uint8_t *bytes, size_t len)
{
	if (len > c->size - c->at || memcmp(c->code + c->at, bytes, len))
		return false;
	c->at += len;
	return true;
}

#define MATCH(c, ...) \
	match(c, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static bool take8(struct cursor *c, uint8_t *value)
{
	if (c->at >= c->size)
		return false;
	*value = c->code[c->at++];
	return true;
}

static bool take32(struct cursor *c, int32_t *value)
{
	if (c->size - c->at < sizeof(*value))
		return false;
	memcpy(value, c->code + c->at, sizeof(*value));
	c->at += sizeof(*value);
	return true;
}

/* cmpl $STUB_GONE, gone(%rip) */
static bool compare(struct cursor *c, struct stub *stub)
{
	int32_t rel, imm;

	if (!MATCH(c, 0x81, 0x3d) || !take32(c, &rel) || !take32(c, &imm))
		return false;
	stub->gone = c->base + c->at + (uint64_t)(int64_t)rel;
	return (uint32_t)imm == STUB_GONE;
}

/* je, short or near, to `*target` (offset in the entry). */
static bool jump_if_gone(struct cursor *c, int64_t *target)
{
	int32_t rel;
	uint8_t near;

	if (MATCH(c, 0x74)) {
		if (!take8(c, &near))
			return false;
		*target = (int64_t)c->at + (int8_t)near;
		return true;
	}
	if (!MATCH(c, 0x0f, 0x84) || !take32(c, &rel))
		return false;
	*target = (int64_t)c->at + rel;
	return true;
}

/* The number (from 1) of the stack argument at disp(%rbp), 0 if it isn't one. */
static unsigned int argument(uint8_t disp)
{
	return disp < 0x10 || disp > 0x78 || disp % 8 ? 0 : (disp - 0x10) / 8u + 1;
}

/*
 * Between the jump and the call the stack arguments are pushed again, last one first, from memory
 * or through eax, on top of 8 bytes where their number is odd.
 */
static bool push_arguments(struct cursor *c, unsigned int nr)
{
	unsigned int want = nr, in_eax = 0;
	bool padded = false;
	uint8_t disp;

	for (;;) {
		if (MATCH(c, 0xff, 0x75)) {		/* push disp(%rbp) */
			if (!want || !take8(c, &disp) || argument(disp) != want--)
				return false;
		} else if (MATCH(c, 0x50)) {		/* push %rax */
			if (!want || in_eax != want--)
				return false;
		} else if (MATCH(c, 0x8b, 0x45)) {	/* mov disp(%rbp), %eax */
			if (!take8(c, &disp))
				return false;
			in_eax = argument(disp);
			if (!in_eax)
				return false;
		} else if (MATCH(c, 0x48, 0x83, 0xec, 0x08)) {	/* sub $8, %rsp */
			if (padded || want != nr)
				return false;
			padded = true;
		} else {
			return !want && padded == nr % 2;
		}
	}
}

/* A narrow argument may be widened in its own register: movzbl or movzwl. */
static void widen_argument(struct cursor *c, struct stub_args args)
{
	if (args.narrow == 2 && args.bits == 8)
		MATCH(c, 0x40, 0x0f, 0xb6, 0xf6);	/* %sil, %esi */
	else if (args.narrow == 2 && args.bits == 16)
		MATCH(c, 0x0f, 0xb7, 0xf6);		/* %si, %esi */
	else if (args.narrow == 3 && args.bits == 8)
		MATCH(c, 0x0f, 0xb6, 0xd2);		/* %dl, %edx */
	else if (args.narrow == 3 && args.bits == 16)
		MATCH(c, 0x0f, 0xb7, 0xd2);		/* %dx, %edx */
}

struct stub_args stub__args(uint32_t slot)
{
	switch (slot) {
	case ENTRY_LAUNCH_KERNEL:
	case ENTRY_LAUNCH_KERNEL_PTSZ:
		return (struct stub_args){ .on_stack = 5 };
	case ENTRY_COOPERATIVE:
	case ENTRY_COOPERATIVE_PTSZ:
		return (struct stub_args){ .on_stack = 4 };
	case SLOT_SET8_ASYNC:
	case SLOT_SET8_ASYNC_PTSZ:
	case SLOT_SET8:
	case SLOT_SET8_PTDS:
		return (struct stub_args){ .narrow = 2, .bits = 8 };
	case SLOT_SET16_ASYNC:
	case SLOT_SET16_ASYNC_PTSZ:
	case SLOT_SET16:
	case SLOT_SET16_PTDS:
		return (struct stub_args){ .narrow = 2, .bits = 16 };
	case SLOT_SET2D8_ASYNC:
	case SLOT_SET2D8_ASYNC_PTSZ:
	case SLOT_SET2D8:
	case SLOT_SET2D8_PTDS:
		return (struct stub_args){ .narrow = 3, .bits = 8 };
	case SLOT_SET2D16_ASYNC:
	case SLOT_SET2D16_ASYNC_PTSZ:
	case SLOT_SET2D16:
	case SLOT_SET2D16_PTDS:
		return (struct stub_args){ .narrow = 3, .bits = 16 };
	case SLOT_BATCH_ASYNC:
	case SLOT_BATCH_ASYNC_PTSZ:
		return (struct stub_args){ .on_stack = 3 };
	case SLOT_BATCH_V2_ASYNC:
	case SLOT_BATCH_V2_ASYNC_PTSZ:
		return (struct stub_args){ .on_stack = 2 };
	default:
		return (struct stub_args){ 0 };
	}
}

static int decode(const uint8_t *code, size_t size, uint64_t at, struct stub_args args,
		  struct stub *stub)
{
	struct cursor c = { .code = code, .size = size, .base = at };
	int64_t tail;
	int32_t rel;
	bool framed;

	/* push %rbp; mov %rsp, %rbp; push %r12; sub $8, %rsp */
	framed = MATCH(&c, 0x55, 0x48, 0x89, 0xe5, 0x41, 0x54, 0x48, 0x83, 0xec, 0x08);
	if (!compare(&c, stub) || !jump_if_gone(&c, &tail))
		return -ENOEXEC;
	if (framed) {
		widen_argument(&c, args);
		/* call *slot(%rip) */
		if (!push_arguments(&c, args.on_stack) || !MATCH(&c, 0xff, 0x15))
			return -ENOEXEC;
	} else if (!MATCH(&c, 0xff, 0x25)) {	/* jmp *slot(%rip) */
		return -ENOEXEC;
	}
	if (!take32(&c, &rel))
		return -ENOEXEC;
	stub->slot = c.base + c.at + (uint64_t)(int64_t)rel;
	/* The way to "shut down" must be inside the entry and behind the call. */
	if (tail < (int64_t)c.at || tail >= (int64_t)size)
		return -ENOEXEC;
	return 0;
}

int stub__decode(const uint8_t *code, size_t size, uint64_t at, struct stub_args args,
		 struct stub *stub)
{
	static const uint8_t first[] = { 0x55, 0x81 };
	uint8_t seen[STUB_MAX_SIZE];
	size_t i;

	if (size > STUB_MAX_SIZE)
		return -ENOEXEC;
	if (!size || code[0] != BREAKPOINT)
		return decode(code, size, at, args, stub);
	/* Somebody's uprobe sits on the entry; all that follows it tells what stood there. */
	memcpy(seen, code, size);
	for (i = 0; i < sizeof(first); i++) {
		seen[0] = first[i];
		if (!decode(seen, size, at, args, stub))
			return 0;
	}
	return -ENOEXEC;
}
