// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "unwind/elf_symbols.h"
#include "unwind/elf_view.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_HEADERS 1024	/* program headers */
#define MAX_SECTIONS 65536
#define MAX_TAGS 4096		/* of a dynamic segment */
#define MAX_CHAIN 65536		/* symbols of one bucket */
#define MAX_NAME 64
#define MAX_PLACES 8		/* of one name in the strings: each symbol's suffix is one */
#define CHUNK 65536

struct elf_symbols {
	struct elf_view *view;
	bool program;
	uint64_t section_headers;	/* offset; nr 0: none */
	uint32_t nr_sections, section_names;
	uint32_t nr_writable;
	struct elf_symbol writable[4];
	/* of the dynamic segment: addresses; 0: absent */
	uint64_t table, strings, strings_size, hash, gnu_hash;
	uint64_t soname;		/* from the start of the strings */
	bool has_soname;
};

static int read_at(struct elf_symbols *s, uint64_t vaddr, void *buf, size_t len)
{
	uint64_t offset, left;

	if (!elf_view__offset(s->view, vaddr, &offset, &left) || left < len)
		return -ENOENT;
	return elf_view__read(s->view, offset, buf, len);
}

/* --- headers ------------------------------------------------------------------------------ */

static int read_tags(struct elf_symbols *s, uint64_t offset, uint64_t size)
{
	Elf64_Dyn dyn;

	for (uint64_t i = 0; i < MAX_TAGS && i < size / sizeof(dyn); i++) {
		int err = elf_view__read(s->view, offset + i * sizeof(dyn), &dyn, sizeof(dyn));

		if (err)
			return err == -ERANGE ? 0 : err;
		switch (dyn.d_tag) {
		case DT_NULL:
			return 0;
		case DT_SYMTAB:
			s->table = dyn.d_un.d_ptr;
			break;
		case DT_STRTAB:
			s->strings = dyn.d_un.d_ptr;
			break;
		case DT_STRSZ:
			s->strings_size = dyn.d_un.d_val;
			break;
		case DT_HASH:
			s->hash = dyn.d_un.d_ptr;
			break;
		case DT_GNU_HASH:
			s->gnu_hash = dyn.d_un.d_ptr;
			break;
		case DT_SONAME:
			s->soname = dyn.d_un.d_val;
			s->has_soname = true;
			break;
		}
	}
	return 0;
}

static int read_header(struct elf_symbols *s, const Elf64_Phdr *ph)
{
	switch (ph->p_type) {
	case PT_INTERP:
		s->program = true;
		return 0;
	case PT_LOAD:
		if ((ph->p_flags & PF_W) && ph->p_filesz && s->nr_writable < 4)
			s->writable[s->nr_writable++] =
				(struct elf_symbol){ ph->p_vaddr, ph->p_filesz };
		return 0;
	case PT_DYNAMIC:
		return s->table ? 0 : read_tags(s, ph->p_offset, ph->p_filesz);
	}
	return 0;
}

static int read_headers(struct elf_symbols *s)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph;
	int err = elf_view__read(s->view, 0, &eh, sizeof(eh));

	if (err)
		return err;
	s->program = eh.e_type == ET_EXEC;
	for (uint64_t i = 0; i < eh.e_phnum && i < MAX_HEADERS; i++) {
		err = elf_view__read(s->view, eh.e_phoff + i * sizeof(ph), &ph, sizeof(ph));
		if (!err)
			err = read_header(s, &ph);
		if (err == -ERANGE)
			break;
		if (err)
			return err;
	}
	if (eh.e_shoff && eh.e_shentsize == sizeof(Elf64_Shdr) && eh.e_shstrndx < eh.e_shnum) {
		s->section_headers = eh.e_shoff;
		s->nr_sections = eh.e_shnum;
		s->section_names = eh.e_shstrndx;
	}
	return 0;
}

int elf_symbols__new(struct elf_symbols **out, struct elf_view *view)
{
	struct elf_symbols *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->view = view;
	err = read_headers(s);
	if (err) {
		free(s);
		return err;
	}
	*out = s;
	return 0;
}

void elf_symbols__free(struct elf_symbols *s)
{
	free(s);
}

bool elf_symbols__program(const struct elf_symbols *s)
{
	return s->program;
}

int elf_symbols__writable(struct elf_symbols *s, unsigned int n, struct elf_symbol *out)
{
	uint64_t offset, left;

	if (n >= s->nr_writable || !elf_view__offset(s->view, s->writable[n].vaddr, &offset, &left))
		return -ENOENT;
	*out = s->writable[n];
	if (out->size > left)
		out->size = left;
	return 0;
}

