// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/dynamic.h"
#include "symbols/elf_image.h"
#include "symbols/plt.h"
#include "symbols/separate.h"
#include "symbols/symbol_table.h"

#define MAX_CODE 1024		/* executable sections */
#define PLT_SUFFIX "@plt"

enum { SYMTAB = 0, DYNSYM = 1, NR_TABLES };

struct symbol_file {
	struct elf_image image;
	struct separate separate;
	struct elf_image other;		/* that has the .symtab if `image` doesn't */
	int other_fd;			/* the debug file, ours; -1: none */
	struct separate other_separate;
	const struct elf_image *of[NR_TABLES];
	struct symbol_table tables[NR_TABLES];
	struct elf_ranges code;
	struct plt *plt;
	struct elf_name name;
	bool located;
};

static struct symbol_file *finish_open(struct symbol_file *f, int err)
{
	if (!err) {
		err = separate__read(&f->image, &f->separate);
		if (err)
			elf_image__close(&f->image);
	}
	if (err) {
		free(f);
		return errno = -err, NULL;
	}
	f->other_fd = -1;
	f->of[SYMTAB] = f->of[DYNSYM] = &f->image;
	return f;
}

struct symbol_file *symbol_file__open(int fd)
{
	struct symbol_file *f = calloc(1, sizeof(*f));

	return f ? finish_open(f, elf_image__open(&f->image, fd)) : NULL;
}

struct symbol_file *symbol_file__open_memory(const void *image, size_t size)
{
	struct symbol_file *f = calloc(1, sizeof(*f));

	return f ? finish_open(f, elf_image__open_memory(&f->image, image, size)) : NULL;
}

void symbol_file__free(struct symbol_file *f)
{
	if (!f)
		return;
	for (int i = 0; i < NR_TABLES; i++)
		symbol_table__free(&f->tables[i]);
	plt__free(f->plt);
	free(f->code.ranges);
	elf_name__free(&f->name);
	elf_image__close(&f->image);
	elf_image__close(&f->other);
	if (f->other_fd >= 0)
		close(f->other_fd);
	free(f);
}

const struct separate *symbol_file__separate(const struct symbol_file *f)
{
	return &f->separate;
}

int symbol_file__add_debug(struct symbol_file *f, int fd)
{
	int err;

	if (f->located || f->other_fd >= 0)
		return -EEXIST;
	err = elf_image__open_sections(&f->other, fd);
	if (!err && !separate__belongs(&f->separate, &f->other)) {
		elf_image__close(&f->other);
		err = -ENOEXEC;
	}
	if (err)
		return err;
	f->other_fd = fd;
	return separate__read(&f->other, &f->other_separate);
}

int symbol_file__debug_info(const struct symbol_file *f, const struct separate **of)
{
	bool own = f->separate.has_debug_info;

	*of = own ? &f->separate : &f->other_separate;
	return own ? f->image.fd : (*of)->has_debug_info ? f->other_fd : -1;
}

static void add_code(struct elf_ranges *code, uint64_t start, uint64_t size)
{
	if (code->nr < MAX_CODE && size && start + size > start)
		code->ranges[code->nr++] = (struct elf_range){ start, start + size };
}

static bool is_strings(const struct elf_image *image, const Elf64_Shdr *sections, size_t nr,
		       uint32_t index, struct elf_strings *out)
{
	if (index >= nr || sections[index].sh_type != SHT_STRTAB ||
	    !elf_image__holds(image, sections[index].sh_offset, sections[index].sh_size))
		return false;
	*out = (struct elf_strings){ sections[index].sh_offset, sections[index].sh_size };
	return true;
}

static void locate_table(struct symbol_table *t, const struct elf_image *image,
			 const Elf64_Shdr *sections, size_t nr, const Elf64_Shdr *s)
{
	struct elf_strings strings;

	if (t->count || s->sh_entsize != sizeof(Elf64_Sym) ||
	    !elf_image__holds(image, s->sh_offset, s->sh_size) ||
	    !is_strings(image, sections, nr, s->sh_link, &strings))
		return;
	t->offset = s->sh_offset;
	t->count = s->sh_size / sizeof(Elf64_Sym);
	t->strings = strings;
}

