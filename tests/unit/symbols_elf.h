/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A small ELF file in memory with the symbols that a test asks for. One executable segment whose
 * address isn't its offset; in it .text and, behind, a section that holds no code.
 */
#ifndef TESTS_SYMBOLS_ELF_H
#define TESTS_SYMBOLS_ELF_H

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TEXT 0x401000ull		/* address of the segment and of .text */
#define TEXT_SIZE 0x800
#define RODATA (TEXT + TEXT_SIZE)
#define SEGMENT_SIZE 0x1000
#define SEGMENT_OFFSET 0x2000
#define OFFSET_OF(address) ((address) - TEXT + SEGMENT_OFFSET)

struct test_symbol {
	const char *name;
	uint64_t address, size;
	unsigned char bind, type;
	uint16_t section;	/* 0: .text */
};

enum { S_NULL, S_TEXT, S_RODATA, S_SYMTAB, S_STRTAB, S_DYNSYM, S_DYNSTR, S_SHSTRTAB, NR_S };

struct test_elf {
	uint8_t *bytes;
	size_t size;
	Elf64_Shdr *sections;	/* in bytes */
};

static inline size_t test_elf__put(struct test_elf *e, const void *data, size_t size)
{
	size_t at = (e->size + 15) / 16 * 16;

	e->bytes = realloc(e->bytes, at + size);
	memset(e->bytes + e->size, 0, at - e->size);
	if (data)
		memcpy(e->bytes + at, data, size);
	else
		memset(e->bytes + at, 0, size);
	e->size = at + size;
	return at;
}

/* Puts a symbol table and its string table. */
static inline void test_elf__put_symbols(struct test_elf *e, const struct test_symbol *symbols,
					 size_t nr, Elf64_Shdr *table, Elf64_Shdr *strings)
{
	Elf64_Sym *syms = calloc(nr + 1, sizeof(*syms));
	char *text = calloc(1, 1 << 20);
	size_t len = 1;

	for (size_t i = 0; i < nr; i++) {
		const struct test_symbol *s = &symbols[i];

		syms[i + 1] = (Elf64_Sym){
			.st_name = s->name[0] ? (Elf64_Word)len : 0,
			.st_info = ELF64_ST_INFO(s->bind, s->type),
			.st_shndx = s->section ?: S_TEXT,
			.st_value = s->address,
			.st_size = s->size,
		};
		if (s->name[0])
			len += strlen(strcpy(text + len, s->name)) + 1;
	}
	table->sh_size = (nr + 1) * sizeof(*syms);
	table->sh_entsize = sizeof(*syms);
	table->sh_offset = test_elf__put(e, syms, table->sh_size);
	strings->sh_type = SHT_STRTAB;
	strings->sh_size = len;
	strings->sh_offset = test_elf__put(e, text, len);
	free(syms);
	free(text);
}

/* To be freed by test_elf__free. `dynamic` may be NULL. */
static inline struct test_elf test_elf__new(const struct test_symbol *symbols, size_t nr,
					    const struct test_symbol *dynamic, size_t nr_dynamic)
{
	static const char names[] = "\0.text\0.rodata\0.symtab\0.strtab\0.dynsym\0.dynstr\0"
				    ".shstrtab";
	Elf64_Shdr s[NR_S] = {};
	Elf64_Phdr phdr = {
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = SEGMENT_OFFSET,
		.p_vaddr = TEXT, .p_filesz = SEGMENT_SIZE, .p_memsz = SEGMENT_SIZE,
	};
	Elf64_Ehdr ehdr = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, 1 },
		.e_type = ET_EXEC, .e_machine = EM_X86_64, .e_version = 1, .e_phoff = sizeof(ehdr),
		.e_ehsize = sizeof(ehdr), .e_phentsize = sizeof(phdr), .e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr), .e_shnum = NR_S, .e_shstrndx = S_SHSTRTAB,
	};
	struct test_elf e = {};
	size_t name = 1;

	test_elf__put(&e, NULL, SEGMENT_OFFSET + SEGMENT_SIZE);
	for (int i = 1; i < NR_S; i++) {
		s[i].sh_name = (Elf64_Word)name;
		name += strlen(names + name) + 1;
	}
	s[S_TEXT] = (Elf64_Shdr){ s[S_TEXT].sh_name, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT,
				  SEGMENT_OFFSET, TEXT_SIZE, 0, 0, 16, 0 };
	s[S_RODATA] = (Elf64_Shdr){ s[S_RODATA].sh_name, SHT_PROGBITS, SHF_ALLOC, RODATA,
				    SEGMENT_OFFSET + TEXT_SIZE, SEGMENT_SIZE - TEXT_SIZE, 0, 0, 16,
				    0 };
	if (symbols) {
		s[S_SYMTAB].sh_type = SHT_SYMTAB;
		s[S_SYMTAB].sh_link = S_STRTAB;
		test_elf__put_symbols(&e, symbols, nr, &s[S_SYMTAB], &s[S_STRTAB]);
	}
	if (dynamic) {
		s[S_DYNSYM].sh_type = SHT_DYNSYM;
		s[S_DYNSYM].sh_link = S_DYNSTR;
		test_elf__put_symbols(&e, dynamic, nr_dynamic, &s[S_DYNSYM], &s[S_DYNSTR]);
	}
	s[S_SHSTRTAB].sh_type = SHT_STRTAB;
	s[S_SHSTRTAB].sh_size = sizeof(names);
	s[S_SHSTRTAB].sh_offset = test_elf__put(&e, names, sizeof(names));
	ehdr.e_shoff = test_elf__put(&e, s, sizeof(s));
	memcpy(e.bytes, &ehdr, sizeof(ehdr));
	memcpy(e.bytes + sizeof(ehdr), &phdr, sizeof(phdr));
	e.sections = (Elf64_Shdr *)(e.bytes + ehdr.e_shoff);
	return e;
}

static inline void test_elf__free(struct test_elf *e)
{
	free(e->bytes);
	*e = (struct test_elf){};
}

#endif
