// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A copy of the function runs where a pointer was found equal to its address, so that address is taken:
 *
 *	lea	FUNCTION(%rip), %rcx		or, in programs that can't be moved,
 *	cmp	%rcx, %rax			cmp	$FUNCTION, %rax
 *	jne	...
 *
 * What calls FUNCTION instead of going on in a copy meets the probe, but isn't told from the other here.
 * Encodings: Intel SDM volume 2, chapter 2.1; push: 50+r, with REX.B for r8 to r15.
 */
#include "unwind/python_frees.h"

#include <errno.h>
#include <string.h>

#include "unwind/elf_code.h"

#define ENTRY_BYTES 8		/* that are looked at: endbr64 and a push */
#define OVERLAP 8
#define LEA 0x8d
#define NO_CODE 4096u		/* addresses in the first page: such numbers stand everywhere */

struct search {
	uint64_t function;
	bool absolute;
};

int python_frees__push(const uint8_t *code, size_t len)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	size_t at = 0, op;

	if (len >= sizeof(endbr64) && !memcmp(code, endbr64, sizeof(endbr64)))
		at = sizeof(endbr64);
	op = at < len && code[at] == 0x41 ? at + 1 : at;
	return op < len && (code[op] & 0xf8) == 0x50 ? (int)at : -1;
}

bool python_frees__takes(const uint8_t *code, size_t len, uint64_t vaddr, uint64_t function, bool absolute)
{
	int32_t value;

	for (size_t i = 0; i + sizeof(value) <= len; i++) {
		memcpy(&value, code + i, sizeof(value));
		if (absolute && (uint32_t)value == function)
			return true;
		/* lea, with an operand relative to the end of the instruction (mod 0, r/m 5) */
		if (i >= 2 && code[i - 2] == LEA && (code[i - 1] & 0xc7) == 5 &&
		    vaddr + i + sizeof(value) + (uint64_t)(int64_t)value == function)
			return true;
	}
	return false;
}

static int search__piece(void *ctx, const uint8_t *code, size_t len, uint64_t vaddr)
{
	const struct search *s = ctx;

	return python_frees__takes(code, len, vaddr, s->function, s->absolute) ? -EEXIST : 0;
}

/* A program that can't be moved begins elsewhere than at 0. */
static bool is_absolute(const struct elf_view *view)
{
	size_t nr, i;
	const struct elf_segment *seg = elf_view__segments(view, &nr);

	for (i = 0; i < nr; i++)
		if (seg[i].vaddr < NO_CODE)
			return false;
	return true;
}

int python_frees__find(struct elf_view *view, uint64_t vaddr, unsigned int *behind)
{
	struct search s = { vaddr, is_absolute(view) };
	uint8_t code[ENTRY_BYTES];
	uint64_t offset, left;
	int err, push;

	if (!elf_view__offset(view, vaddr, &offset, &left) || left < sizeof(code))
		return -ENOENT;
	err = elf_view__read(view, offset, code, sizeof(code));
	if (err)
		return err;
	push = python_frees__push(code, sizeof(code));
	if (push < 0)
		return -ENOENT;
	*behind = (unsigned int)push;
	return elf_code__each(view, OVERLAP, search__piece, &s);
}
