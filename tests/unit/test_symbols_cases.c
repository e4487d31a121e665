// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The inputs of tests/cases that are hard for symbols (S-03 to S-10), built as there: what the
 * places in question are called. Where a function lies is libelf's word.
 */
#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <glob.h>
#include <linux/types.h>
#include <string.h>

#include "bpf/gpucollect.h"
#include "symbols/cache.h"
#include "tests/unit/symbols_places.h"
#include "tests/unit/unit.h"

#define CASES "tests/cases"
#define FLAGS "-O2 -g -fno-optimize-sibling-calls -w"

/* Builds "name" in the folder of places from sources below tests/cases. */
static void build(const char *compiler, const char *name, const char *flags, const char *sources)
{
	ck_assert_int_eq(places__sh("cd " CASES " && %s " FLAGS " %s -o %s/%s %s",
				    compiler, flags, places_dir, name, sources), 0);
}

static const char *c_compiler(void)
{
	return getenv("CC") ?: "cc";
}

static int open_built(const char *name)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", places_dir, name);
	fd = open(path, O_RDONLY);
	ck_assert_int_ge(fd, 0);
	return fd;
}

static uint64_t to_offset(Elf *elf, uint64_t address)
{
	size_t nr;
	GElf_Phdr p;

	elf_getphdrnum(elf, &nr);
	for (size_t i = 0; i < nr; i++) {
		gelf_getphdr(elf, (int)i, &p);
		if (p.p_type == PT_LOAD && p.p_flags & PF_X && address >= p.p_vaddr &&
		    address < p.p_vaddr + p.p_filesz)
			return address - p.p_vaddr + p.p_offset;
	}
	ck_abort_msg("%#lx is in no segment", (long)address);
	return 0;
}

/* The offset in file "name" of its symbol whose name begins so. */
static uint64_t offset_of(const char *name, const char *symbol)
{
	int fd = open_built(name);
	Elf_Scn *scn = NULL;
	uint64_t offset = 0;
	GElf_Shdr sh;
	GElf_Sym sym;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	while ((scn = elf_nextscn(elf, scn))) {
		gelf_getshdr(scn, &sh);
		for (int i = 0; sh.sh_type == SHT_SYMTAB && !offset &&
		     gelf_getsym(elf_getdata(scn, NULL), i, &sym); i++)
			if (!strncmp(elf_strptr(elf, sh.sh_link, sym.st_name), symbol,
				     strlen(symbol)))
				offset = to_offset(elf, sym.st_value);
	}
	elf_end(elf);
	close(fd);
	ck_assert_msg(offset, "%s has no %s", name, symbol);
	return offset;
}

/* Names are interned for good: the struct symbols is for the process. */
static const char *name_at(const char *file, uint64_t offset)
{
	/* Each on its own: copies of one build share what is known of it. */
	struct symbols *s = symbols__new();
	static char name[8192];
	struct resolved r;
	int fd = open_built(file);

	ck_assert_int_eq(symbols__add_file(s, 1, fd, file), 0);
	ck_assert(symbols__resolve(s, FRAME_MAKE_FILE(FRAME_FILE, 1, offset), &r));
	ck_assert_uint_lt(strlen(r.name), sizeof(name));
	strcpy(name, r.name);
	symbols__free(s);
	close(fd);
	return name;
}

START_TEST(s03_unusual_addresses)
{
	static const char *const names[] = { "chain_a", "chain_b", "chain_c" };

	places__make_dir();
	build(c_compiler(), "fixed", "-no-pie -Wl,-Ttext-segment=0x60000000", "unwind/chain.c");
	build(c_compiler(), "huge", "-Wl,-z,max-page-size=0x200000 -Wl,-z,noseparate-code",
	      "unwind/chain.c");
	build(c_compiler(), "high.so", "-fPIC -shared -Wl,-Ttext-segment=0x34fd200000",
	      "symbols/highlib.c");
	for (int i = 0; i < 3; i++) {
		ck_assert_str_eq(name_at("fixed", offset_of("fixed", names[i]) + 1), names[i]);
		ck_assert_str_eq(name_at("huge", offset_of("huge", names[i]) + 1), names[i]);
	}
	ck_assert_str_eq(name_at("high.so", offset_of("high.so", "high_library_fn")),
			 "high_library_fn");
	places__remove_dir();
}
END_TEST

START_TEST(s04_two_code_segments)
{
	places__make_dir();
	build(c_compiler(), "twoseg", "-no-pie -Wl,--section-start=.farcode=0x900000",
	      "symbols/twoseg.c");
	ck_assert_str_eq(name_at("twoseg", offset_of("twoseg", "in_far_segment") + 5),
			 "in_far_segment");
	ck_assert_str_eq(name_at("twoseg", offset_of("twoseg", "in_normal_segment") + 5),
			 "in_normal_segment");
	places__remove_dir();
}
END_TEST

