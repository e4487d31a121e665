// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols/plt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PARTS 8		/* sections of slots, sections of relocations */
#define MAX_SCANNED (1u << 23)	/* relocations looked at in one file */
#define MAX_KEPT (1u << 20)
#define CHUNK 1024		/* relocations read at a time */
#define SLOT 16

struct slots {
	struct elf_range range;
	uint64_t offset;
	unsigned int size;	/* of one: 8 or 16 */
};

struct relocations {
	uint64_t offset, count;
};

struct got_word {
	uint64_t address;
	uint64_t symbol;	/* 0: resolver */
	uint64_t resolver;
};

struct plt {
	struct slots slots[MAX_PARTS];
	size_t nr_slots;
	struct relocations relocations[MAX_PARTS];
	size_t nr_relocations;
	struct relocations pushed;	/* those that slots name by number */
	struct got_word *words;		/* sorted by address, once asked for */
	size_t nr_words, size;
	bool sorted;
};

/* Not every linker says how large a slot is; none aligns slots of 8 bytes to 16. */
static void add_slots(struct plt *p, const Elf64_Shdr *s)
{
	bool small = s->sh_entsize == 8 || (s->sh_entsize != SLOT && s->sh_addralign == 8);

	if (p->nr_slots == MAX_PARTS || s->sh_addr + s->sh_size < s->sh_addr)
		return;
	p->slots[p->nr_slots++] = (struct slots){
		.range = { .start = s->sh_addr, .end = s->sh_addr + s->sh_size },
		.offset = s->sh_offset,
		.size = small ? 8 : SLOT,
	};
}

static void add_relocations(struct plt *p, const Elf64_Shdr *s, const char *name)
{
	struct relocations r = { .offset = s->sh_offset, .count = s->sh_size / sizeof(Elf64_Rela) };

	if (!strcmp(name, ".rela.plt"))
		p->pushed = r;
	if (p->nr_relocations < MAX_PARTS)
		p->relocations[p->nr_relocations++] = r;
}

struct plt *plt__new(const struct elf_image *image, const Elf64_Shdr *sections, size_t nr,
		     const struct elf_strings *section_names)
{
	struct elf_name name = {};
	struct plt *p;

	if (image->header.e_machine != EM_X86_64)
		return errno = 0, NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return errno = ENOMEM, NULL;
	for (size_t i = 0; i < nr; i++) {
		const Elf64_Shdr *s = &sections[i];
		bool code = s->sh_type == SHT_PROGBITS && s->sh_flags & SHF_EXECINSTR;
		bool rela = s->sh_type == SHT_RELA && s->sh_flags & SHF_ALLOC;

		if ((!code && !rela) || !elf_image__holds(image, s->sh_offset, s->sh_size) ||
		    elf_image__string(image, section_names, s->sh_name, &name))
			continue;
		if (rela)
			add_relocations(p, s, name.text);
		else if (!strncmp(name.text, ".plt", 4) || !strcmp(name.text, ".iplt"))
			add_slots(p, s);
	}
	elf_name__free(&name);
	if (p->nr_slots && p->nr_relocations)
		return p;
	plt__free(p);
	return errno = 0, NULL;
}

void plt__free(struct plt *p)
{
	if (!p)
		return;
	free(p->words);
	free(p);
}

static bool to_word(const Elf64_Rela *r, struct got_word *word)
{
	*word = (struct got_word){ .address = r->r_offset };
	switch (ELF64_R_TYPE(r->r_info)) {
	case R_X86_64_JUMP_SLOT:
	case R_X86_64_GLOB_DAT:
		word->symbol = ELF64_R_SYM(r->r_info);
		return word->symbol != 0;
	case R_X86_64_IRELATIVE:
		word->resolver = (uint64_t)r->r_addend;
		return true;
	default:
		return false;
	}
}

static int keep_word(struct plt *p, const struct got_word *word)
{
	struct got_word *words;

	if (p->nr_words == p->size) {
		p->size = p->size ? p->size * 2 : 64;
		words = realloc(p->words, p->size * sizeof(*words));
		if (!words)
			return -ENOMEM;
		p->words = words;
	}
	p->words[p->nr_words++] = *word;
	return 0;
}

