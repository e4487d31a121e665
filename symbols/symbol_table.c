// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols/symbol_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/name_order.h"

#define MAX_SCANNED (1u << 24)		/* symbols looked at in one table */
#define MAX_KEPT (1u << 22)		/* and kept: 64 MB */
#define MAX_ALIASES 64			/* names compared at one address */
#define ADDRESS_BITS 48
#define BLOCK 64
#define CHUNK 2048			/* symbols read at a time */

/* The order of the key is the order of choice. */
#define RANK_LABEL 8u			/* NOTYPE, or without size */
#define RANK_BIND(key) ((uint32_t)(key) >> 1 & 3)	/* 0 global, 1 weak, 2 local */
#define RANK_BIND_SHIFT 1
#define RANK_NOTYPE 1u
#define RANK_IFUNC 1u			/* without RANK_LABEL */

struct table_entry {
	uint64_t key;		/* address << 16 | rank */
	uint32_t size;		/* 0: unknown */
	uint32_t name;		/* in the string table */
};

static uint64_t entry_start(const struct table_entry *e)
{
	return e->key >> 16;
}

static bool is_label(const struct table_entry *e)
{
	return e->key & RANK_LABEL;
}

static bool covers(const struct table_entry *e, uint64_t address)
{
	return address >= entry_start(e) && address - entry_start(e) < e->size;
}

static bool in_part(const struct table_entry *e, enum table_part part)
{
	switch (part) {
	case TABLE_SIZED:
		return !is_label(e);
	case TABLE_SIZED_LABELS:
		return is_label(e) && e->size;
	default:
		return is_label(e) && !e->size;
	}
}

static const struct elf_range *range_of(const struct elf_ranges *code, uint64_t address)
{
	for (size_t i = 0; i < code->nr; i++)
		if (address >= code->ranges[i].start && address < code->ranges[i].end)
			return &code->ranges[i];
	return NULL;
}

/* false: not code. */
static bool make_entry(const struct symbol_table *t, const struct elf_image *image,
		       const struct elf_ranges *code, const Elf64_Sym *sym,
		       struct table_entry *e)
{
	uint32_t type = ELF64_ST_TYPE(sym->st_info), bind = ELF64_ST_BIND(sym->st_info), rank = 0;

	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return false;
	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS ||
	    sym->st_shndx == SHN_COMMON || sym->st_value >> ADDRESS_BITS)
		return false;
	if (type == STT_NOTYPE) {
		/* there, these are marks of the assembler, not names */
		bool marks = image->header.e_machine != EM_X86_64 && bind == STB_LOCAL;

		if (t->skip_untyped || marks)
			return false;
		rank |= RANK_NOTYPE;
	}
	if (type == STT_NOTYPE || sym->st_size == 0) {
		if (!range_of(code, sym->st_value))
			return false;
		rank |= RANK_LABEL;
	} else if (type == STT_GNU_IFUNC) {
		rank |= RANK_IFUNC;
	}
	rank |= (bind == STB_LOCAL ? 2u : bind == STB_WEAK ? 1u : 0) << RANK_BIND_SHIFT;
	*e = (struct table_entry){
		.key = sym->st_value << 16 | rank,
		.size = sym->st_size < UINT32_MAX ? (uint32_t)sym->st_size : UINT32_MAX,
		.name = sym->st_name < t->strings.size ? sym->st_name : 0,
	};
	return true;
}

static int keep(struct symbol_table *t, size_t *size, const struct table_entry *e)
{
	struct table_entry *entries;

	if (t->nr == *size) {
		*size = *size ? *size * 2 : 256;
		entries = realloc(t->entries, *size * sizeof(*entries));
		if (!entries)
			return -ENOMEM;
		t->entries = entries;
	}
	t->entries[t->nr++] = *e;
	return 0;
}

