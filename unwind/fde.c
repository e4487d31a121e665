// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "unwind/fde.h"
#include "unwind/cursor.h"
#include "unwind/elf_view.h"
#include "unwind/fde_parse.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_ENTRIES (1u << 21)	/* of an index: 32 MiB */
#define MAX_SCAN (128ull << 20)	/* bytes of a section that are looked at */
#define CHEAP_COUNT (512ull << 10)	/* .eh_frame up to this size is counted to check the table */
#define LOOK_BACK 8		/* entries before the range that may reach into it */
/* For one range: entries (4096 starts, and some that are empty) and bytes of instructions. */
#define MAX_VISITS 16384
#define MAX_WORK (4u << 20)

/* Of the index; sorted by start, then by length, so that the longer of two equals comes last. */
struct entry {
	uint64_t start;
	uint32_t len;		/* saturated */
	uint32_t offset;	/* in the section */
};

struct table {
	uint64_t offset;	/* in the file, of the first entry */
	uint64_t nr;
	uint64_t base;		/* what datarel values are relative to */
	uint8_t encoding;
	uint8_t entry_size;
	bool checked;
};

struct fde_index {
	struct elf_view *view;
	struct elf_part part;
	enum fde_source source;
	struct fde_parser *parser;
	struct table table;
	struct entry *entries;
	size_t nr, cap;
	bool scanned;
};

/* --- the index over a section ------------------------------------------------------------- */

static bool view__is_code(const struct elf_view *view, uint64_t vaddr)
{
	size_t nr;
	const struct elf_segment *seg = elf_view__segments(view, &nr);

	for (size_t i = 0; i < nr; i++)
		if (seg[i].executable && vaddr >= seg[i].vaddr &&
		    vaddr - seg[i].vaddr < seg[i].size)
			return true;
	return false;
}

static int index__add(struct fde_index *index, const struct fde *fde, uint64_t offset)
{
	uint64_t len = fde->end - fde->start;

	if (index->nr == MAX_ENTRIES || offset > UINT32_MAX)
		return 0;
	if (index->nr == index->cap) {
		size_t cap = index->cap ? index->cap * 2 : 256;
		struct entry *entries = realloc(index->entries, cap * sizeof(*entries));

		if (!entries)
			return -ENOMEM;
		index->entries = entries;
		index->cap = cap;
	}
	index->entries[index->nr++] = (struct entry){
		fde->start, len > UINT32_MAX ? UINT32_MAX : (uint32_t)len, (uint32_t)offset,
	};
	return 0;
}

static int entry__compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Walks the section; with `count` nothing is kept but the number of entries of code. */
static int index__walk(struct fde_index *index, uint64_t *count)
{
	uint64_t at = 0, next, limit = index->part.size;
	struct fde fde;
	int err;

	if (limit > MAX_SCAN)
		limit = MAX_SCAN;
	for (; at < limit; at = next) {
		err = fde_parser__entry(index->parser, index->part.offset + at, &fde, &next);
		next -= index->part.offset;
		if (err == -ENOENT && next - at == 4 && index->part.open_ended)
			break;		/* a terminator, with something else behind it */
		if (err == -ENOENT)
			continue;
		if (err == -ERANGE || err == -EINVAL)
			break;
		if (err)
			return err;
		if (!view__is_code(index->view, fde.start))
			continue;
		if (count)
			++*count;
		else if ((err = index__add(index, &fde, at)))
			return err;
	}
	return 0;
}

static int index__scan(struct fde_index *index)
{
	bool sorted = true;
	int err;

	index->source = FDE_SCAN;
	index->nr = 0;
	err = index__walk(index, NULL);
	if (err)
		return err;
	for (size_t i = 1; i < index->nr && sorted; i++)
		sorted = entry__compare(&index->entries[i - 1], &index->entries[i]) <= 0;
	if (!sorted)
		qsort(index->entries, index->nr, sizeof(*index->entries), entry__compare);
	index->scanned = true;
	return 0;
}

static int index__distrust(struct fde_index *index)
{
	int err = index__scan(index);

	return err ? err : -EAGAIN;
}

/* --- the table of .eh_frame_hdr ----------------------------------------------------------- */

