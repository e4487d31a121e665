// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "unwind/fde_parse.h"
#include "unwind/cursor.h"

#include <errno.h>
#include <stdlib.h>

#define NR_CIES 8
#define MAX_ENTRY (1u << 20)	/* bytes of one entry; the longest seen, in librustc, has 34 KB */
#define FIRST_READ 80		/* most entries are shorter */

/* The bytes of an entry, as far as the parser holds them. */
struct raw {
	uint8_t *data;
	size_t cap;
	size_t len;		/* without the length field */
	size_t body;		/* where the length field ends in data */
	bool wide;		/* 64-bit length */
};

struct cie_slot {
	uint64_t offset;
	bool used;
	bool bad;		/* no CIE there */
	struct raw raw;
	struct cie cie;
};

struct fde_parser {
	struct elf_view *view;
	struct elf_part part;
	enum fde_section section;
	struct raw raw;
	struct cie_slot cies[NR_CIES];
	unsigned int next_slot;
};

static int raw__reserve(struct raw *raw, size_t len)
{
	size_t cap = raw->cap ? raw->cap : FIRST_READ;
	uint8_t *data;

	if (len <= raw->cap)
		return 0;
	while (cap < len)
		cap *= 2;
	data = realloc(raw->data, cap);
	if (!data)
		return -ENOMEM;
	raw->data = data;
	raw->cap = cap;
	return 0;
}

/* Reads a whole entry; a terminator has len 0. */
static int raw__read(struct raw *raw, struct fde_parser *p, uint64_t offset, uint64_t *next)
{
	uint64_t end = p->part.offset + p->part.size, len;
	size_t first = FIRST_READ;
	int err;

	if (offset < p->part.offset || offset >= end || end - offset < 4)
		return -ERANGE;
	if (first > end - offset)
		first = end - offset;
	err = raw__reserve(raw, first);
	if (!err)
		err = elf_view__read(p->view, offset, raw->data, first);
	if (err)
		return err;
	len = 0;
	memcpy(&len, raw->data, 4);
	raw->body = 4;
	raw->wide = len == UINT32_MAX;
	if (raw->wide) {
		if (first < 12)
			return -ERANGE;
		memcpy(&len, raw->data + 4, 8);
		raw->body = 12;
	}
	if (len > end - offset - raw->body || (!raw->wide && len >= 0xfffffff0))
		return -EINVAL;
	*next = offset + raw->body + len;
	raw->len = len;
	if (len > MAX_ENTRY)
		return -ENOENT;
	if (raw->body + len <= first)
		return 0;
	err = raw__reserve(raw, raw->body + len);
	return err ? err : elf_view__read(p->view, offset + first, raw->data + first,
					  raw->body + len - first);
}

static struct cursor raw__cursor(const struct raw *raw, const struct fde_parser *p, uint64_t offset)
{
	uint64_t vaddr = p->part.vaddr + (offset - p->part.offset);

	return cursor__init(raw->data + raw->body, raw->len, vaddr + raw->body);
}

/*
 * The field that tells a CIE from an FDE. In .debug_frame it is as wide as the length says. In
 * .eh_frame the specification has 4 bytes always, yet assemblers write 8 for 64-bit lengths: then
 * the upper half is zero, where a version, or the start of code, would come otherwise.
 */
static uint64_t raw__id(const struct raw *raw, const struct fde_parser *p, struct cursor *c)
{
	uint32_t upper = 1;

	if (!raw->wide)
		return cursor__u32(c);
	if (p->section == FDE_EH_FRAME && cursor__left(c) >= 8)
		memcpy(&upper, c->at + 4, 4);
	if (p->section == FDE_EH_FRAME && upper)
		return cursor__u32(c);
	return cursor__u64(c);
}

static bool id__is_cie(const struct raw *raw, const struct fde_parser *p, uint64_t id)
{
	if (p->section == FDE_EH_FRAME)
		return id == 0;
	return id == (raw->wide ? UINT64_MAX : UINT32_MAX);
}

/* Letters behind "z"; the first unknown one ends what can be understood. */
static void cie__augmentation(struct cie *cie, const char *letters, struct cursor *c)
{
	uint64_t len = cursor__uleb(c);
	struct cursor data = *c;

	cursor__skip(c, len);
	data.end = c->at;
	for (; *letters && !data.bad; letters++) {
		switch (*letters) {
		case 'R':
			cie->fde_encoding = cursor__u8(&data);
			break;
		case 'L':
			cursor__u8(&data);
			break;
		case 'P':
			cursor__format(&data, cursor__u8(&data));
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B':
			break;
		default:
			return;
		}
	}
}

