// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "unwind/page.h"
#include "unwind/elf_view.h"

#include <errno.h>
#include <string.h>

/* Code is read this far around the bytes asked for, so that what crosses the border is seen. */
#define AROUND 16
/* The entry code of C libraries is shorter; none of it is reached but from the kernel. */
#define ENTRY_BYTES 64
#define ANY (-1)
#define MAX_PATTERN 18

/* Bytes of a PLT and the CFA in it: rsp + first, and 8 more from each of two bytes on. */
struct plt_pattern {
	int16_t bytes[MAX_PATTERN];
	uint8_t nr;
	uint8_t len;		/* of the code it stands for */
	uint8_t first;
	uint8_t grow[2];	/* 0: doesn't */
};

#define R32 ANY, ANY, ANY, ANY
static const struct plt_pattern plts[] = {
	/* jmp *slot; push index; jmp header: the lazy slot of the psABI */
	{ { 0xff, 0x25, R32, 0x68, R32, 0xe9 }, 12, 16, 8, { 11 } },
	/* push; jmp *: its header, entered with the index pushed */
	{ { 0xff, 0x35, R32, 0xff, 0x25, R32 }, 12, 16, 16, { 6 } },
	/* endbr64; push index; jmp header: the lazy slot with IBT */
	{ { 0xf3, 0x0f, 0x1e, 0xfa, 0x68, R32, 0xe9 }, 10, 16, 8, { 9 } },
	/* endbr64; jmp *slot: .plt.sec; with a bnd prefix in older ones */
	{ { 0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, R32 }, 10, 16, 8, { 0 } },
	{ { 0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, R32 }, 11, 16, 8, { 0 } },
	/* mold: endbr64; mov $index, %r11d; jmp *slot, and its header, which pushes r11 first */
	{ { 0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0xbb, R32, 0xff, 0x25 }, 12, 16, 8, { 0 } },
	{ { 0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x53, 0xff, 0x35, R32, 0xff, 0x25, R32 }, 18, 18, 8,
	  { 6, 12 } },
	/* jmp *slot and padding: .plt.got, and every slot of a library bound at start */
	{ { 0xff, 0x25, R32, 0x66, 0x90 }, 8, 8, 8, { 0 } },
	{ { 0xff, 0x25, R32, 0xcc, 0xcc }, 8, 8, 8, { 0 } },
};

/* rt_sigreturn is system call 15; the return address of a handler is the start of one of these. */
static const uint8_t sigreturn_long[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 };
static const uint8_t sigreturn_short[] = { 0xb8, 15, 0, 0, 0, 0x0f, 0x05 };

/* Code around some bytes of the page. */
struct code {
	const uint8_t *bytes;
	int64_t from, to;	/* in the page; may lie before and behind it */
};

static bool code__matches(const struct code *code, int64_t at, const struct plt_pattern *p)
{
	if (at < code->from || at + p->nr > code->to)
		return false;
	for (unsigned int i = 0; i < p->nr; i++)
		if (p->bytes[i] != ANY && p->bytes[i] != code->bytes[at - code->from + i])
			return false;
	return true;
}

static bool code__has(const struct code *code, int64_t at, const uint8_t *bytes, size_t len)
{
	return at >= code->from && at + (int64_t)len <= code->to &&
	       !memcmp(&code->bytes[at - code->from], bytes, len);
}

static int plt__paint(struct page *page, int64_t at, const struct plt_pattern *p)
{
	struct unwind_rule rule = { .cfa = UNWIND_CFA_REG, .cfa_reg = UNWIND_RSP,
				    .ra = UNWIND_SAVE_CFA, .ra_off = -8, .cfa_off = p->first };
	int64_t from = at;
	int err = 0;

	for (unsigned int i = 0; i < 3 && !err; i++) {
		int64_t to = at + (i < 2 && p->grow[i] ? p->grow[i] : p->len);

		err = page__paint(page, from, to, &rule);
		if (to == at + p->len)
			break;
		from = to;
		rule.cfa_off += 8;
	}
	return err;
}

/* Slots are aligned to 8, all but those of .plt.got to 16. */
static int recognise_plt(struct page *page, const struct code *code, uint32_t from, uint32_t to)
{
	for (uint32_t at = (from + 7) & ~7u; at < to; at += 8) {
		if (page->rule[at] != PAGE_UNCOVERED)
			continue;
		for (size_t i = 0; i < sizeof(plts) / sizeof(plts[0]); i++) {
			int err;

			if ((plts[i].len > 8 && at % 16) || !code__matches(code, at, &plts[i]))
				continue;
			err = plt__paint(page, at, &plts[i]);
			if (err)
				return err;
			page->plt = true;
			break;
		}
	}
	return 0;
}

/*
 * A handler returns to the first byte of the trampoline, and the byte before is looked up: it gets
 * the rule, too, as in glibc, unless it is the end of a function that has rules.
 */
static int recognise_sigreturn(struct page *page, const struct code *code, uint32_t from,
			       uint32_t to)
{
	const struct unwind_rule rule = cfi__sigreturn_rule();

	for (int64_t at = (int64_t)from - AROUND; at <= (int64_t)to; at++) {
		size_t len = 0;
		int err;

		if (code__has(code, at, sigreturn_long, sizeof(sigreturn_long)))
			len = sizeof(sigreturn_long);
		else if (code__has(code, at, sigreturn_short, sizeof(sigreturn_short)))
			len = sizeof(sigreturn_short);
		if (!len)
			continue;
		err = page__paint(page, at - 1, at + (int64_t)len, &rule);
		if (err)
			return err;
		page->sigreturn = true;
	}
	return 0;
}

/* The kernel enters here and nothing returns from it: the outermost frame. */
static int recognise_entry(struct page *page, struct elf_view *view, uint32_t from, uint32_t to)
{
	const struct unwind_rule stop = { .cfa = UNWIND_CFA_STOP };
	int64_t at = (int64_t)(elf_view__entry(view) - page->vaddr), end;

	if (!elf_view__entry(view) || at >= (int64_t)to || at + ENTRY_BYTES <= (int64_t)from)
		return 0;
	end = at + ENTRY_BYTES < (int64_t)to ? at + ENTRY_BYTES : (int64_t)to;
	if (at < (int64_t)from)
		at = from;
	for (int64_t i = at; i < end; i++)
		if (page->rule[i] != PAGE_UNCOVERED)
			end = i;	/* what has rules isn't the entry any more */
	return page__paint(page, at, end, &stop);
}

int page__recognise(struct page *page, struct elf_view *view, uint64_t offset, uint32_t from,
		    uint32_t to)
{
	uint8_t bytes[PAGE_BYTES + 2 * AROUND];
	struct code code = { bytes, (int64_t)from - AROUND, (int64_t)to + AROUND };
	int err;

	if (offset < AROUND)
		code.from += AROUND - (int64_t)offset;
	offset -= (uint64_t)(from - code.from);
	do {		/* the segment may be the end of the file */
		err = elf_view__read(view, offset, bytes, (size_t)(code.to - code.from));
	} while (err == -ERANGE && --code.to > (int64_t)to);
	if (err == -ERANGE)
		err = elf_view__read(view, offset, bytes, (size_t)(code.to - code.from));
	if (!err)
		err = recognise_plt(page, &code, from, to);
	if (!err)
		err = recognise_sigreturn(page, &code, from, to);
	return err ? err : recognise_entry(page, view, from, to);
}
