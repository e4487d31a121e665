/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Puts together small ELF images with hand-made unwind information, right or wrong on purpose.
 * For tests and fuzzing only: sizes are fixed and overflow aborts.
 */
#ifndef TESTS_ELF_MAKER_H
#define TESTS_ELF_MAKER_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MAKER_SIZE 0x9000
#define MAKER_HDR 0x300		/* offsets of what is in the image */
#define MAKER_EH 0x400
#define MAKER_DEBUG 0xb00
#define MAKER_SHDRS 0xd00
#define MAKER_TEXT 0x1000	/* 6 pages of code, the last at 0x6000 */
#define MAKER_TEXT2 0x7000	/* and two of a second segment */

enum maker_table {
	TABLE_GOOD = 0,
	TABLE_OMITTED,		/* encodings say so */
	TABLE_UNSORTED,
	TABLE_WRONG_START,	/* starts are not those of the entries meant */
	TABLE_SHORT,		/* counts only half of the entries */
	TABLE_WILD,		/* pointers lead out of the file */
	TABLE_TOO_LONG,		/* the count is larger than the segment */
};

struct maker_fde {
	uint64_t start, len;
	const char *insns;
	size_t insns_len;
	bool debug;		/* in .debug_frame, not .eh_frame */
};

struct maker {
	uint64_t vaddr;		/* of offset 0; the text's bias is this and text_shift */
	uint64_t text_shift;
	uint64_t text2_shift;
	bool no_phdr;		/* no PT_GNU_EH_FRAME */
	bool no_sections;
	bool debug;		/* .debug_frame exists */
	enum maker_table table;
	uint64_t entry;
	const char *augmentation;	/* default "zR" */
	uint8_t version;		/* default 1 */
	uint8_t encoding;		/* of addresses; default pcrel sdata4 */
	bool wide;			/* 64-bit lengths */
	bool wide_id;			/* and 8 bytes of CIE pointer, against the specification */
	const char *cie_insns;		/* default: CFA = rsp + 8, RA at CFA - 8 */
	size_t cie_insns_len;
	struct maker_fde fdes[16];
	unsigned int nr_fdes;

	uint8_t image[MAKER_SIZE];
	size_t at;
	uint64_t fde_at[16];		/* offsets */
	size_t eh_size, debug_size;
};

#define MAKER_INSNS(m, i, bytes) \
	((m)->fdes[i].insns = (bytes), (m)->fdes[i].insns_len = sizeof(bytes) - 1)

static inline void maker__put(struct maker *m, const void *bytes, size_t len)
{
	if (m->at + len > sizeof(m->image))
		abort();
	if (len)
		memcpy(m->image + m->at, bytes, len);
	m->at += len;
}

static inline void maker__uint(struct maker *m, uint64_t v, size_t size)
{
	maker__put(m, &v, size);
}

/* A value of the encoding's format, at m->at. */
static inline void maker__address(struct maker *m, uint8_t encoding, uint64_t v, bool relative)
{
	if (relative && (encoding & 0x70) == 0x10)
		v -= m->vaddr + m->at;
	switch (encoding & 0x0f) {
	case 0x02:
	case 0x0a:
		maker__uint(m, v, 2);
		return;
	case 0x03:
	case 0x0b:
		maker__uint(m, v, 4);
		return;
	case 0x01:		/* ULEB128, always 10 bytes */
		for (int i = 0; i < 9; i++, v >>= 7)
			maker__uint(m, (v & 0x7f) | 0x80, 1);
		maker__uint(m, v & 0x7f, 1);
		return;
	}
	maker__uint(m, v, 8);
}

/* Length field of an entry begun at `start`; the body is padded with DW_CFA_nop. */
static inline size_t maker__begin(struct maker *m, bool wide)
{
	size_t start = m->at;

	maker__uint(m, wide ? UINT32_MAX : 0, 4);
	if (wide)
		maker__uint(m, 0, 8);
	return start;
}

