// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Files that lie about themselves, are cut off, or change under our hands: an answer or an error in
 * bounded time and memory, and what can still be known is known.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "symbols/file.h"
#include "tests/unit/symbols_elf.h"
#include "tests/unit/symbols_places.h"
#include "tests/unit/unit.h"

#define ARRAY(a) a, sizeof(a) / sizeof((a)[0])

/* Builds symbols_truth.c as a library without others, small, and reads it. */
static uint8_t *build_small(size_t *size)
{
	char path[512];
	uint8_t *bytes;
	struct stat st;
	FILE *f;

	places__make_dir();
	snprintf(path, sizeof(path), "%s/small.so", places_dir);
	ck_assert_int_eq(places__sh("cd %s && printf '%%s' 'int a(int);int b(int);int a(int x)"
				    "{return b(x)+1;}int b(int x){return a(x)*3;}'"
				    ">s.c && %s -O1 -fno-ipa-cp -fPIC -shared -nostdlib "
				    "-fno-semantic-interposition -Wl,-z,noseparate-code "
				    "-Wl,--build-id=none -o small.so s.c",
				    places_dir, getenv("CC") ?: "cc"), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	f = fopen(path, "r");
	bytes = malloc((size_t)st.st_size);
	ck_assert_uint_eq(fread(bytes, 1, (size_t)st.st_size, f), (size_t)st.st_size);
	fclose(f);
	places__remove_dir();
	*size = (size_t)st.st_size;
	return bytes;
}

/* The kinds of look-up that read all parts of a file. */
static void look_around(struct symbol_file *f, size_t size)
{
	struct symbol s;
	uint64_t address;

	for (uint64_t offset = 0; offset < size; offset += 16 + offset / 4) {
		if (!symbol_file__find(f, offset, &s)) {
			ck_assert_ptr_nonnull(s.name);
			ck_assert_uint_gt(strlen(s.name), 0);
			ck_assert_uint_lt(s.offset, s.size);
		}
		symbol_file__address(f, offset, &address);
	}
	symbol_file__find(f, UINT64_MAX, &s);
}

static bool open_and_look(const uint8_t *bytes, size_t size)
{
	struct symbol_file *f = symbol_file__open_memory(bytes, size);

	if (!f) {
		ck_assert(errno == ENOEXEC || errno == EIO);
		return false;
	}
	look_around(f, size);
	symbol_file__free(f);
	return true;
}

START_TEST(cut_off_at_every_length)
{
	size_t size, opened = 0;
	uint8_t *bytes = build_small(&size), *exact;

	for (size_t len = 0; len <= size; len++) {
		exact = malloc(len ?: 1);	/* so that a sanitizer sees a byte too many */
		memcpy(exact, bytes, len);
		opened += open_and_look(exact, len);
		free(exact);
	}
	ck_assert_uint_gt(opened, size / 2);
	free(bytes);
}
END_TEST

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

START_TEST(thousands_of_damaged_bytes)
{
	static const uint8_t likely[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };
	uint64_t state = 20240229;
	size_t size, opened = 0;
	uint8_t *bytes = build_small(&size), *copy = malloc(size);
	struct rusage usage;

	for (int turn = 0; turn < 20000; turn++) {
		int damages = 1 + (int)(next_random(&state) % 8);

		memcpy(copy, bytes, size);
		for (int i = 0; i < damages; ) {
			size_t at = next_random(&state) % size;

			/* padding is most of a small file, and says nothing */
			if (!bytes[at] && next_random(&state) % 8)
				continue;
			copy[at] = next_random(&state) % 2 ? likely[next_random(&state) % 5] :
							     (uint8_t)next_random(&state);
			i++;
		}
		opened += open_and_look(copy, size);
	}
	ck_assert_uint_gt(opened, 5000);
	getrusage(RUSAGE_SELF, &usage);
	ck_assert_int_lt(usage.ru_maxrss, 512 * 1024);	/* KiB, a sanitizer's own included */
	free(copy);
	free(bytes);
}
END_TEST

static void put64(uint8_t *bytes, size_t at, uint64_t value)
{
	memcpy(bytes + at, &value, sizeof(value));
}

/* Fields of eight bytes at the ends of what they can hold. */
START_TEST(extreme_values_in_every_field)
{
	static const uint64_t values[] = {
		0, 1, 0x7fffffff, 0xffffffff, 0x100000000, INT64_MAX, UINT64_MAX, UINT64_MAX - 63,
		0xfffffffffffff000, 0x7fffffffffff0000,
	};
	size_t size;
	uint8_t *bytes = build_small(&size), *copy = malloc(size);

	for (size_t at = 0; at + 8 <= size; at += 8) {
		uint64_t old;

		memcpy(&old, bytes + at, sizeof(old));
		if (!old)
			continue;
		memcpy(copy, bytes, size);
		for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
			put64(copy, at, values[i]);
			open_and_look(copy, size);
		}
	}
	free(copy);
	free(bytes);
}
END_TEST