void elf_symbols__soname(struct elf_symbols *s, char *buf, size_t len)
{
	size_t size = len - 1;

	memset(buf, 0, len);
	if (!s->has_soname || s->soname >= s->strings_size)
		return;
	if (size > s->strings_size - s->soname)
		size = (size_t)(s->strings_size - s->soname);
	if (read_at(s, s->strings + s->soname, buf, size))
		memset(buf, 0, len);
}

/* --- dynamic symbols ---------------------------------------------------------------------- */

/* Whether `name` is at `at` of the strings, which end at `end`. */
static bool name_is(struct elf_symbols *s, uint64_t at, const char *name)
{
	size_t len = strlen(name) + 1;
	char buf[MAX_NAME];

	return len <= sizeof(buf) && at < s->strings_size && len <= s->strings_size - at &&
	       !read_at(s, s->strings + at, buf, len) && !memcmp(buf, name, len);
}

/* 0: symbol `nr` has the name. -ENOENT: not this one. */
static int match(struct elf_symbols *s, uint32_t nr, const char *name, struct elf_symbol *out)
{
	Elf64_Sym sym;
	int err = read_at(s, s->table + (uint64_t)nr * sizeof(sym), &sym, sizeof(sym));

	if (err)
		return err;
	if (sym.st_shndx == SHN_UNDEF || !sym.st_value || !name_is(s, sym.st_name, name))
		return -ENOENT;
	*out = (struct elf_symbol){ sym.st_value, sym.st_size };
	return 0;
}

static int find_by_gnu_hash(struct elf_symbols *s, const char *name, struct elf_symbol *out)
{
	uint32_t head[4];	/* buckets, first symbol, words of the filter (a power of 2), shift */
	uint32_t h = 5381, nr, word;
	uint64_t filter, buckets, chains;
	int err;

	for (const char *c = name; *c; c++)
		h = h * 33 + (uint8_t)*c;
	err = read_at(s, s->gnu_hash, head, sizeof(head));
	if (err)
		return err;
	if (!head[0] || !head[2])
		return -ENOENT;
	err = read_at(s, s->gnu_hash + 16 + h / 64 % head[2] * 8ull, &filter, sizeof(filter));
	if (err)
		return err;
	if (!(filter >> h % 64 & filter >> (h >> head[3] % 32) % 64 & 1))
		return -ENOENT;
	buckets = s->gnu_hash + 16 + head[2] * 8ull;
	chains = buckets + head[0] * 4ull;
	err = read_at(s, buckets + h % head[0] * 4ull, &nr, sizeof(nr));
	if (err || nr < head[1])
		return err ? err : -ENOENT;
	for (uint32_t i = 0; i < MAX_CHAIN; i++, nr++) {
		err = read_at(s, chains + (nr - head[1]) * 4ull, &word, sizeof(word));
		if (err)
			return err;
		err = (word | 1) == (h | 1) ? match(s, nr, name, out) : -ENOENT;
		if (err != -ENOENT || (word & 1))
			return err;
	}
	return -ENOENT;
}

static int find_by_hash(struct elf_symbols *s, const char *name, struct elf_symbol *out)
{
	uint32_t head[2];	/* buckets, chains */
	uint32_t h = 0, nr;
	int err;

	for (const char *c = name; *c; c++) {
		h = (h << 4) + (uint8_t)*c;
		h = (h ^ (h >> 24 & 0xf0)) & 0x0fffffff;
	}
	err = read_at(s, s->hash, head, sizeof(head));
	if (err)
		return err;
	if (!head[0])
		return -ENOENT;
	err = read_at(s, s->hash + 8 + h % head[0] * 4ull, &nr, sizeof(nr));
	for (uint32_t i = 0; !err && nr && nr < head[1] && i < MAX_CHAIN; i++) {
		err = match(s, nr, name, out);
		if (err != -ENOENT)
			return err;
		err = read_at(s, s->hash + 8 + (head[0] + (uint64_t)nr) * 4, &nr, sizeof(nr));
	}
	return err ? err : -ENOENT;
}

int elf_symbols__dynamic(struct elf_symbols *s, const char *name, struct elf_symbol *out)
{
	int err = -ENOENT;

	if (!s->table || !s->strings)
		return -ENOENT;
	if (s->gnu_hash)
		err = find_by_gnu_hash(s, name, out);
	else if (s->hash)
		err = find_by_hash(s, name, out);
	return err == -ERANGE ? -ENOENT : err;
}

/* --- sections and .symtab ----------------------------------------------------------------- */