static uint8_t encoding__size(uint8_t encoding)
{
	switch (encoding & EH_PE_FORMAT) {
	case EH_PE_UDATA4:
	case EH_PE_SDATA4:
		return 4;
	case EH_PE_ABSPTR:
	case EH_PE_UDATA8:
	case EH_PE_SDATA8:
		return 8;
	}
	return 0;
}

/* False: there is no table that can be searched. */
static bool table__open(struct fde_index *index)
{
	const struct elf_part *hdr = elf_view__eh_frame_hdr(index->view);
	struct table *t = &index->table;
	uint8_t bytes[32];
	size_t len = hdr->size < sizeof(bytes) ? hdr->size : sizeof(bytes);
	struct cursor c = cursor__init(bytes, len, hdr->vaddr);
	uint8_t version, ptr_enc, count_enc, base;

	if (len < 12 || elf_view__read(index->view, hdr->offset, bytes, len))
		return false;
	version = cursor__u8(&c);
	ptr_enc = cursor__u8(&c);
	count_enc = cursor__u8(&c);
	t->encoding = cursor__u8(&c);
	if (version != 1 || ptr_enc == EH_PE_OMIT || count_enc == EH_PE_OMIT ||
	    t->encoding == EH_PE_OMIT)
		return false;
	cursor__pointer(&c, ptr_enc, hdr->vaddr);
	t->nr = cursor__pointer(&c, count_enc, hdr->vaddr);
	t->base = hdr->vaddr;
	base = t->encoding & (EH_PE_BASE | EH_PE_INDIRECT);
	t->entry_size = 2 * encoding__size(t->encoding);
	t->offset = hdr->offset + (uint64_t)(c.at - c.start);
	return !c.bad && t->nr && t->entry_size && (base == 0 || base == EH_PE_DATAREL) &&
	       t->nr <= (hdr->size - (uint64_t)(c.at - c.start)) / t->entry_size;
}

static int table__read(struct fde_index *index, uint64_t i, uint64_t *start, uint64_t *fde)
{
	const struct table *t = &index->table;
	uint8_t bytes[16];
	struct cursor c = cursor__init(bytes, t->entry_size, 0);
	int err = elf_view__read(index->view, t->offset + i * t->entry_size, bytes, t->entry_size);

	if (err)
		return err;
	*start = cursor__pointer(&c, t->encoding, t->base);
	*fde = cursor__pointer(&c, t->encoding, t->base);
	return 0;
}

/* Whether all of it is sorted: 1, 0 or a negative errno. Large reads, past the cache. */
static int table__sorted(struct fde_index *index)
{
	const struct table *t = &index->table;
	uint8_t bytes[16384];
	uint64_t per_read = sizeof(bytes) / t->entry_size, last = 0;

	for (uint64_t i = 0; i < t->nr; i += per_read) {
		uint64_t n = t->nr - i < per_read ? t->nr - i : per_read;
		struct cursor c = cursor__init(bytes, n * t->entry_size, 0);
		int err = elf_view__read(index->view, t->offset + i * t->entry_size, bytes,
					 n * t->entry_size);

		if (err)
			return err;
		while (cursor__left(&c)) {
			uint64_t start = cursor__pointer(&c, t->encoding, t->base);

			cursor__skip(&c, t->entry_size / 2);
			if (start < last)
				return 0;
			last = start;
		}
	}
	return 1;
}

/* Index of the first entry with a start above `vaddr`; -EAGAIN if the table isn't sorted. */
static int table__search(struct fde_index *index, uint64_t vaddr, uint64_t *first)
{
	uint64_t lo = 0, hi = index->table.nr, below = 0, above = UINT64_MAX, start, fde;

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;
		int err = table__read(index, mid, &start, &fde);

		if (err)
			return err;
		if (start < below || start > above)
			return index__distrust(index);
		if (start <= vaddr) {
			lo = mid + 1;
			below = start;
		} else {
			hi = mid;
			above = start;
		}
	}
	*first = lo;
	return 0;
}

/* The FDE that entry i of the table means: -ENOENT if it is empty, -EAGAIN if it is a lie. */
static int table__fde(struct fde_index *index, uint64_t i, uint64_t *start, struct fde *fde)
{
	uint64_t vaddr, offset, next;
	int err;

	err = table__read(index, i, start, &vaddr);
	if (err)
		return err;
	if (!elf_view__offset(index->view, vaddr, &offset, NULL))
		return index__distrust(index);
	err = fde_parser__entry(index->parser, offset, fde, &next);
	if (err == -ENOMEM || err == -EIO)
		return err;
	if ((err && err != -ENOENT) || fde->start != *start)
		return index__distrust(index);
	return err;
}

