// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Names over whole libraries of the system, held against libdw's. At the first, a middle, the last
 * byte of a function and the one behind, both must say the same function, or aliases of it.
 */
#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "symbols/file.h"
#include "tests/unit/unit.h"

#define MAX_FUNCTIONS 700	/* of a file; libdw takes up to 0.15 ms for one address */

static int no_debug_info(Dwfl_Module *m, void **u, const char *n, Dwarf_Addr b, const char *f,
			 const char *l, GElf_Word c, char **out)
{
	(void)m, (void)u, (void)n, (void)b, (void)f, (void)l, (void)c, (void)out;
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = no_debug_info,
	.section_address = dwfl_offline_section_address,
};

struct subject {
	Dwfl *dwfl;
	Dwfl_Module *module;
	Elf *elf;
	GElf_Addr bias;
	Elf_Scn *symbols;	/* .symtab, else .dynsym */
	GElf_Shdr header;
	int fd;
	struct symbol_file *file;
	int same, aliases;
};

static bool open_subject(struct subject *s, const char *path)
{
	*s = (struct subject){ .fd = open(path, O_RDONLY) };
	if (s->fd < 0)
		return false;
	s->dwfl = dwfl_begin(&callbacks);
	s->module = dwfl_report_offline(s->dwfl, path, path, -1);
	dwfl_report_end(s->dwfl, NULL, NULL);
	s->elf = dwfl_module_getelf(s->module, &s->bias);
	ck_assert_ptr_nonnull(s->elf);
	for (unsigned int type = SHT_SYMTAB; ; type = SHT_DYNSYM) {
		Elf_Scn *scn = NULL;

		while ((scn = elf_nextscn(s->elf, scn)) && !s->symbols) {
			gelf_getshdr(scn, &s->header);
			if (s->header.sh_type == type)
				s->symbols = scn;
		}
		if (s->symbols || type == SHT_DYNSYM)
			break;
	}
	ck_assert_ptr_nonnull(s->symbols);
	s->file = symbol_file__open(s->fd);
	ck_assert_ptr_nonnull(s->file);
	return true;
}

static void close_subject(struct subject *s)
{
	symbol_file__free(s->file);
	dwfl_end(s->dwfl);
	close(s->fd);
}

/* By libelf, not by us. */
static bool offset_of(const struct subject *s, GElf_Addr address, uint64_t *offset)
{
	size_t nr;
	GElf_Phdr p;

	elf_getphdrnum(s->elf, &nr);
	for (size_t i = 0; i < nr; i++) {
		gelf_getphdr(s->elf, (int)i, &p);
		if (p.p_type == PT_LOAD && p.p_flags & PF_X && address >= p.p_vaddr &&
		    address - p.p_vaddr < p.p_filesz) {
			*offset = address - p.p_vaddr + p.p_offset;
			return true;
		}
	}
	return false;
}

static bool same_name(const char *ours, const char *theirs)
{
	size_t len = strlen(ours);	/* they keep the version */

	return !strncmp(ours, theirs, len) && (!theirs[len] || theirs[len] == '@');
}

/* The file has such a symbol at that address. */
static bool is_symbol(const struct subject *s, const char *name, GElf_Addr address)
{
	Elf_Data *data = elf_getdata(s->symbols, NULL);
	GElf_Sym sym;

	for (int i = 0; gelf_getsym(data, i, &sym); i++)
		if (sym.st_value == address &&
		    same_name(name, elf_strptr(s->elf, s->header.sh_link, sym.st_name)))
			return true;
	return false;
}

static void compare(struct subject *s, GElf_Addr address)
{
	struct symbol ours;
	uint64_t offset;
	const char *theirs;
	GElf_Sym sym;
	GElf_Off from;
	int err;

	if (!offset_of(s, address, &offset))
		return;
	theirs = dwfl_module_addrinfo(s->module, s->bias + address, &from, &sym, NULL, NULL, NULL);
	err = symbol_file__find(s->file, offset, &ours);
	if (!theirs && !err && ours.kind == SYMBOL_PLT)
		return;	/* libdw doesn't name these */
	ck_assert_msg(!theirs == !!err, "%#lx: %s, but libdw: %s", (long)address,
		      err ? "none" : ours.name, theirs ?: "none");
	s->same++;
	if (!theirs)
		return;
	ck_assert_msg(ours.address == address - from, "%#lx: %s+%#lx, but libdw: %s+%#lx",
		      (long)address, ours.name, (long)ours.offset, theirs, (long)from);
	if (same_name(ours.name, theirs)) {
		ck_assert(sym.st_size == 0 || ours.size == sym.st_size);
		return;
	}
	s->aliases++;
	ck_assert_msg(is_symbol(s, ours.name, ours.address), "%#lx: %s", (long)address, ours.name);
}

static void compare_file(const char *path, int least)
{
	struct subject s;
	size_t nr, step;
	Elf_Data *data;
	GElf_Sym sym;

	if (!open_subject(&s, path)) {
		printf("%s: not here\n", path);
		ck_assert_int_eq(least, 0);
		return;
	}
	data = elf_getdata(s.symbols, NULL);
	nr = s.header.sh_size / s.header.sh_entsize;
	step = nr / MAX_FUNCTIONS + 1;
	for (size_t i = 0; i < nr; i += step) {
		gelf_getsym(data, (int)i, &sym);
		if (GELF_ST_TYPE(sym.st_info) != STT_FUNC &&
		    GELF_ST_TYPE(sym.st_info) != STT_GNU_IFUNC)
			continue;
		if (sym.st_shndx == SHN_UNDEF)
			continue;
		compare(&s, sym.st_value);
		if (sym.st_size == 0)
			continue;
		compare(&s, sym.st_value + sym.st_size / 2);
		compare(&s, sym.st_value + sym.st_size - 1);
		compare(&s, sym.st_value + sym.st_size);
	}
	printf("%s: %d places, %d by another alias\n", path, s.same, s.aliases);
	ck_assert_int_ge(s.same, least);
	close_subject(&s);
}

START_TEST(the_c_library)
{
	Dl_info info;

	ck_assert(dladdr((void *)getpid, &info));
	compare_file(info.dli_fname, 1000);
}
END_TEST

/* This very program: .symtab, local functions, C of several hundred objects. */
START_TEST(this_program)
{
	compare_file("/proc/self/exe", 1000);
}
END_TEST

START_TEST(other_files_where_there_are_such)
{
	static const char *const paths[] = {
		"/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib/x86_64-linux-gnu/libm.so.6",
		"/usr/bin/bash", "/usr/bin/python3", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
		"/lib64/ld-linux-x86-64.so.2",
	};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		compare_file(paths[i], 0);
}
END_TEST

UNIT_MAIN("symbols_libdw", the_c_library, this_program,
	  other_files_where_there_are_such)