static int read_section(struct elf_symbols *s, uint32_t nr, Elf64_Shdr *sh)
{
	int err;

	if (nr >= s->nr_sections)
		return -ENOENT;
	err = elf_view__read(s->view, s->section_headers + nr * sizeof(*sh), sh, sizeof(*sh));
	return err == -ERANGE ? -ENOENT : err;
}

int elf_symbols__section(struct elf_symbols *s, const char *name, struct elf_symbol *out)
{
	size_t len = strlen(name) + 1;
	Elf64_Shdr sh, names;
	char buf[MAX_NAME];
	int err = read_section(s, s->section_names, &names);

	if (err || len > sizeof(buf))
		return err ? err : -ENOENT;
	for (uint32_t i = 1; i < s->nr_sections && i < MAX_SECTIONS; i++) {
		err = read_section(s, i, &sh);
		if (err)
			return err;
		if (sh.sh_name >= names.sh_size || len > names.sh_size - sh.sh_name ||
		    elf_view__read(s->view, names.sh_offset + sh.sh_name, buf, len) ||
		    memcmp(buf, name, len))
			continue;
		*out = (struct elf_symbol){ sh.sh_addr, sh.sh_size };
		return sh.sh_addr ? 0 : -ENOENT;
	}
	return -ENOENT;
}

/* Where the strings of `sh` end in `name`: linkers share the ends of names. How many, or negative. */
static int places_of(struct elf_symbols *s, const Elf64_Shdr *sh, const char *name,
		     uint32_t places[static MAX_PLACES])
{
	size_t len = strlen(name) + 1, keep = 0;
	char *buf = malloc(CHUNK + MAX_NAME);
	int nr = 0, err = buf ? 0 : -ENOMEM;

	for (uint64_t at = 0; !err && at < sh->sh_size && nr < MAX_PLACES; ) {
		size_t part = sh->sh_size - at < CHUNK ? (size_t)(sh->sh_size - at) : CHUNK;
		const char *from = buf, *hit;

		err = elf_view__read(s->view, sh->sh_offset + at, buf + keep, part);
		if (err)
			break;
		while (nr < MAX_PLACES &&
		       (hit = memmem(from, keep + part - (size_t)(from - buf), name, len))) {
			places[nr++] = (uint32_t)(at - keep + (uint64_t)(hit - buf));
			from = hit + 1;
		}
		at += part;
		part += keep;
		keep = part < len - 1 ? part : len - 1;
		memmove(buf, buf + part - keep, keep);
	}
	free(buf);
	return err ? err : nr;
}

static int scan_table(struct elf_symbols *s, const Elf64_Shdr *sh, const uint32_t *places, int nr,
		      struct elf_symbol *out)
{
	const size_t max = CHUNK / sizeof(Elf64_Sym);
	Elf64_Sym *syms = malloc(CHUNK);
	uint64_t left = sh->sh_size / sizeof(*syms);
	int err = syms ? 0 : -ENOMEM;

	for (uint64_t at = sh->sh_offset; !err && left; ) {
		size_t part = left < max ? (size_t)left : max;

		err = elf_view__read(s->view, at, syms, part * sizeof(*syms));
		for (size_t i = 0; !err && i < part; i++) {
			if (syms[i].st_shndx == SHN_UNDEF || !syms[i].st_value)
				continue;
			for (int n = 0; n < nr; n++) {
				if (syms[i].st_name != places[n])
					continue;
				*out = (struct elf_symbol){ syms[i].st_value, syms[i].st_size };
				free(syms);
				return 0;
			}
		}
		at += part * sizeof(*syms);
		left -= part;
	}
	free(syms);
	return err ? err : -ENOENT;
}

int elf_symbols__static(struct elf_symbols *s, const char *name, uint64_t limit,
			struct elf_symbol *out)
{
	uint32_t places[MAX_PLACES];
	Elf64_Shdr sh, strings;
	int nr, err;

	for (uint32_t i = 1; i < s->nr_sections; i++) {
		err = read_section(s, i, &sh);
		if (err)
			return err;
		if (sh.sh_type != SHT_SYMTAB)
			continue;
		err = read_section(s, sh.sh_link, &strings);
		if (err || strings.sh_size > limit || strings.sh_size > UINT32_MAX ||
		    sh.sh_size / 2 > limit || strlen(name) >= MAX_NAME)
			return err ? err : -ENOENT;
		nr = places_of(s, &strings, name, places);
		if (nr > 0)
			nr = scan_table(s, &sh, places, nr, out);
		else if (!nr)
			nr = -ENOENT;
		return nr == -ERANGE ? -ENOENT : nr;
	}
	return -ENOENT;
}
