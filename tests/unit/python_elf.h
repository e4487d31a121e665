/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A small ELF file that looks like a Python interpreter's as far as a test wants it to. */
#ifndef TESTS_PYTHON_ELF_H
#define TESTS_PYTHON_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ELF_BASE 0x400000ull	/* address of offset 0 */
#define ELF_SIZE 0x4000
#define ELF_DYNAMIC 0x200	/* offsets */
#define ELF_SYMBOLS 0x400
#define ELF_STRINGS 0x800
#define ELF_HASH 0xc00
#define ELF_SECTIONS 0xe00
#define ELF_DATA 0x1000		/* what symbols stand for, 256 bytes each */
#define ELF_RUNTIME 0x2000

enum elf_where { IN_GNU_HASH, IN_HASH, IN_SYMTAB };

struct python_elf {
	enum elf_where where;
	bool program;			/* has an interpreter of ELF's own */
	bool section;			/* .PyRuntime */
	const char *soname;		/* or NULL */
	struct {
		const char *name;
		uint64_t value, size;
		bool undefined;
	} symbols[8];
	unsigned int nr;
	uint8_t image[ELF_SIZE] __attribute__((aligned(8)));
};

/* A symbol of `size` bytes; returns where to put what it stands for. */
static inline uint8_t *python_elf__add(struct python_elf *e, const char *name, uint64_t size)
{
	uint64_t at = ELF_DATA + e->nr * 256;

	if (!strcmp(name, "_PyRuntime"))
		at = ELF_RUNTIME;
	e->symbols[e->nr].name = name;
	e->symbols[e->nr].value = ELF_BASE + at;
	e->symbols[e->nr++].size = size;
	return e->image + at;
}

static inline uint32_t python_elf__hash(const char *name, bool gnu)
{
	uint32_t h = gnu ? 5381 : 0;

	for (; *name; name++) {
		h = gnu ? h * 33 + (uint8_t)*name : (h << 4) + (uint8_t)*name;
		if (!gnu)
			h = (h ^ (h >> 24 & 0xf0)) & 0xfffffff;
	}
	return h;
}

/* One bucket, in both kinds. */
static inline void python_elf__put_hash(struct python_elf *e)
{
	uint32_t *h = (uint32_t *)(e->image + ELF_HASH);

	if (e->where == IN_HASH) {
		h[0] = 1;
		h[1] = e->nr + 1;
		h[2] = e->nr;		/* the bucket; then the chains, from the last symbol to the first */
		for (unsigned int i = 1; i <= e->nr; i++)
			h[3 + i] = i - 1;
		return;
	}
	h[0] = 1;	/* buckets */
	h[1] = 1;	/* first symbol */
	h[2] = 1;	/* words of the filter */
	h[3] = 6;
	h[6] = e->nr ? 1 : 0;
	for (unsigned int i = 0; i < e->nr; i++) {
		uint32_t hash = python_elf__hash(e->symbols[i].name, true);
		uint64_t *filter = (uint64_t *)(h + 4);

		*filter |= 1ull << hash % 64 | 1ull << (hash >> 6) % 64;
		h[7 + i] = (hash & ~1u) | (i + 1 == e->nr);
	}
}

static inline void python_elf__put_sections(struct python_elf *e, Elf64_Ehdr *eh, uint32_t names)
{
	Elf64_Shdr *sh = (Elf64_Shdr *)(e->image + ELF_SECTIONS);
	char *strings = (char *)e->image + ELF_STRINGS;

	memcpy(strings + names, ".PyRuntime", 11);
	eh->e_shoff = ELF_SECTIONS;
	eh->e_shentsize = sizeof(*sh);
	eh->e_shnum = 4;
	eh->e_shstrndx = 1;
	sh[1] = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = ELF_STRINGS, .sh_size = 0x400 };
	if (e->where == IN_SYMTAB)
		sh[2] = (Elf64_Shdr){ .sh_type = SHT_SYMTAB, .sh_offset = ELF_SYMBOLS, .sh_link = 1,
				      .sh_size = (e->nr + 1) * sizeof(Elf64_Sym) };
	if (e->section)
		sh[3] = (Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_name = names,
				      .sh_addr = ELF_BASE + ELF_RUNTIME, .sh_size = 0x2000 };
}

static inline void python_elf__put_dynamic(struct python_elf *e, uint32_t soname)
{
	Elf64_Dyn *dyn = (Elf64_Dyn *)(e->image + ELF_DYNAMIC);

	if (e->where != IN_SYMTAB) {
		*dyn++ = (Elf64_Dyn){ DT_SYMTAB, { ELF_BASE + ELF_SYMBOLS } };
		*dyn++ = (Elf64_Dyn){ e->where == IN_HASH ? DT_HASH : DT_GNU_HASH, { ELF_BASE + ELF_HASH } };
	}
	*dyn++ = (Elf64_Dyn){ DT_STRTAB, { ELF_BASE + ELF_STRINGS } };
	*dyn++ = (Elf64_Dyn){ DT_STRSZ, { 0x400 } };
	if (e->soname)
		*dyn++ = (Elf64_Dyn){ DT_SONAME, { soname } };
}

static inline void python_elf__finish(struct python_elf *e)
{
	Elf64_Ehdr *eh = (Elf64_Ehdr *)e->image;
	Elf64_Phdr *ph = (Elf64_Phdr *)(e->image + sizeof(*eh));
	Elf64_Sym *sym = (Elf64_Sym *)(e->image + ELF_SYMBOLS);
	uint32_t at = 1;

	*eh = (Elf64_Ehdr){ .e_type = ET_DYN, .e_machine = EM_X86_64, .e_phoff = sizeof(*eh),
			    .e_phentsize = sizeof(*ph), .e_phnum = e->program ? 3 : 2 };
	memcpy(eh->e_ident, ELFMAG "\2\1\1", 7);
	ph[0] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_R | PF_W | PF_X, .p_vaddr = ELF_BASE,
			      .p_filesz = ELF_SIZE, .p_memsz = ELF_SIZE };
	ph[1] = (Elf64_Phdr){ .p_type = PT_DYNAMIC, .p_offset = ELF_DYNAMIC, .p_filesz = 0x100 };
	ph[2] = (Elf64_Phdr){ .p_type = PT_INTERP };
	for (unsigned int i = 0; i < e->nr; i++) {
		memcpy(e->image + ELF_STRINGS + at, e->symbols[i].name, strlen(e->symbols[i].name) + 1);
		sym[i + 1] = (Elf64_Sym){ .st_name = at, .st_value = e->symbols[i].value,
					  .st_size = e->symbols[i].size,
					  .st_shndx = e->symbols[i].undefined ? SHN_UNDEF : 1 };
		at += (uint32_t)strlen(e->symbols[i].name) + 1;
	}
	if (e->soname)
		memcpy(e->image + ELF_STRINGS + at, e->soname, strlen(e->soname) + 1);
	python_elf__put_dynamic(e, at);
	python_elf__put_hash(e);
	if (e->where == IN_SYMTAB || e->section)
		python_elf__put_sections(e, eh, at + 32);
}

/* The first `len` bytes of it as a file. */
static inline int python_elf__fd(const struct python_elf *e, size_t len)
{
	int fd = memfd_create("python_elf", MFD_CLOEXEC);

	if (fd < 0 || write(fd, e->image, len) != (ssize_t)len)
		return -1;
	return fd;
}

#endif