static int locate_by_sections(struct symbol_file *f)
{
	struct elf_strings names;
	Elf64_Shdr *sections;
	uint32_t index = f->image.header.e_shstrndx;
	size_t nr;
	int err;

	err = elf_image__sections(&f->image, &sections, &nr);
	if (err)
		return err;
	for (size_t i = 0; i < nr; i++) {
		const Elf64_Shdr *s = &sections[i];

		if (s->sh_type == SHT_SYMTAB || s->sh_type == SHT_DYNSYM)
			locate_table(&f->tables[s->sh_type == SHT_DYNSYM ? DYNSYM : SYMTAB],
				     &f->image, sections, nr, s);
		else if (s->sh_type != SHT_NOBITS && s->sh_flags & SHF_ALLOC &&
			 s->sh_flags & SHF_EXECINSTR)
			add_code(&f->code, s->sh_addr, s->sh_size);
	}
	if (index == SHN_XINDEX)
		index = sections[0].sh_link;
	if (is_strings(&f->image, sections, nr, index, &names)) {
		f->plt = plt__new(&f->image, sections, nr, &names);
		err = f->plt ? 0 : -errno;
	}
	free(sections);
	return err;
}

/* Without section headers: the dynamic segment, and all of an executable segment may be code. */
static int locate_by_segments(struct symbol_file *f)
{
	int err = dynamic__symbols(&f->image, &f->tables[DYNSYM]);

	if (err == -ENOENT || err == -EIO)
		err = 0;
	if (f->code.nr)
		return err;
	f->tables[DYNSYM].skip_untyped = true;
	for (size_t i = 0; i < f->image.nr_segments; i++) {
		const Elf64_Phdr *p = &f->image.segments[i];

		if (p->p_type == PT_LOAD && p->p_flags & PF_X)
			add_code(&f->code, p->p_vaddr, p->p_filesz);
	}
	return err;
}

static int locate_in_other(struct symbol_file *f)
{
	struct symbol_table *t = &f->tables[SYMTAB];
	Elf64_Shdr *sections;
	size_t nr;
	int err;

	err = elf_image__sections(&f->other, &sections, &nr);
	if (err)
		return err == -ENOMEM ? err : 0;
	for (size_t i = 0; i < nr; i++)
		if (sections[i].sh_type == SHT_SYMTAB)
			locate_table(t, &f->other, sections, nr, &sections[i]);
	free(sections);
	if (t->count)
		f->of[SYMTAB] = &f->other;
	return 0;
}

/* The .symtab that the file itself lacks: its debug file's, else the compressed one in it. */
static int locate_other(struct symbol_file *f)
{
	uint8_t *bytes;
	size_t size;
	int err = f->other_fd >= 0 ? locate_in_other(f) : 0;

	if (err || f->tables[SYMTAB].count)
		return err;
	err = separate__mini(&f->separate, &f->image, &bytes, &size);
	if (err)
		return err == -ENOMEM ? err : 0;
	elf_image__close(&f->other);
	err = elf_image__open_memory(&f->other, bytes, size);
	free(bytes);
	return err ? (err == -ENOMEM ? err : 0) : locate_in_other(f);
}

static int locate(struct symbol_file *f)
{
	struct elf_range *fitted;
	int err;

	f->code.ranges = malloc(MAX_CODE * sizeof(*f->code.ranges));
	if (!f->code.ranges)
		return -ENOMEM;
	err = locate_by_sections(f);
	if ((!err || err == -ENOENT) && !f->tables[DYNSYM].count)
		err = locate_by_segments(f);
	if ((!err || err == -ENOENT) && !f->tables[SYMTAB].count) {
		int ret = locate_other(f);

		err = ret ? ret : err;
	}
	if (err && err != -ENOENT) {
		free(f->code.ranges);
		f->code = (struct elf_ranges){};
		return err;
	}
	fitted = realloc(f->code.ranges, (f->code.nr ?: 1) * sizeof(*fitted));
	f->code.ranges = fitted ?: f->code.ranges;
	f->located = true;
	return 0;
}