static int scan_part(struct plt *p, const struct elf_image *image,
		     const struct relocations *part, Elf64_Rela *chunk, uint64_t *budget)
{
	struct got_word word;
	int err;

	for (uint64_t at = 0; at < part->count && *budget; at += CHUNK) {
		size_t nr = part->count - at < CHUNK ? (size_t)(part->count - at) : CHUNK;

		*budget -= *budget < nr ? *budget : nr;
		err = elf_image__read(image, part->offset + at * sizeof(*chunk), chunk,
				      nr * sizeof(*chunk));
		for (size_t i = 0; !err && i < nr && p->nr_words < MAX_KEPT; i++)
			if (to_word(&chunk[i], &word))
				err = keep_word(p, &word);
		if (err)
			return err;
	}
	return 0;
}

static int compare_words(const void *left, const void *right)
{
	const struct got_word *a = left, *b = right;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	if (a->symbol != b->symbol)
		return a->symbol < b->symbol ? -1 : 1;
	return (a->resolver > b->resolver) - (a->resolver < b->resolver);
}

static int sort_words(struct plt *p, const struct elf_image *image)
{
	Elf64_Rela *chunk = malloc(CHUNK * sizeof(*chunk));
	uint64_t budget = MAX_SCANNED;
	int err = chunk ? 0 : -ENOMEM;

	for (size_t i = 0; i < p->nr_relocations && !err; i++)
		err = scan_part(p, image, &p->relocations[i], chunk, &budget);
	free(chunk);
	if (err) {
		p->nr_words = 0;
		return err;
	}
	if (p->nr_words)
		qsort(p->words, p->nr_words, sizeof(*p->words), compare_words);
	p->sorted = true;
	return 0;
}

static int find_word(struct plt *p, const struct elf_image *image, uint64_t address,
		     struct got_word *out)
{
	size_t low = 0, high;
	int err = p->sorted ? 0 : sort_words(p, image);

	if (err)
		return err;
	high = p->nr_words;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (p->words[mid].address < address)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == p->nr_words || p->words[low].address != address)
		return -ENOENT;
	*out = p->words[low];
	return 0;
}

static int find_pushed(const struct plt *p, const struct elf_image *image, uint32_t number,
		       struct got_word *out)
{
	Elf64_Rela r;
	int err;

	if (number >= p->pushed.count)
		return -ENOENT;
	err = elf_image__read(image, p->pushed.offset + number * sizeof(r), &r, sizeof(r));
	return err ? err : to_word(&r, out) ? 0 : -ENOENT;
}

/*
 * [endbr64] [mov $n, %r11d] [bnd] jmp *disp(%rip), or the lazy half of a slot pair: [endbr64]
 * push $n; …
 */
static int decode(struct plt *p, const struct elf_image *image, const uint8_t *code, size_t len,
		  uint64_t address, struct got_word *out)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint32_t operand;
	size_t i = 0;

	if (len >= sizeof(endbr64) && !memcmp(code, endbr64, sizeof(endbr64)))
		i += sizeof(endbr64);
	if (i + 5 <= len && code[i] == 0x68) {
		memcpy(&operand, code + i + 1, sizeof(operand));
		return find_pushed(p, image, operand, out);
	}
	if (i + 6 <= len && code[i] == 0x41 && code[i + 1] == 0xbb)
		i += 6;
	if (i < len && code[i] == 0xf2)
		i++;
	if (i + 6 > len || code[i] != 0xff || code[i + 1] != 0x25)
		return -ENOENT;
	memcpy(&operand, code + i + 2, sizeof(operand));
	return find_word(p, image, address + i + 6 + (uint64_t)(int64_t)(int32_t)operand, out);
}

int plt__find(struct plt *p, const struct elf_image *image, uint64_t address,
	      struct plt_target *target)
{
	const struct slots *slots = NULL;
	uint8_t code[SLOT];
	struct got_word word;
	uint64_t slot;
	size_t len;
	int err;

	for (size_t i = 0; i < p->nr_slots && !slots; i++)
		if (address >= p->slots[i].range.start && address < p->slots[i].range.end)
			slots = &p->slots[i];
	if (!slots)
		return -ENOENT;
	slot = (address - slots->range.start) / slots->size * slots->size;
	len = slots->size;
	if (len > slots->range.end - slots->range.start - slot)
		return -ENOENT;
	err = elf_image__read(image, slots->offset + slot, code, len);
	if (!err)
		err = decode(p, image, code, len, slots->range.start + slot, &word);
	if (err)
		return err;
	*target = (struct plt_target){
		.slot = slots->range.start + slot,
		.slot_size = slots->size,
		.symbol = word.symbol,
		.resolver = word.resolver,
	};
	return 0;
}