static bool cie__parse(struct cie *cie, struct cursor *c)
{
	uint8_t version = cursor__u8(c);
	const char *letters = (const char *)c->at;
	const uint8_t *nul = memchr(c->at, 0, cursor__left(c));

	*cie = (struct cie){ .fde_encoding = EH_PE_ABSPTR };
	if (!nul || (version != 1 && version != 3 && version != 4))
		return false;
	c->at = nul + 1;
	if (version == 4) {
		uint8_t address_size = cursor__u8(c), selector_size = cursor__u8(c);

		if (address_size != 8 || selector_size)
			return false;
	}
	if (!strcmp(letters, "eh")) {	/* of old compilers: a pointer follows */
		cursor__skip(c, 8);
		letters += 2;
	}
	cie->code_align = cursor__uleb(c);
	cie->data_align = cursor__sleb(c);
	cie->ra_reg = version == 1 ? cursor__u8(c) : cursor__uleb(c);
	if (*letters == 'z') {
		cie->augmented = true;
		cie__augmentation(cie, letters + 1, c);
	} else {
		cie->broken = *letters;
	}
	cie->insns = c->at;
	cie->insns_len = cursor__left(c);
	cie->insns_vaddr = c->vaddr + (uint64_t)(c->at - c->start);
	return !c->bad;
}

/* NULL with *err 0: there is no CIE at this offset. */
static const struct cie *parser__cie(struct fde_parser *p, uint64_t offset, int *err)
{
	struct cie_slot *slot;
	struct cursor c;
	uint64_t next;

	*err = 0;
	for (unsigned int i = 0; i < NR_CIES; i++) {
		slot = &p->cies[i];
		if (slot->used && slot->offset == offset)
			return slot->bad ? NULL : &slot->cie;
	}
	slot = &p->cies[p->next_slot];
	slot->used = false;
	*err = raw__read(&slot->raw, p, offset, &next);
	if (*err == -ERANGE || *err == -EINVAL || *err == -ENOENT) {
		*err = 0;
		return NULL;
	}
	if (*err)
		return NULL;
	c = raw__cursor(&slot->raw, p, offset);
	slot->bad = !slot->raw.len || !id__is_cie(&slot->raw, p, raw__id(&slot->raw, p, &c)) ||
		    !cie__parse(&slot->cie, &c);
	slot->offset = offset;
	slot->used = true;
	p->next_slot = (p->next_slot + 1) % NR_CIES;
	return slot->bad ? NULL : &slot->cie;
}

static int fde__parse(struct fde *fde, struct cursor *c)
{
	uint64_t len;

	fde->start = cursor__pointer(c, fde->cie->fde_encoding, 0);
	len = cursor__format(c, fde->cie->fde_encoding);
	fde->end = fde->start + len;
	if (fde->cie->augmented)
		cursor__skip(c, cursor__uleb(c));
	fde->insns = c->at;
	fde->insns_len = cursor__left(c);
	fde->insns_vaddr = c->vaddr + (uint64_t)(c->at - c->start);
	return c->bad || !len || fde->end < fde->start ? -ENOENT : 0;
}

int fde_parser__entry(struct fde_parser *p, uint64_t offset, struct fde *fde, uint64_t *next)
{
	struct cursor c;
	uint64_t id, cie, at;
	int err;

	*next = offset + 4;
	fde->start = 0;
	err = raw__read(&p->raw, p, offset, next);
	if (err)
		return err;
	if (!p->raw.len)
		return -ENOENT;
	c = raw__cursor(&p->raw, p, offset);
	at = offset + p->raw.body;
	id = raw__id(&p->raw, p, &c);
	if (c.bad || id__is_cie(&p->raw, p, id))
		return -ENOENT;
	cie = p->section == FDE_EH_FRAME ? at - id : p->part.offset + id;
	fde->cie = parser__cie(p, cie, &err);
	if (!fde->cie)
		return err ? err : -ENOENT;
	return fde__parse(fde, &c);
}

int fde_parser__new(struct fde_parser **out, struct elf_view *view, const struct elf_part *part,
		    enum fde_section section)
{
	struct fde_parser *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->view = view;
	p->part = *part;
	p->section = section;
	*out = p;
	return 0;
}

void fde_parser__free(struct fde_parser *p)
{
	if (!p)
		return;
	for (unsigned int i = 0; i < NR_CIES; i++)
		free(p->cies[i].raw.data);
	free(p->raw.data);
	free(p);
}

size_t fde_parser__memory(const struct fde_parser *p)
{
	size_t sum = sizeof(*p) + p->raw.cap;

	for (unsigned int i = 0; i < NR_CIES; i++)
		sum += p->cies[i].raw.cap;
	return sum;
}