static int table__each(struct fde_index *index, uint64_t lo, uint64_t hi, fde_fn fn, void *ctx)
{
	uint64_t above, start = 0, last = 0, work = 0, i;
	struct fde fde;
	int err;

	err = table__search(index, lo, &above);
	if (err)
		return err;
	i = above > LOOK_BACK ? above - LOOK_BACK : 0;
	for (uint64_t visits = 0; i < index->table.nr && visits < MAX_VISITS && work < MAX_WORK;
	     i++, visits++) {
		err = table__fde(index, i, &start, &fde);
		if (err && err != -ENOENT)
			return err;
		if (start < last)
			return index__distrust(index);
		last = start;
		if (start >= hi)
			break;
		if (err || fde.end <= lo)
			continue;
		work += fde.insns_len + fde.cie->insns_len;
		err = fn(ctx, &fde);
		if (err)
			return err;
	}
	return 0;
}

static int table__check(struct fde_index *index)
{
	uint64_t count = 0;
	int err = table__sorted(index);

	if (err <= 0)
		return err ? err : index__distrust(index);
	if (index->part.size > CHEAP_COUNT)
		return 0;
	err = index__walk(index, &count);
	if (err)
		return err;
	return count > index->table.nr ? index__distrust(index) : 0;
}

int fde_index__doubt(struct fde_index *index)
{
	if (index->source != FDE_TABLE || index->table.checked)
		return 0;
	index->table.checked = true;
	return table__check(index);
}

/* --- the object --------------------------------------------------------------------------- */

static int scan__each(struct fde_index *index, uint64_t lo, uint64_t hi, fde_fn fn, void *ctx)
{
	size_t from = 0, to = index->nr, visits = 0;
	uint64_t next, work = 0;
	struct fde fde;
	int err;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (index->entries[mid].start <= lo)
			from = mid + 1;
		else
			to = mid;
	}
	from = from > LOOK_BACK ? from - LOOK_BACK : 0;
	for (size_t i = from; i < index->nr && visits < MAX_VISITS && work < MAX_WORK;
	     i++, visits++) {
		const struct entry *e = &index->entries[i];

		if (e->start >= hi)
			break;
		if (e->len != UINT32_MAX && e->start + e->len <= lo)
			continue;
		err = fde_parser__entry(index->parser, index->part.offset + e->offset, &fde, &next);
		if (err == -ENOMEM || err == -EIO)
			return err;
		if (err || fde.end <= lo || fde.start >= hi)
			continue;	/* the file changed under us */
		work += fde.insns_len + fde.cie->insns_len;
		err = fn(ctx, &fde);
		if (err)
			return err;
	}
	return 0;
}

int fde_index__each(struct fde_index *index, uint64_t lo, uint64_t hi, fde_fn fn, void *ctx)
{
	if (index->source == FDE_TABLE)
		return table__each(index, lo, hi, fn, ctx);
	if (index->source == FDE_SCAN) {
		int err = index->scanned ? 0 : index__scan(index);

		return err ? err : scan__each(index, lo, hi, fn, ctx);
	}
	return 0;
}

int fde_index__new(struct fde_index **out, struct elf_view *view, enum fde_section section)
{
	struct fde_index *index = calloc(1, sizeof(*index));
	int err;

	if (!index)
		return -ENOMEM;
	index->view = view;
	index->part = section == FDE_DEBUG_FRAME ? *elf_view__debug_frame(view) :
						   *elf_view__eh_frame(view);
	err = fde_parser__new(&index->parser, view, &index->part, section);
	if (err) {
		free(index);
		return err;
	}
	if (index->part.size)
		index->source = section == FDE_EH_FRAME && table__open(index) ? FDE_TABLE :
										FDE_SCAN;
	*out = index;
	return 0;
}

void fde_index__free(struct fde_index *index)
{
	if (!index)
		return;
	fde_parser__free(index->parser);
	free(index->entries);
	free(index);
}

enum fde_source fde_index__source(const struct fde_index *index)
{
	return index->source;
}

size_t fde_index__memory(const struct fde_index *index)
{
	return sizeof(*index) + index->cap * sizeof(*index->entries) +
	       fde_parser__memory(index->parser);
}