static int scan(struct symbol_table *t, const struct elf_image *image,
		const struct elf_ranges *code)
{
	uint64_t count = t->count < MAX_SCANNED ? t->count : MAX_SCANNED;
	Elf64_Sym *syms = malloc(CHUNK * sizeof(*syms));
	struct table_entry e, *fitted;
	size_t size = 0;
	int err = syms ? 0 : -ENOMEM;

	for (uint64_t at = 0; !err && at < count; at += CHUNK) {
		size_t nr = count - at < CHUNK ? (size_t)(count - at) : CHUNK;

		err = elf_image__read(image, t->offset + at * sizeof(*syms), syms,
				      nr * sizeof(*syms));
		for (size_t i = 0; !err && i < nr && t->nr < MAX_KEPT; i++)
			if (make_entry(t, image, code, &syms[i], &e))
				err = keep(t, &size, &e);
	}
	free(syms);
	if (!err && t->nr < size) {
		fitted = realloc(t->entries, (t->nr ?: 1) * sizeof(*fitted));
		t->entries = fitted ?: t->entries;
	}
	return err;
}

static int compare_entries(const void *left, const void *right)
{
	const struct table_entry *a = left, *b = right;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	if (a->size != b->size)
		return a->size < b->size ? -1 : 1;
	return (a->name > b->name) - (a->name < b->name);
}

/* So that a search backwards can pass by whole blocks. */
static int note_ends(struct symbol_table *t, enum table_part part)
{
	uint64_t *ends = calloc(t->nr / BLOCK + 1, sizeof(*ends));

	if (!ends)
		return -ENOMEM;
	for (size_t i = 0; i < t->nr; i++) {
		uint64_t end = entry_start(&t->entries[i]) + t->entries[i].size;

		if (in_part(&t->entries[i], part) && end > ends[i / BLOCK])
			ends[i / BLOCK] = end;
	}
	t->ends[part] = ends;
	return 0;
}

int symbol_table__index(struct symbol_table *t, const struct elf_image *image,
			const struct elf_ranges *code)
{
	int err;

	if (t->indexed)
		return 0;
	err = scan(t, image, code);
	if (!err && t->nr)
		qsort(t->entries, t->nr, sizeof(*t->entries), compare_entries);
	if (!err)
		err = note_ends(t, TABLE_SIZED);
	if (!err)
		err = note_ends(t, TABLE_SIZED_LABELS);
	if (err) {
		symbol_table__free(t);
		return err;
	}
	t->indexed = true;
	return 0;
}

void symbol_table__free(struct symbol_table *t)
{
	free(t->entries);
	free(t->ends[0]);
	free(t->ends[1]);
	t->entries = NULL;
	t->ends[0] = t->ends[1] = NULL;
	t->nr = 0;
	t->indexed = false;
}