static int find_in(struct symbol_file *f, int table, enum table_part part, uint64_t address,
		   struct symbol *out)
{
	struct symbol_table *t = &f->tables[table];
	int err;

	if (!t->count)
		return -ENOENT;
	err = symbol_table__index(t, f->of[table], &f->code);
	if (err == -EIO) {	/* the file has become shorter */
		t->count = 0;
		return -ENOENT;
	}
	if (!err)
		err = symbol_table__find(t, f->of[table], &f->code, part, address, &f->name, out);
	if (!err && part == TABLE_LABELS &&
	    symbol_table__separates(&f->tables[!table], out->address, address))
		return -ENOENT;
	return err;
}

static int find_plt(struct symbol_file *f, uint64_t address, struct symbol *out)
{
	struct plt_target target;
	struct symbol resolver;
	size_t len;
	char *text;
	int err;

	if (!f->plt)
		return -ENOENT;
	err = plt__find(f->plt, &f->image, address, &target);
	if (err == -EIO) {
		plt__free(f->plt);
		f->plt = NULL;
		return -ENOENT;
	}
	if (err)
		return err;
	if (target.symbol) {
		err = symbol_table__name(&f->tables[DYNSYM], &f->image, target.symbol, &f->name);
	} else {
		err = find_in(f, SYMTAB, TABLE_SIZED, target.resolver, &resolver);
		if (err)
			err = find_in(f, DYNSYM, TABLE_SIZED, target.resolver, &resolver);
	}
	if (err)
		return err;
	len = strlen(f->name.text);
	if (!len)
		return -ENOENT;
	text = realloc(f->name.text, len + sizeof(PLT_SUFFIX));
	if (!text)
		return -ENOMEM;
	f->name.text = text;
	f->name.size = len + sizeof(PLT_SUFFIX);
	memcpy(text + len, PLT_SUFFIX, sizeof(PLT_SUFFIX));
	*out = (struct symbol){
		.name = text,
		.address = target.slot,
		.size = target.slot_size,
		.offset = address - target.slot,
		.kind = SYMBOL_PLT,
	};
	return 0;
}

/* What is sure comes first. A symbol without a name stands for its code all the same. */
static int find_address(struct symbol_file *f, uint64_t address, struct symbol *out)
{
	static const enum table_part parts[] = { TABLE_SIZED, TABLE_SIZED_LABELS, TABLE_LABELS };
	int err, worst = -ENOENT;

	for (size_t part = 0; part < sizeof(parts) / sizeof(parts[0]); part++) {
		for (int table = 0; table < NR_TABLES; table++) {
			err = find_in(f, table, parts[part], address, out);
			if (!err)
				return 0;
			if (err != -ENOENT)
				worst = err;
		}
		if (worst != -ENOENT)
			return worst == -ENXIO ? -ENOENT : worst;
		if (parts[part] == TABLE_SIZED) {
			err = find_plt(f, address, out);
			if (err != -ENOENT)
				return err;
		}
	}
	return -ENOENT;
}

int symbol_file__find(struct symbol_file *f, uint64_t offset, struct symbol *out)
{
	uint64_t address;
	int err = f->located ? 0 : locate(f);

	if (err)
		return err;
	if (!elf_image__to_address(&f->image, offset, &address))
		return -ENOENT;
	return find_address(f, address, out);
}

bool symbol_file__address(const struct symbol_file *f, uint64_t offset, uint64_t *address)
{
	return elf_image__to_address(&f->image, offset, address);
}
