// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/tracer/exports.h"

#include <errno.h>
#include <string.h>

#define MAX_ENTRIES 4096	/* of a dynamic segment */
#define MAX_CHAIN 4096		/* symbols of one bucket */
#define MAX_WANTED 128		/* bytes of a name that is asked for */

static const Elf64_Phdr *dynamic_segment(const struct elf_image *image)
{
	for (size_t i = 0; i < image->nr_segments; i++)
		if (image->segments[i].p_type == PT_DYNAMIC)
			return &image->segments[i];
	return NULL;
}

static int read_dynamic(struct exports *e, uint64_t *symbols, uint64_t *strings, uint64_t *hash)
{
	const Elf64_Phdr *p = dynamic_segment(&e->image);
	Elf64_Dyn dyn;
	int err;

	if (!p)
		return -ENOENT;
	for (uint64_t i = 0; i < MAX_ENTRIES && i < p->p_filesz / sizeof(dyn); i++) {
		err = elf_image__read(&e->image, p->p_offset + i * sizeof(dyn), &dyn, sizeof(dyn));
		if (err)
			return err;
		switch (dyn.d_tag) {
		case DT_NULL:
			return 0;
		case DT_SYMTAB:
			*symbols = dyn.d_un.d_ptr;
			break;
		case DT_STRTAB:
			*strings = dyn.d_un.d_ptr;
			break;
		case DT_STRSZ:
			e->strings.size = dyn.d_un.d_val;
			break;
		case DT_GNU_HASH:
			*hash = dyn.d_un.d_ptr;
			break;
		case DT_SONAME:
			e->soname = dyn.d_un.d_val;
			break;
		}
	}
	return 0;
}

int exports__open(struct exports *e, int fd)
{
	uint64_t symbols = 0, strings = 0, hash = 0;
	int err;

	*e = (struct exports){ 0 };
	err = elf_image__open(&e->image, fd);
	if (err)
		return err;
	err = read_dynamic(e, &symbols, &strings, &hash);
	if (!err && (!elf_image__to_offset(&e->image, symbols, &e->symbols) ||
		     !elf_image__to_offset(&e->image, strings, &e->strings.offset) ||
		     !elf_image__to_offset(&e->image, hash, &e->gnu_hash)))
		err = -ENOENT;
	if (err)
		exports__close(e);
	return err;
}

void exports__close(struct exports *e)
{
	elf_image__close(&e->image);
}

static bool string_is(const struct exports *e, uint64_t at, const char *text)
{
	size_t len = strlen(text) + 1;
	char found[MAX_WANTED];

	return len <= sizeof(found) && at <= e->strings.size && len <= e->strings.size - at &&
	       !elf_image__read(&e->image, e->strings.offset + at, found, len) &&
	       !memcmp(found, text, len);
}

bool exports__is_called(const struct exports *e, const char *soname)
{
	return e->soname && string_is(e, e->soname, soname);
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (uint8_t)*name;
	return h;
}

/* Whether symbol number `index` is defined and has this name. */
static int is_symbol(const struct exports *e, uint64_t index, const char *name, uint64_t *address)
{
	Elf64_Sym sym;
	int err;

	err = elf_image__read(&e->image, e->symbols + index * sizeof(sym), &sym, sizeof(sym));
	if (err)
		return err;
	if (sym.st_shndx == SHN_UNDEF || !string_is(e, sym.st_name, name))
		return 0;
	*address = sym.st_value;
	return 1;
}

int exports__find(const struct exports *e, const char *name, uint64_t *address)
{
	uint32_t head[4];	/* buckets, first symbol, words of the filter, shift */
	uint32_t hash = gnu_hash(name), index, word;
	uint64_t buckets, chains;
	int err;

	err = elf_image__read(&e->image, e->gnu_hash, head, sizeof(head));
	if (err || !head[0])
		return err ? err : -ENOENT;
	buckets = e->gnu_hash + sizeof(head) + head[2] * sizeof(uint64_t);
	chains = buckets + head[0] * sizeof(uint32_t);
	err = elf_image__read(&e->image, buckets + hash % head[0] * sizeof(index), &index,
			      sizeof(index));
	if (err || index < head[1])
		return err ? err : -ENOENT;
	for (uint32_t i = 0; i < MAX_CHAIN; i++, index++) {
		err = elf_image__read(&e->image,
				      chains + (uint64_t)(index - head[1]) * sizeof(word), &word,
				      sizeof(word));
		if (err)
			return err;
		if ((word | 1) == (hash | 1)) {
			err = is_symbol(e, index, name, address);
			if (err)
				return err < 0 ? err : 0;
		}
		if (word & 1)
			break;
	}
	return -ENOENT;
}