static inline void maker__end(struct maker *m, size_t start, bool wide)
{
	uint64_t len;

	while (m->at % 8)
		maker__uint(m, 0, 1);
	len = m->at - start - (wide ? 12 : 4);
	memcpy(m->image + start + (wide ? 4 : 0), &len, wide ? 8 : 4);
}

static inline void maker__cie(struct maker *m, bool debug)
{
	const char *letters = m->augmentation ? m->augmentation : debug ? "" : "zR";
	uint8_t encoding = m->encoding ? m->encoding : 0x1b;
	size_t start = maker__begin(m, m->wide);

	maker__uint(m, debug ? UINT64_MAX : 0, m->wide && (debug || m->wide_id) ? 8 : 4);
	maker__uint(m, m->version ? m->version : 1, 1);
	maker__put(m, letters, strlen(letters) + 1);
	if (m->version == 4)
		maker__put(m, "\x08\x00", 2);
	if (!strcmp(letters, "eh"))
		maker__uint(m, 0, 8);
	maker__put(m, "\x01\x78\x10", 3);	/* code factor 1, data factor -8, RA 16 */
	if (*letters == 'z') {
		size_t len_at = m->at;

		maker__uint(m, 0, 1);
		for (const char *l = letters + 1; *l; l++) {
			if (*l == 'R')
				maker__uint(m, encoding, 1);
			else if (*l == 'L')
				maker__uint(m, 0x1b, 1);
			else if (*l == 'P')
				maker__put(m, "\x1b\x11\x22\x33\x44", 5);
		}
		m->image[len_at] = (uint8_t)(m->at - len_at - 1);
	}
	if (m->cie_insns)
		maker__put(m, m->cie_insns, m->cie_insns_len);
	else
		maker__put(m, "\x0c\x07\x08\x90\x01", 5);
	maker__end(m, start, m->wide);
}

static inline void maker__fde(struct maker *m, unsigned int i, size_t cie, bool debug)
{
	const struct maker_fde *fde = &m->fdes[i];
	const char *letters = m->augmentation ? m->augmentation : debug ? "" : "zR";
	uint8_t encoding = strchr(letters, 'R') ? m->encoding ? m->encoding : 0x1b : 0;
	size_t start;

	m->fde_at[i] = m->at;
	start = maker__begin(m, m->wide);
	if (debug)
		maker__uint(m, cie - MAKER_DEBUG, m->wide ? 8 : 4);
	else
		maker__uint(m, m->at - cie, m->wide && m->wide_id ? 8 : 4);
	maker__address(m, encoding, fde->start, true);
	maker__address(m, encoding, fde->len, false);
	if (*letters == 'z')
		maker__uint(m, 0, 1);
	maker__put(m, fde->insns, fde->insns_len);
	maker__end(m, start, m->wide);
}

static inline size_t maker__section(struct maker *m, size_t at, bool debug)
{
	m->at = at;
	maker__cie(m, debug);
	for (unsigned int i = 0; i < m->nr_fdes; i++)
		if (m->fdes[i].debug == debug)
			maker__fde(m, i, at, debug);
	if (!debug)
		maker__uint(m, 0, 4);
	return m->at - at;
}

/* The table as a linker writes it: version, pointer pcrel, count udata4, table datarel sdata4. */
static inline void maker__table(struct maker *m)
{
	unsigned int order[16], n = 0;
	uint64_t base = m->vaddr + MAKER_HDR;

	for (unsigned int i = 0; i < m->nr_fdes; i++)
		if (!m->fdes[i].debug)
			order[n++] = i;
	for (unsigned int i = 1; i < n; i++)
		for (unsigned int k = i; k && m->fdes[order[k]].start < m->fdes[order[k - 1]].start;
		     k--) {
			unsigned int swap = order[k];

			order[k] = order[k - 1];
			order[k - 1] = swap;
		}
	if (m->table == TABLE_UNSORTED)
		for (unsigned int i = 0; i < n / 2; i++) {
			unsigned int swap = order[i];

			order[i] = order[n - 1 - i];
			order[n - 1 - i] = swap;
		}
	m->at = MAKER_HDR;
	maker__put(m, m->table == TABLE_OMITTED ? "\x01\x1b\xff\xff" : "\x01\x1b\x03\x3b", 4);
	maker__uint(m, m->vaddr + MAKER_EH - (m->vaddr + m->at), 4);
	if (m->table == TABLE_OMITTED)
		return;
	maker__uint(m, m->table == TABLE_SHORT ? n / 2 : m->table == TABLE_TOO_LONG ? 1 << 28 : n,
		    4);
	for (unsigned int i = 0; i < n; i++) {
		uint64_t start = m->fdes[order[i]].start;

		maker__uint(m, start - base + (m->table == TABLE_WRONG_START ? 4 : 0), 4);
		maker__uint(m, m->table == TABLE_WILD ? 0x70000000 :
			       m->vaddr + m->fde_at[order[i]] - base, 4);
	}
}

