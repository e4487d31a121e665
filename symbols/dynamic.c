// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols/dynamic.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_ENTRIES 4096	/* of a dynamic segment */
#define MAX_BUCKETS (1u << 24)
#define MAX_CHAIN (1u << 20)	/* symbols of one bucket */
#define CHUNK 1024		/* words read at a time */

struct tags {
	uint64_t symbols, strings, strings_size, hash, gnu_hash;	/* addresses; 0: absent */
};

static int read_tags(const struct elf_image *image, struct tags *tags)
{
	const Elf64_Phdr *p = NULL;
	Elf64_Dyn dyn;
	int err;

	for (size_t i = 0; i < image->nr_segments && !p; i++)
		if (image->segments[i].p_type == PT_DYNAMIC)
			p = &image->segments[i];
	if (!p)
		return -ENOENT;
	for (uint64_t i = 0; i < MAX_ENTRIES && i < p->p_filesz / sizeof(dyn); i++) {
		if (!elf_image__holds(image, p->p_offset, (i + 1) * sizeof(dyn)))
			break;
		err = elf_image__read(image, p->p_offset + i * sizeof(dyn), &dyn, sizeof(dyn));
		if (err)
			return err;
		switch (dyn.d_tag) {
		case DT_NULL:
			return 0;
		case DT_SYMTAB:
			tags->symbols = dyn.d_un.d_ptr;
			break;
		case DT_STRTAB:
			tags->strings = dyn.d_un.d_ptr;
			break;
		case DT_STRSZ:
			tags->strings_size = dyn.d_un.d_val;
			break;
		case DT_HASH:
			tags->hash = dyn.d_un.d_ptr;
			break;
		case DT_GNU_HASH:
			tags->gnu_hash = dyn.d_un.d_ptr;
			break;
		}
	}
	return 0;
}

static int count_by_hash(const struct elf_image *image, uint64_t address, uint64_t *count)
{
	uint32_t head[2];	/* buckets, chains: one for each symbol */
	uint64_t offset;
	int err;

	if (!address || !elf_image__to_offset(image, address, &offset))
		return -ENOENT;
	err = elf_image__read(image, offset, head, sizeof(head));
	*count = head[1];
	return err ? err : *count ? 0 : -ENOENT;
}

/* Calls for words of the file one after the other: a chunk in memory. */
struct words {
	const struct elf_image *image;
	uint64_t offset;	/* of the chunk */
	size_t nr;
	uint32_t words[CHUNK];
};

static int next_word(struct words *w, uint64_t offset, uint32_t *word)
{
	uint64_t at = (offset - w->offset) / sizeof(*word), left;
	int err;

	if (w->nr == 0 || offset < w->offset || at >= w->nr) {
		if (!elf_image__holds(w->image, offset, sizeof(*word)))
			return -EIO;
		left = (w->image->size - offset) / sizeof(*word);
		w->nr = left < CHUNK ? (size_t)left : CHUNK;
		w->offset = offset;
		err = elf_image__read(w->image, offset, w->words, w->nr * sizeof(*word));
		if (err) {
			w->nr = 0;
			return err;
		}
		at = 0;
	}
	*word = w->words[at];
	return 0;
}

/* The table ends where the chain of the last bucket does: at a hash whose lowest bit is set. */
static int count_by_gnu_hash(const struct elf_image *image, uint64_t address, uint64_t *count)
{
	uint32_t head[4];	/* buckets, first symbol, words of the filter, shift */
	uint64_t offset, buckets, chains;
	struct words w = { .image = image };
	uint32_t last = 0, word;
	int err;

	if (!address || !elf_image__to_offset(image, address, &offset))
		return -ENOENT;
	err = elf_image__read(image, offset, head, sizeof(head));
	if (err)
		return err;
	if (head[0] > MAX_BUCKETS)
		return -ENOENT;
	buckets = offset + sizeof(head) + head[2] * sizeof(uint64_t);
	chains = buckets + head[0] * sizeof(uint32_t);
	for (uint32_t i = 0; i < head[0]; i++) {
		err = next_word(&w, buckets + i * sizeof(word), &word);
		if (err)
			return err;
		if (word > last)
			last = word;
	}
	if (last < head[1])	/* all buckets empty: only what comes before, the undefined ones */
		return -ENOENT;
	for (uint32_t i = 0; i < MAX_CHAIN; i++, last++) {
		err = next_word(&w, chains + (uint64_t)(last - head[1]) * sizeof(word), &word);
		if (err)
			return err;
		if (word & 1) {
			*count = (uint64_t)last + 1;
			return 0;
		}
	}
	return -ENOENT;
}

int dynamic__symbols(const struct elf_image *image, struct symbol_table *t)
{
	struct tags tags = {};
	uint64_t offset, count, strings;
	int err;

	err = read_tags(image, &tags);
	if (err)
		return err;
	if (!tags.symbols || !tags.strings ||
	    !elf_image__to_offset(image, tags.symbols, &offset) ||
	    !elf_image__to_offset(image, tags.strings, &strings))
		return -ENOENT;
	err = count_by_hash(image, tags.hash, &count);
	if (err)
		err = count_by_gnu_hash(image, tags.gnu_hash, &count);
	if (err)
		return err;
	if (count > image->size / sizeof(Elf64_Sym) ||
	    !elf_image__holds(image, offset, count * sizeof(Elf64_Sym)) ||
	    !elf_image__holds(image, strings, tags.strings_size))
		return -ENOENT;
	t->offset = offset;
	t->count = count;
	t->strings = (struct elf_strings){ .offset = strings, .size = tags.strings_size };
	return 0;
}
