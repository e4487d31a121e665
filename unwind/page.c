// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "unwind/page.h"
#include "unwind/elf_view.h"
#include "unwind/fde.h"
#include "unwind/file.h"
#include "unwind/rules.h"

#include <errno.h>
#include <string.h>

int page__paint(struct page *page, int64_t from, int64_t to, const struct unwind_rule *rule)
{
	int id;

	if (from < 0)
		from = 0;
	if (to > (int64_t)PAGE_BYTES)
		to = PAGE_BYTES;
	if (from >= to)
		return 0;
	id = rule_set__intern(page->rules, rule);
	if (id < 0)
		return id;
	if (!page->keep) {
		for (int64_t i = from; i < to; i++)
			page->rule[i] = (uint16_t)id;
		return 0;
	}
	for (int64_t i = from; i < to; i++)
		if (page->rule[i] == PAGE_UNCOVERED)
			page->rule[i] = (uint16_t)id;
	return 0;
}

static int paint_range(void *ctx, uint64_t start, uint64_t end, const struct unwind_rule *rule)
{
	struct page *page = ctx;

	return page__paint(page, (int64_t)(start - page->vaddr), (int64_t)(end - page->vaddr),
			   rule);
}

struct fill {
	struct page *page;
	uint64_t lo, hi;
};

static int fill__fde(void *ctx, const struct fde *fde)
{
	struct fill *fill = ctx;

	return cfi__run(fde, fill->lo, fill->hi, paint_range, fill->page, fill->page->cfi);
}

/* One kind of unwind information for bytes [from, to), again where the header table lied. */
static int page__fill(struct page *page, struct unwind_file *file, enum fde_section section,
		      uint32_t from, uint32_t to)
{
	struct fde_index *fdes = unwind_file__fdes(file, section);
	struct fill fill = { page, page->vaddr + from, page->vaddr + to };
	int err;

	if (fde_index__source(fdes) == FDE_NONE)
		return 0;
	err = fde_index__each(fdes, fill.lo, fill.hi, fill__fde, &fill);
	if (!err && page__has_gap(page, from, to))
		err = fde_index__doubt(fdes);
	if (err != -EAGAIN)
		return err;
	if (!page->keep)
		memset(&page->rule[from], 0xff, (to - from) * sizeof(page->rule[0]));
	err = fde_index__each(fdes, fill.lo, fill.hi, fill__fde, &fill);
	return err == -EAGAIN ? -EIO : err;
}

static int page__segment(struct page *page, struct unwind_file *file, uint64_t offset,
			 uint32_t from, uint32_t to)
{
	int err;

	page->keep = false;
	err = page__fill(page, file, FDE_EH_FRAME, from, to);
	page->keep = true;
	if (!err && page__has_gap(page, from, to))
		err = page__fill(page, file, FDE_DEBUG_FRAME, from, to);
	if (!err && page__has_gap(page, from, to))
		err = page__recognise(page, unwind_file__view(file), offset, from, to);
	return err;
}

/* Linkers let two segments meet in a page, seldom three. */
#define MAX_SEGMENTS 8

int page__compile(struct page *page, struct unwind_file *file, uint64_t nr)
{
	unsigned int left = MAX_SEGMENTS;
	uint64_t offset = nr << GPUCOLLECT_PAGE_SHIFT;
	const struct elf_segment *seg;
	size_t nr_segs;
	int err = 0;

	page->plt = false;
	page->sigreturn = false;
	memset(page->rule, 0xff, sizeof(page->rule));
	seg = elf_view__segments(unwind_file__view(file), &nr_segs);
	for (size_t i = 0; i < nr_segs && left && !err; i++) {
		uint64_t end = seg[i].offset + seg[i].size, from, to;

		if (!seg[i].executable || seg[i].offset >= offset + PAGE_BYTES || end <= offset)
			continue;
		left--;
		from = seg[i].offset > offset ? seg[i].offset - offset : 0;
		to = end - offset < PAGE_BYTES ? end - offset : PAGE_BYTES;
		page->vaddr = seg[i].vaddr - seg[i].offset + offset;
		err = page__segment(page, file, offset + from, (uint32_t)from, (uint32_t)to);
	}
	return err;
}

/* First byte of [from, to) whose rule isn't `rule`. */
static uint32_t page__run(const struct page *page, uint32_t from, uint32_t to, uint16_t rule)
{
	const uint64_t four = rule * 0x0001000100010001ull;
	uint64_t w;

	for (; from + 4 <= to; from += 4) {
		memcpy(&w, &page->rule[from], sizeof(w));
		if (w != four)
			break;
	}
	while (from < to && page->rule[from] == rule)
		from++;
	return from;
}

/* Looks at every 16th byte: a longer gap holds one of them. */
bool page__has_gap(const struct page *page, uint32_t from, uint32_t to)
{
	for (uint32_t at = from + PAGE_PADDING; at < to; at += PAGE_PADDING + 1) {
		uint32_t start = at;

		if (page->rule[at] != PAGE_UNCOVERED)
			continue;
		while (start > from && page->rule[start - 1] == PAGE_UNCOVERED)
			start--;
		if (page__run(page, start, to, PAGE_UNCOVERED) - start > PAGE_PADDING)
			return true;
	}
	return false;
}

uint32_t page__rows(const struct page *page, struct unwind_row *rows)
{
	uint32_t nr = 0, from = 0, end;

	for (; from < PAGE_BYTES; from = end) {
		uint16_t rule = page->rule[from];

		end = page__run(page, from, PAGE_BYTES, rule);
		if (rule == PAGE_UNCOVERED) {
			if (nr && end - from <= PAGE_PADDING && end < PAGE_BYTES)
				continue;
			rule = 0;
		}
		if (!nr || rows[nr - 1].rule != rule)
			rows[nr++] = (struct unwind_row){ (uint16_t)from, rule };
	}
	return nr;
}