static inline void maker__phdr(struct maker *m, uint32_t type, uint32_t flags, uint64_t offset,
			       uint64_t vaddr, uint64_t size)
{
	const Elf64_Phdr ph = { .p_type = type, .p_flags = flags, .p_offset = offset,
				.p_vaddr = vaddr, .p_paddr = vaddr, .p_filesz = size,
				.p_memsz = size, .p_align = 0x1000 };

	maker__put(m, &ph, sizeof(ph));
}

static inline void maker__shdrs(struct maker *m)
{
	static const char names[] = "\0.eh_frame\0.debug_frame\0.shstrtab";
	const Elf64_Shdr sh[4] = {
		{ .sh_type = SHT_NULL },
		{ .sh_name = 1, .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC,
		  .sh_addr = m->vaddr + MAKER_EH, .sh_offset = MAKER_EH, .sh_size = m->eh_size },
		{ .sh_name = 11, .sh_type = SHT_PROGBITS, .sh_offset = MAKER_DEBUG,
		  .sh_size = m->debug_size },
		{ .sh_name = 24, .sh_type = SHT_STRTAB, .sh_size = sizeof(names),
		  .sh_offset = MAKER_SHDRS + 4 * sizeof(sh[0]) },
	};

	m->at = MAKER_SHDRS;
	maker__put(m, sh, sizeof(sh));
	maker__put(m, names, sizeof(names));
}

/* Lays out everything but the code itself, which is in the image already (zeros if not). */
static inline void maker__build(struct maker *m)
{
	Elf64_Ehdr eh = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
		.e_entry = m->entry, .e_phoff = sizeof(eh), .e_ehsize = sizeof(eh),
		.e_phentsize = sizeof(Elf64_Phdr), .e_phnum = m->no_phdr ? 3 : 4,
		.e_shentsize = sizeof(Elf64_Shdr),
	};

	if (!m->no_sections) {
		eh.e_shoff = MAKER_SHDRS;
		eh.e_shnum = 4;
		eh.e_shstrndx = 3;
	}
	m->eh_size = maker__section(m, MAKER_EH, false);
	if (m->debug)
		m->debug_size = maker__section(m, MAKER_DEBUG, true);
	maker__table(m);
	if (!m->no_sections)
		maker__shdrs(m);
	m->at = 0;
	maker__put(m, &eh, sizeof(eh));
	maker__phdr(m, PT_LOAD, PF_R, 0, m->vaddr, MAKER_TEXT);
	maker__phdr(m, PT_LOAD, PF_R | PF_X, MAKER_TEXT, m->vaddr + MAKER_TEXT + m->text_shift,
		    MAKER_TEXT2 - MAKER_TEXT);
	maker__phdr(m, PT_LOAD, PF_R | PF_X, MAKER_TEXT2, m->vaddr + MAKER_TEXT2 + m->text2_shift,
		    MAKER_SIZE - MAKER_TEXT2);
	if (!m->no_phdr)
		maker__phdr(m, PT_GNU_EH_FRAME, PF_R, MAKER_HDR, m->vaddr + MAKER_HDR, 0x100);
}

/* Address of an offset in the text. */
static inline uint64_t maker__code(const struct maker *m, uint64_t offset)
{
	return m->vaddr + offset + (offset < MAKER_TEXT2 ? m->text_shift : m->text2_shift);
}

#endif