START_TEST(s06_no_size_and_no_symbol)
{
	const char *name;
	uint64_t offset;

	places__make_dir();
	build(c_compiler(), "nosize", "", "symbols/nosize.c symbols/nosize.S");
	offset = offset_of("nosize", "label_without_size");
	ck_assert_str_eq(name_at("nosize", offset), "label_without_size");
	ck_assert_str_eq(name_at("nosize", offset + 3), "label_without_size");
	ck_assert_str_eq(name_at("nosize", offset - 1), "sized_before");
	ck_assert_str_eq(name_at("nosize", offset_of("nosize", "sized_behind")), "sized_behind");

	build(c_compiler(), "holes", "-g0", "symbols/holes.c");
	offset = offset_of("holes", "removed_symbol");
	ck_assert_int_eq(places__sh("cd %s && strip -N removed_symbol -o removed holes",
				    places_dir), 0);
	name = name_at("removed", offset + 1);
	ck_assert_msg(!strncmp(name, "removed+0x", 10), "%s", name);
	ck_assert_str_eq(name_at("removed", offset_of("holes", "neighbour_before")),
			 "neighbour_before");
	ck_assert_str_eq(name_at("removed", offset_of("holes", "neighbour_behind")),
			 "neighbour_behind");
	places__remove_dir();
}
END_TEST

START_TEST(s07_four_names)
{
	places__make_dir();
	build(c_compiler(), "alias", "", "symbols/alias.c");
	ck_assert_str_eq(name_at("alias", offset_of("alias", "local_name")), "true_name");
	ck_assert_str_eq(name_at("alias", offset_of("alias", "zz_other_name") + 1), "true_name");
	places__remove_dir();
}
END_TEST

START_TEST(s09_a_name_of_kilobytes)
{
	char begin[2048] = "spin_with<", *end = begin + strlen(begin);
	const char *name;

	if (system("c++ --version >/dev/null 2>&1")) {
		printf("no C++ compiler here\n");
		return;
	}
	places__make_dir();
	build("c++", "longname", "-ftemplate-depth=1000", "symbols/longname.cc");
	name = name_at("longname", offset_of("longname", "_Z9spin_withI"));
	for (int i = 0; i <= 200; i++)
		end = stpcpy(end, "Pair<");
	strcpy(end, "int, LayerNumber<0> >, LayerNumber<1> >");
	ck_assert_msg(!strncmp(name, begin, strlen(begin)), "%.100s…", name);
	ck_assert_msg(strstr(name, ", LayerNumber<199> >, LayerNumber<200> > >"), "%.100s…", name);
	places__remove_dir();
}
END_TEST

START_TEST(s10_damaged_files)
{
	static const char *const readable[] = {	/* .symtab can be found in these */
		"name_index_out_of_range", "name_index_is_symtab", "section_names_behind_end",
	};
	char pattern[512];
	uint64_t offset;
	glob_t g;

	if (system("python3 --version >/dev/null 2>&1")) {
		printf("no python3 here\n");
		return;
	}
	places__make_dir();
	build(c_compiler(), "chain", "", "unwind/chain.c");
	offset = offset_of("chain", "chain_b") + 1;
	ck_assert_int_eq(places__sh("python3 " CASES "/symbols/damage.py %s/chain %s/damaged "
				    ">/dev/null", places_dir, places_dir), 0);
	snprintf(pattern, sizeof(pattern), "%s/damaged/*", places_dir);
	ck_assert_int_eq(glob(pattern, 0, NULL, &g), 0);
	ck_assert_uint_eq(g.gl_pathc, 14);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		const char *file = strrchr(g.gl_pathv[i], '/') + 1, *name;
		bool known = false;

		for (size_t j = 0; j < sizeof(readable) / sizeof(readable[0]); j++)
			known |= !strcmp(readable[j], file);
		name = name_at(g.gl_pathv[i] + strlen(places_dir) + 1, offset);
		if (known)
			ck_assert_str_eq(name, "chain_b");
		else
			ck_assert_msg(!strncmp(name, file, strlen(file)) &&
				      !strncmp(name + strlen(file), "+0x", 3), "%s: %s", file,
				      name);
	}
	globfree(&g);
	places__remove_dir();
}
END_TEST

UNIT_MAIN("symbols_cases", s03_unusual_addresses, s04_two_code_segments, s06_no_size_and_no_symbol,
	  s07_four_names, s09_a_name_of_kilobytes, s10_damaged_files)
