/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading DWARF's primitive values from bytes in memory. A read past the end gives 0 and marks
 * the cursor bad for good, so that a caller may check once, after a group of reads.
 * Inline because the call frame interpreter spends its time here.
 */
#ifndef UNWIND_CURSOR_H
#define UNWIND_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Pointer encodings, LSB Core 10.5.1. */
#define EH_PE_ABSPTR 0x00
#define EH_PE_ULEB128 0x01
#define EH_PE_UDATA2 0x02
#define EH_PE_UDATA4 0x03
#define EH_PE_UDATA8 0x04
#define EH_PE_SLEB128 0x09
#define EH_PE_SDATA2 0x0a
#define EH_PE_SDATA4 0x0b
#define EH_PE_SDATA8 0x0c
#define EH_PE_FORMAT 0x0f
#define EH_PE_PCREL 0x10
#define EH_PE_DATAREL 0x30
#define EH_PE_BASE 0x70
#define EH_PE_INDIRECT 0x80
#define EH_PE_OMIT 0xff

struct cursor {
	const uint8_t *at;
	const uint8_t *end;
	uint64_t vaddr;		/* of the first byte, for pcrel values */
	const uint8_t *start;
	bool bad;
};

static inline struct cursor cursor__init(const void *data, size_t len, uint64_t vaddr)
{
	return (struct cursor){ data, (const uint8_t *)data + len, vaddr, data, false };
}

static inline size_t cursor__left(const struct cursor *c)
{
	return (size_t)(c->end - c->at);
}

static inline void cursor__skip(struct cursor *c, uint64_t len)
{
	if (len > cursor__left(c)) {
		c->bad = true;
		len = cursor__left(c);
	}
	c->at += len;
}

static inline uint64_t cursor__uint(struct cursor *c, size_t size)
{
	uint64_t v = 0;

	if (size > cursor__left(c)) {
		c->bad = true;
		c->at = c->end;
		return 0;
	}
	memcpy(&v, c->at, size);	/* x86-64 and these files are little-endian */
	c->at += size;
	return v;
}

static inline uint8_t cursor__u8(struct cursor *c)
{
	return (uint8_t)cursor__uint(c, 1);
}

static inline uint16_t cursor__u16(struct cursor *c)
{
	return (uint16_t)cursor__uint(c, 2);
}

static inline uint32_t cursor__u32(struct cursor *c)
{
	return (uint32_t)cursor__uint(c, 4);
}

static inline uint64_t cursor__u64(struct cursor *c)
{
	return cursor__uint(c, 8);
}

/* Bits past the 64th are dropped, as every other reader of this format does. */
static inline uint64_t cursor__uleb(struct cursor *c)
{
	uint64_t v = 0;
	unsigned int shift = 0;

	while (c->at < c->end) {
		uint8_t byte = *c->at++;

		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (!(byte & 0x80))
			return v;
	}
	c->bad = true;
	return 0;
}

static inline int64_t cursor__sleb(struct cursor *c)
{
	uint64_t v = 0;
	unsigned int shift = 0;

	while (c->at < c->end) {
		uint8_t byte = *c->at++;

		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (byte & 0x80)
			continue;
		if (shift < 64 && (byte & 0x40))
			v |= ~0ull << shift;
		return (int64_t)v;
	}
	c->bad = true;
	return 0;
}

/* Value of a given EH_PE format, sign-extended where the format says so. */
static inline uint64_t cursor__format(struct cursor *c, uint8_t format)
{
	switch (format & EH_PE_FORMAT) {
	case EH_PE_ABSPTR:
	case EH_PE_UDATA8:
	case EH_PE_SDATA8:
		return cursor__u64(c);
	case EH_PE_UDATA4:
		return cursor__u32(c);
	case EH_PE_SDATA4:
		return (uint64_t)(int64_t)(int32_t)cursor__u32(c);
	case EH_PE_UDATA2:
		return cursor__u16(c);
	case EH_PE_SDATA2:
		return (uint64_t)(int64_t)(int16_t)cursor__u16(c);
	case EH_PE_ULEB128:
		return cursor__uleb(c);
	case EH_PE_SLEB128:
		return (uint64_t)cursor__sleb(c);
	}
	c->bad = true;
	return 0;
}

/*
 * An encoded pointer: absolute, relative to its own place, or to `data`. Other bases and
 * indirection (which needs the memory of a process) make the cursor bad.
 */
static inline uint64_t cursor__pointer(struct cursor *c, uint8_t encoding, uint64_t data)
{
	uint64_t place = c->vaddr + (uint64_t)(c->at - c->start), v = cursor__format(c, encoding);

	switch (encoding & (EH_PE_BASE | EH_PE_INDIRECT)) {
	case 0:
		return v;
	case EH_PE_PCREL:
		return v + place;
	case EH_PE_DATAREL:
		return v + data;
	}
	c->bad = true;
	return 0;
}

#endif