START_TEST(no_files_of_ours)
{
	static const char *const paths[] = { "/dev/null", "/", "/proc/self/maps", "/etc/passwd" };
	Elf64_Ehdr h = { .e_ident = ELFMAG };

	h.e_ident[EI_CLASS] = ELFCLASS32;
	h.e_ident[EI_DATA] = ELFDATA2LSB;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		int fd = open(paths[i], O_RDONLY);

		ck_assert_ptr_null(symbol_file__open(fd));
		ck_assert_int_eq(errno, ENOEXEC);
		close(fd);
	}
	ck_assert_ptr_null(symbol_file__open(-1));
	ck_assert_int_eq(errno, EBADF);
	ck_assert_ptr_null(symbol_file__open_memory("", 0));
	ck_assert_ptr_null(symbol_file__open_memory(&h, sizeof(h)));
	ck_assert_int_eq(errno, ENOEXEC);
	symbol_file__free(NULL);
}
END_TEST

static int memory_file(const uint8_t *bytes, size_t size)
{
	int fd = memfd_create("symbols", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
	return fd;
}

static const struct test_symbol two[] = {
	{ "first", TEXT + 0x10, 0x10, STB_GLOBAL, STT_FUNC, 0 },
	{ "second", TEXT + 0x20, 0x10, STB_GLOBAL, STT_FUNC, 0 },
};

/* Its owner may cut it at any time: before the index is read, or between index and name. */
START_TEST(a_file_that_shrinks)
{
	struct test_elf e = test_elf__new(ARRAY(two), ARRAY(two));

	for (int late = 0; late < 2; late++) {
		int fd = memory_file(e.bytes, e.size);
		struct symbol_file *f = symbol_file__open(fd);
		struct symbol s;

		ck_assert_ptr_nonnull(f);
		if (late)
			ck_assert_int_eq(symbol_file__find(f, OFFSET_OF(TEXT + 0x10), &s), 0);
		ck_assert_int_eq(ftruncate(fd, 100), 0);
		ck_assert_int_lt(symbol_file__find(f, OFFSET_OF(TEXT + 0x20), &s), 0);
		ck_assert_int_lt(symbol_file__find(f, OFFSET_OF(TEXT + 0x10), &s), 0);
		symbol_file__free(f);
		close(fd);
	}
	test_elf__free(&e);
}
END_TEST

/* A terabyte of holes as symbol table: no more is read than a real file could have. */
START_TEST(a_table_of_a_terabyte)
{
	struct test_elf e = test_elf__new(ARRAY(two), NULL, 0);
	struct symbol_file *f;
	struct rusage usage;
	struct symbol s;
	int fd;

	e.sections[S_SYMTAB].sh_size = 1ull << 40;
	e.sections[S_STRTAB].sh_size = 1ull << 40;
	fd = memory_file(e.bytes, e.size);
	ck_assert_int_eq(ftruncate(fd, 2ll << 40), 0);
	f = symbol_file__open(fd);
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(symbol_file__find(f, OFFSET_OF(TEXT + 0x10), &s), 0);
	ck_assert_str_eq(s.name, "first");
	symbol_file__free(f);
	close(fd);
	test_elf__free(&e);
	getrusage(RUSAGE_SELF, &usage);
	ck_assert_int_lt(usage.ru_maxrss, 512 * 1024);
}
END_TEST

/* One name as long as the file. */
START_TEST(a_name_without_end)
{
	struct test_elf e = test_elf__new(ARRAY(two), NULL, 0);
	uint64_t offset = e.sections[S_STRTAB].sh_offset;
	size_t size = 4 << 20;
	struct symbol_file *f;
	struct symbol s;

	e.bytes = realloc(e.bytes, size);
	memset(e.bytes + e.size, 'x', size - e.size);
	e.sections = (Elf64_Shdr *)(e.bytes + ((Elf64_Ehdr *)e.bytes)->e_shoff);
	/* "second" becomes what lies at the end of the table: megabytes of 'x' */
	e.sections[S_STRTAB].sh_size = size - offset;
	((Elf64_Sym *)(e.bytes + e.sections[S_SYMTAB].sh_offset))[2].st_name =
		(Elf64_Word)(e.size + 1 - offset);
	f = symbol_file__open_memory(e.bytes, size);
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(symbol_file__find(f, OFFSET_OF(TEXT + 0x10), &s), 0);
	ck_assert_int_eq(symbol_file__find(f, OFFSET_OF(TEXT + 0x20), &s), -ENOENT);
	symbol_file__free(f);
	test_elf__free(&e);
}
END_TEST

/* Hundreds of thousands of symbols at one address, or each around all that follow. */
START_TEST(tables_made_to_be_slow)
{
	enum { NR = 300000, LOOKUPS = 100000 };
	struct test_symbol *symbols = calloc(NR, sizeof(*symbols));

	for (int shape = 0; shape < 2; shape++) {
		struct symbol_file *f;
		struct test_elf e;
		struct symbol s;

		for (int i = 0; i < NR; i++)
			symbols[i] = (struct test_symbol){
				i ? "x" : "y", shape ? TEXT + (uint64_t)i % 0x700 : TEXT + 0x700,
				shape ? 1 : 0x10, STB_GLOBAL, STT_FUNC, 0 };
		e = test_elf__new(symbols, NR, NULL, 0);
		f = symbol_file__open_memory(e.bytes, e.size);
		for (int i = 0; i < LOOKUPS; i++) {
			ck_assert_int_eq(symbol_file__find(f, OFFSET_OF(TEXT + 0x7f0), &s),
					 -ENOENT);
			ck_assert_int_eq(symbol_file__find(f, OFFSET_OF(TEXT + 0x6ff), &s),
					 shape ? 0 : -ENOENT);
		}
		symbol_file__free(f);
		test_elf__free(&e);
	}
	free(symbols);
}
END_TEST

/* --- damaged section headers: the program headers are whole, such programs run ---------------- */

struct damage {
	const char *name;
	void (*apply)(uint8_t *bytes, Elf64_Ehdr *h, Elf64_Shdr *sections, int symtab);
	bool local_known;	/* the local symbols can still be read */
	bool slots_known;	/* so can the sections of the linkage table */
};

#define DAMAGE(name, ...) \
	static void name(uint8_t *bytes, Elf64_Ehdr *h, Elf64_Shdr *s, int symtab) \
	{ \
		(void)bytes, (void)h, (void)s, (void)symtab; \
		__VA_ARGS__; \
	}

DAMAGE(nothing, (void)0)
DAMAGE(table_behind_end, h->e_shoff = 1ull << 40)
DAMAGE(table_wraps, h->e_shoff = 0xffffffffffffffc0)
DAMAGE(too_many_headers, h->e_shnum = 0xfeff)
DAMAGE(header_size_odd, h->e_shentsize = 63)
DAMAGE(name_index_out_of_range, h->e_shstrndx = 0x7000)
DAMAGE(name_index_is_symtab, h->e_shstrndx = (Elf64_Half)symtab)
DAMAGE(symtab_size_bogus, s[symtab].sh_size = 0x7fffffffffff0000)
DAMAGE(symtab_offset_bogus, s[symtab].sh_offset = 0xfffffffffffff000)
DAMAGE(symtab_entsize_zero, s[symtab].sh_entsize = 0)
DAMAGE(symtab_entsize_one, s[symtab].sh_entsize = 1)
DAMAGE(symtab_links_itself, s[symtab].sh_link = (Elf64_Word)symtab)
DAMAGE(symtab_links_nowhere, s[symtab].sh_link = 0xffff)
DAMAGE(string_table_empty, s[s[symtab].sh_link].sh_size = 0)
DAMAGE(symbol_names_behind_end,
       for (size_t i = 0; i < s[symtab].sh_size / sizeof(Elf64_Sym); i++)
	       ((Elf64_Sym *)(bytes + s[symtab].sh_offset))[i].st_name = 0x7ffffff0)
DAMAGE(section_names_behind_end,
       for (int i = 0; i < h->e_shnum; i++)
	       s[i].sh_name = 0xffffff00)

#define D(name, local, slots) { #name, name, local, slots }
static const struct damage damages[] = {
	D(nothing, true, true), D(table_behind_end, false, false), D(table_wraps, false, false),
	D(too_many_headers, false, false), D(header_size_odd, false, false),
	D(name_index_out_of_range, true, false), D(name_index_is_symtab, true, false),
	D(symtab_size_bogus, false, true), D(symtab_offset_bogus, false, true),
	D(symtab_entsize_zero, false, true), D(symtab_entsize_one, false, true),
	D(symtab_links_itself, false, true), D(symtab_links_nowhere, false, true),
	D(string_table_empty, false, true), D(symbol_names_behind_end, false, true),
	D(section_names_behind_end, true, false),
};

static int find_symtab(const Elf64_Ehdr *h, const Elf64_Shdr *sections)
{
	for (int i = 0; i < h->e_shnum; i++)
		if (sections[i].sh_type == SHT_SYMTAB)
			return i;
	ck_abort_msg("no .symtab");
	return 0;
}

static void check_damage(const struct damage *d, const uint8_t *whole, size_t size,
			 const struct place *places, int nr)
{
	uint8_t *bytes = malloc(size);
	Elf64_Ehdr *h = (Elf64_Ehdr *)bytes;
	Elf64_Shdr *sections;
	struct symbol_file *f;
	struct symbol s;

	memcpy(bytes, whole, size);
	sections = (Elf64_Shdr *)(bytes + h->e_shoff);
	d->apply(bytes, h, sections, find_symtab(h, sections));
	f = symbol_file__open_memory(bytes, size);
	ck_assert_msg(f, "%s", d->name);
	for (int i = 0; i < nr; i++) {
		bool known = places[i].kind == 'E' || (places[i].kind == 'L' && d->local_known) ||
			     (places[i].kind == 'P' && d->slots_known);
		int err = symbol_file__find(f, places[i].offset, &s);

		ck_assert_msg(err == (known ? 0 : -ENOENT), "%s: %s: %d", d->name, places[i].name,
			      err);
		if (known)
			ck_assert_str_eq(s.name, places[i].name);
	}
	symbol_file__free(f);
	free(bytes);
}

START_TEST(damaged_section_headers)
{
	struct place places[16];
	uint8_t *bytes;
	struct stat st;
	int nr, fd;

	places__make_dir();
	ck_assert_int_eq(places__sh("cd %s && %s -O2 -rdynamic -pie -fPIE -DIMPORTS -o truth "
				    "$OLDPWD/" TRUTH_SOURCE " && mv truth prog && ./prog >truth",
				    places_dir, getenv("CC") ?: "cc"), 0);
	nr = places__read(places, 16);
	ck_assert_int_ge(nr, 8);
	fd = open(places[0].path, O_RDONLY);
	ck_assert_int_eq(fstat(fd, &st), 0);
	bytes = malloc((size_t)st.st_size);
	ck_assert_int_eq(read(fd, bytes, (size_t)st.st_size), st.st_size);
	close(fd);
	places__remove_dir();
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++)
		check_damage(&damages[i], bytes, (size_t)st.st_size, places, nr);
	free(bytes);
}
END_TEST

UNIT_MAIN("symbols_hostile", cut_off_at_every_length, thousands_of_damaged_bytes,
	  extreme_values_in_every_field, no_files_of_ours, a_file_that_shrinks,
	  a_table_of_a_terabyte, a_name_without_end, tables_made_to_be_slow,
	  damaged_section_headers)