/* How many entries start at or before `address`. */
static size_t count_up_to(const struct symbol_table *t, uint64_t address)
{
	size_t low = 0, high = t->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (entry_start(&t->entries[mid]) <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The innermost of that (sized) part around the address; NULL: none. */
static const struct table_entry *innermost(const struct symbol_table *t, enum table_part part,
					   uint64_t address)
{
	size_t i = count_up_to(t, address);

	while (i > 0) {
		if (i % BLOCK == 0 && t->ends[part][i / BLOCK - 1] <= address) {
			i -= BLOCK;
			continue;
		}
		i--;
		if (in_part(&t->entries[i], part) && covers(&t->entries[i], address))
			return &t->entries[i];
	}
	return NULL;
}

/* The label nearest below, if nothing else begins or ends between. */
static const struct table_entry *nearest_label(const struct symbol_table *t,
					       const struct elf_ranges *code, uint64_t address)
{
	size_t i = count_up_to(t, address);
	const struct elf_range *range;
	uint64_t start;

	if (i == 0)
		return NULL;
	start = entry_start(&t->entries[i - 1]);
	range = range_of(code, start);
	if (!range || address >= range->end || innermost(t, TABLE_SIZED, start))
		return NULL;
	for (; i > 0 && entry_start(&t->entries[i - 1]) == start; i--)
		if (in_part(&t->entries[i - 1], TABLE_LABELS))
			return &t->entries[i - 1];
	return NULL;
}

/* Versions, "name@@V" or "name@V", are no part of the name. */
static void cut_version(char *name)
{
	char *at = name[0] ? strchr(name + 1, '@') : NULL;

	if (at)
		*at = '\0';
}

static int read_name(const struct symbol_table *t, const struct elf_image *image,
		     const struct table_entry *e, struct elf_name *name)
{
	int err = e->name ? elf_image__string(image, &t->strings, e->name, name) : -ENOENT;

	if (err == -ENOENT || (!err && !name->text[0]))
		return -ENXIO;
	if (!err)
		cut_version(name->text);
	return err;
}

/* The best of all that start where `hit` does and cover the address. */
static int choose(const struct symbol_table *t, const struct elf_image *image,
		  enum table_part part, const struct table_entry *hit, uint64_t address,
		  struct elf_name *name, const struct table_entry **chosen)
{
	size_t i = entry_start(hit) ? count_up_to(t, entry_start(hit) - 1) : 0;
	struct elf_name other = {};
	int tries = MAX_ALIASES, err = -ENXIO, ret;

	*chosen = NULL;
	for (; i < t->nr && entry_start(&t->entries[i]) == entry_start(hit); i++) {
		const struct table_entry *e = &t->entries[i];

		if (!in_part(e, part) || (part != TABLE_LABELS && !covers(e, address)))
			continue;
		if ((*chosen && RANK_BIND(e->key) != RANK_BIND((*chosen)->key)) || tries-- == 0)
			break;
		if (*chosen && part == TABLE_LABELS && e->key != (*chosen)->key)
			break;
		ret = read_name(t, image, e, *chosen ? &other : name);
		if (ret == -ENXIO)
			continue;
		if (ret) {
			err = ret;
			break;
		}
		if (*chosen && name__better(other.text, name->text)) {
			struct elf_name swap = *name;

			*name = other;
			other = swap;
			*chosen = e;
		} else if (!*chosen) {
			*chosen = e;
		}
		err = 0;
	}
	elf_name__free(&other);
	return err;
}

static uint64_t label_size(const struct symbol_table *t, const struct elf_ranges *code,
			   uint64_t start)
{
	const struct elf_range *range = range_of(code, start);
	uint64_t end = range ? range->end : start;
	size_t next = count_up_to(t, start);

	if (next < t->nr && entry_start(&t->entries[next]) < end)
		end = entry_start(&t->entries[next]);
	return end - start;
}

int symbol_table__find(struct symbol_table *t, const struct elf_image *image,
		       const struct elf_ranges *code, enum table_part part, uint64_t address,
		       struct elf_name *name, struct symbol *out)
{
	const struct table_entry *hit, *chosen;
	int err;

	hit = part == TABLE_LABELS ? nearest_label(t, code, address) : innermost(t, part, address);
	if (!hit)
		return -ENOENT;
	err = choose(t, image, part, hit, address, name, &chosen);
	if (err)
		return err;
	*out = (struct symbol){
		.name = name->text,
		.address = entry_start(chosen),
		.size = part == TABLE_LABELS ? label_size(t, code, entry_start(chosen)) :
					       chosen->size,
		.offset = address - entry_start(chosen),
		.kind = is_label(chosen) ? SYMBOL_LABEL :
			chosen->key & RANK_IFUNC ? SYMBOL_IFUNC : SYMBOL_FUNCTION,
	};
	return 0;
}

bool symbol_table__separates(const struct symbol_table *t, uint64_t start, uint64_t address)
{
	size_t below = count_up_to(t, address);

	return (below && entry_start(&t->entries[below - 1]) > start) ||
	       innermost(t, TABLE_SIZED, start);
}

int symbol_table__name(const struct symbol_table *t, const struct elf_image *image, uint64_t index,
		       struct elf_name *name)
{
	Elf64_Sym sym;
	int err;

	if (index >= t->count)
		return -ENOENT;
	err = elf_image__read(image, t->offset + index * sizeof(sym), &sym, sizeof(sym));
	if (!err)
		err = elf_image__string(image, &t->strings, sym.st_name, name);
	if (!err)
		cut_version(name->text);
	return err;
}
