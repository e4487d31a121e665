// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Frame words to names: files, the vDSO, the kernel, marks, and what has no name. */
#include <errno.h>
#include <libelf.h>
#include <gelf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/gpucollect.h"
#include "symbols/cache.h"
#include "tests/unit/symbols_elf.h"
#include "tests/unit/unit.h"

#define ARRAY(a) a, sizeof(a) / sizeof((a)[0])

static const struct test_symbol symbols[] = {
	{ "plain_c", TEXT + 0x10, 0x10, STB_GLOBAL, STT_FUNC, 0 },
	{ "_ZNK1A3fooIiEEvv.cold", TEXT + 0x20, 0x10, STB_GLOBAL, STT_FUNC, 0 },
	{ "_ZN6broken", TEXT + 0x30, 0x10, STB_GLOBAL, STT_FUNC, 0 },
};

static struct resolved resolve(struct symbols *s, uint64_t word)
{
	struct resolved r = {};

	ck_assert(symbols__resolve(s, word, &r));
	ck_assert_ptr_nonnull(r.name);
	ck_assert(r.name[0]);
	return r;
}

static void expect(struct symbols *s, uint64_t word, const char *name, const char *module,
		   enum resolved_kind kind)
{
	for (int turn = 0; turn < 2; turn++) {	/* the second time from memory */
		struct resolved r = resolve(s, word);

		ck_assert_str_eq(r.name, name);
		ck_assert_pstr_eq(r.module, module);
		ck_assert_int_eq(r.kind, kind);
	}
}

static int file_with_symbols(void)
{
	struct test_elf e = test_elf__new(ARRAY(symbols), NULL, 0);
	int fd = memfd_create("symbols", MFD_CLOEXEC);

	ck_assert_int_eq(write(fd, e.bytes, e.size), (ssize_t)e.size);
	test_elf__free(&e);
	return fd;
}

static uint64_t file_word(uint32_t file, uint64_t address)
{
	return FRAME_MAKE_FILE(FRAME_FILE, file, OFFSET_OF(address));
}

START_TEST(functions_of_a_file)
{
	struct symbols *s = symbols__new();
	int fd = file_with_symbols();
	struct resolved r;

	ck_assert_int_eq(symbols__add_file(s, 7, fd, "/opt/lib/libfoo.so.1"), 0);
	ck_assert_int_eq(symbols__add_file(s, 7, fd, "/other"), -EEXIST);
	expect(s, file_word(7, TEXT + 0x1f), "plain_c", "libfoo.so.1", RESOLVED_NATIVE);
	expect(s, file_word(7, TEXT + 0x20), "A::foo<int>.cold", "libfoo.so.1", RESOLVED_NATIVE);
	r = resolve(s, file_word(7, TEXT + 0x21));
	ck_assert_str_eq(r.symbol, "_ZNK1A3fooIiEEvv.cold");
	ck_assert_uint_eq(r.address, TEXT + 0x21);
	ck_assert(!r.guess);
	ck_assert_ptr_eq(r.name, resolve(s, file_word(7, TEXT + 0x22)).name);
	/* what can't be made readable is shown as it is */
	expect(s, file_word(7, TEXT + 0x30), "_ZN6broken", "libfoo.so.1", RESOLVED_NATIVE);
	r = resolve(s, FRAME_MAKE_FILE(FRAME_FILE_GUESS, 7, OFFSET_OF(TEXT + 0x10)));
	ck_assert_str_eq(r.name, "plain_c");
	ck_assert(r.guess);
	symbols__free(s);
	close(fd);
}
END_TEST

START_TEST(places_without_symbol)
{
	struct symbols *s = symbols__new();
	int fd = file_with_symbols(), bad = memfd_create("bad", 0);

	ck_assert_int_eq(write(bad, "not an ELF file", 15), 15);
	symbols__add_file(s, 1, fd, "libfoo.so");
	symbols__add_file(s, 2, -1, "/usr/bin/no rights");
	symbols__add_file(s, 3, bad, "/memfd:jit; x (deleted)");
	symbols__add_file(s, 4, fd, "/trailing/");
	symbols__add_file(s, 5, fd, "");
	/* the address that addr2line takes; the offset where that isn't known */
	expect(s, file_word(1, TEXT + 0x123), "libfoo.so+0x401123", "libfoo.so", RESOLVED_UNNAMED);
	expect(s, FRAME_MAKE_FILE(FRAME_FILE, 1, 0x10), "libfoo.so+0x10", "libfoo.so",
	       RESOLVED_UNNAMED);
	expect(s, FRAME_MAKE_FILE(FRAME_FILE, 2, 0x1234), "no rights+0x1234", "no rights",
	       RESOLVED_UNNAMED);
	expect(s, FRAME_MAKE_FILE(FRAME_FILE, 3, 0xfffffffffull),
	       "memfd:jit; x (deleted)+0xfffffffff", "memfd:jit; x (deleted)", RESOLVED_UNNAMED);
	expect(s, file_word(4, TEXT + 0x10), "plain_c", "/trailing/", RESOLVED_NATIVE);
	expect(s, file_word(5, TEXT + 0x10), "plain_c", "[unknown]", RESOLVED_NATIVE);
	expect(s, file_word(9, TEXT + 0x10), "[unknown]", NULL, RESOLVED_UNNAMED);
	/* it may come later */
	symbols__add_file(s, 9, fd, "late");
	expect(s, file_word(9, TEXT + 0x10), "plain_c", "late", RESOLVED_NATIVE);
	symbols__free(s);
	close(fd);
	close(bad);
}
END_TEST

START_TEST(anonymous_code)
{
	struct symbols *s = symbols__new();
	struct resolved r;

	expect(s, FRAME_MAKE_ADDRESS(FRAME_ANON, 0x7f0000001234), "[anonymous code]", NULL,
	       RESOLVED_UNNAMED);
	r = resolve(s, FRAME_MAKE_ADDRESS(FRAME_ANON_GUESS, 0x7f0000001234));
	ck_assert_str_eq(r.name, "[anonymous code]");
	ck_assert_uint_eq(r.address, 0x7f0000001234);
	ck_assert(r.guess);
	symbols__free(s);
}
END_TEST

START_TEST(ends_of_stacks)
{
	static const char *const texts[NR_END] = {
		NULL, "[truncated]", "[no unwind info: libfoo.so]",
		"[unsupported unwind info: libfoo.so]", "[unreadable stack]", "[stack loop]",
		"[return address outside code]", "[anonymous code without frame pointer]",
		"[no stack]", "[kernel thread]",
	};
	struct symbols *s = symbols__new();
	struct resolved r;

	symbols__add_file(s, 3, -1, "/lib/libfoo.so");
	for (uint32_t why = 1; why < NR_END; why++) {
		r = resolve(s, FRAME_MAKE_END(why, 3));
		ck_assert_str_eq(r.name, texts[why]);
		ck_assert_int_eq(r.kind, RESOLVED_MARK);
	}
	ck_assert(!symbols__resolve(s, FRAME_MAKE_END(END_ROOT, 3), &r));
	ck_assert(!symbols__resolve(s, FRAME_MAKE_END(END_ROOT, 0), &r));
	expect(s, FRAME_MAKE_END(END_NO_INFO, 99), "[no unwind info]", NULL, RESOLVED_MARK);
	expect(s, FRAME_MAKE_END(200, 0), "[unknown]", NULL, RESOLVED_MARK);
	/* words of no kind that we know */
	expect(s, 0, "[unknown]", NULL, RESOLVED_UNNAMED);
	expect(s, UINT64_MAX, "[unknown]", NULL, RESOLVED_UNNAMED);
	symbols__free(s);
}
END_TEST

static char kallsyms[256];

static void write_kallsyms(const char *text)
{
	FILE *f;

	snprintf(kallsyms, sizeof(kallsyms), "%s/kallsyms.%d", getenv("TMPDIR") ?: "/tmp",
		 (int)getpid());
	f = fopen(kallsyms, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static uint64_t kernel_word(uint64_t address)
{
	return FRAME_MAKE_ADDRESS(FRAME_KERNEL, address);
}

START_TEST(kernel_functions)
{
	struct symbols *s = symbols__new();
	struct resolved r;

	write_kallsyms("ffffffff81000000 T schedule\n"
		       "ffffffff81000100 t _RNvNtC6kernel5print3foo\n"
		       "ffffffff81000200 T _etext\nffffffff81000300 D data\n"
		       "ffffffffc0001000 t nft_do_chain\t[nf_tables]\n");
	ck_assert_int_eq(symbols__set_kernel_path(s, kallsyms), 0);
	ck_assert_int_eq(symbols__kernel_error(s), 0);
	expect(s, kernel_word(0xffffffff81000010), "schedule", "kernel", RESOLVED_KERNEL);
	expect(s, kernel_word(0xffffffff81000110), "kernel::print::foo", "kernel", RESOLVED_KERNEL);
	expect(s, kernel_word(0xffffffffc0001010), "nft_do_chain", "nf_tables", RESOLVED_KERNEL);
	r = resolve(s, kernel_word(0xffffffff81000010));
	ck_assert_uint_eq(r.address, 0xffffffff81000010);
	expect(s, kernel_word(0xffffffff81000400), "kernel+0xffffffff81000400", "kernel",
	       RESOLVED_UNNAMED);
	ck_assert_int_eq(symbols__kernel_error(s), 0);
	unlink(kallsyms);
	symbols__free(s);
}
END_TEST

/* A second later a module may be there, and an address that had no name gets one. */
START_TEST(modules_that_come_later)
{
	struct symbols *s = symbols__new();

	write_kallsyms("ffffffff81000000 T schedule\n");
	symbols__set_kernel_path(s, kallsyms);
	expect(s, kernel_word(0xffffffff81000010), "schedule", "kernel", RESOLVED_KERNEL);
	expect(s, kernel_word(0xffffffffc0001010), "kernel+0xffffffffc0001010", "kernel",
	       RESOLVED_UNNAMED);
	write_kallsyms("ffffffff81000000 T schedule\nffffffffc0001000 t late_fn\t[late]\n");
	usleep(1100000);
	expect(s, kernel_word(0xffffffffc0001010), "late_fn", "late", RESOLVED_KERNEL);
	/* a file that is gone doesn't take away what is known */
	unlink(kallsyms);
	usleep(1100000);
	expect(s, kernel_word(0xffffffffc0009000), "kernel+0xffffffffc0009000", "kernel",
	       RESOLVED_UNNAMED);
	expect(s, kernel_word(0xffffffffc0001020), "late_fn", "late", RESOLVED_KERNEL);
	symbols__free(s);
}
END_TEST

START_TEST(a_kernel_that_hides_its_addresses)
{
	struct symbols *s = symbols__new();

	write_kallsyms("0000000000000000 T schedule\n0000000000000000 t x\t[m]\n");
	symbols__set_kernel_path(s, kallsyms);
	expect(s, kernel_word(0xffffffff81000010), "[kernel]", "kernel", RESOLVED_UNNAMED);
	expect(s, kernel_word(0xffffffff81000020), "[kernel]", "kernel", RESOLVED_UNNAMED);
	ck_assert_int_eq(symbols__kernel_error(s), -EPERM);
	unlink(kallsyms);
	symbols__set_kernel_path(s, "/no/such/file");
	expect(s, kernel_word(0xffffffff81000030), "[kernel]", "kernel", RESOLVED_UNNAMED);
	ck_assert_int_eq(symbols__kernel_error(s), -ENOENT);
	symbols__free(s);
}
END_TEST

/* The file offset of a symbol of the vDSO, by libelf. */
static bool vdso_symbol(char *image, size_t size, const char *name, uint64_t *offset)
{
	Elf *elf;
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	GElf_Sym sym;
	bool found = false;

	elf_version(EV_CURRENT);
	elf = elf_memory(image, size);
	while (elf && (scn = elf_nextscn(elf, scn))) {
		gelf_getshdr(scn, &sh);
		for (int i = 0; sh.sh_type == SHT_DYNSYM && !found &&
		     gelf_getsym(elf_getdata(scn, NULL), i, &sym); i++) {
			found = !strcmp(elf_strptr(elf, sh.sh_link, sym.st_name), name);
			*offset = sym.st_value;	/* its one segment starts at 0 in both */
		}
	}
	elf_end(elf);
	return found;
}

START_TEST(the_vdso)
{
	char *image = (char *)getauxval(AT_SYSINFO_EHDR), line[512];
	struct symbols *s = symbols__new();
	unsigned long start, end, size = 0;
	uint64_t offset;
	FILE *maps = fopen("/proc/self/maps", "r");

	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "[vdso]") && sscanf(line, "%lx-%lx", &start, &end) == 2)
			size = end - start;
	fclose(maps);
	if (!image || !size) {
		printf("no vDSO here\n");
		return;
	}
	ck_assert(vdso_symbol(image, size, "__vdso_clock_gettime", &offset));
	ck_assert_int_eq(symbols__add_image(s, 0xffffff, image, size, "[vdso]"), 0);
	expect(s, FRAME_MAKE_FILE(FRAME_FILE, 0xffffff, offset), "__vdso_clock_gettime", "[vdso]",
	       RESOLVED_NATIVE);
	ck_assert_int_eq(symbols__add_image(s, 1, "no ELF", 6, "[vdso]"), 0);
	expect(s, FRAME_MAKE_FILE(FRAME_FILE, 1, 0x10), "[vdso]+0x10", "[vdso]", RESOLVED_UNNAMED);
	symbols__free(s);
}
END_TEST

START_TEST(names_without_an_address)
{
	struct symbols *s = symbols__new();
	const char *first = symbols__readable(s, "_Z9vectorAddPKfS0_Pfi");

	ck_assert_str_eq(first, "vectorAdd");
	ck_assert_ptr_eq(first, symbols__readable(s, "_Z9vectorAddPKfS0_Pfi"));
	ck_assert_str_eq(symbols__readable(s, "triton_poi_fused_0"), "triton_poi_fused_0");
	ck_assert_str_eq(symbols__readable(s, "_Zbroken"), "_Zbroken");
	ck_assert_str_eq(symbols__readable(s, ""), "[unknown]");
	ck_assert_str_eq(symbols__readable(s, NULL), "[unknown]");
	symbols__free(s);
	symbols__free(NULL);
}
END_TEST

/* Thousands of files, words and names, none of which may change or vanish. */
START_TEST(many_of_everything)
{
	enum { FILES = 3000 };
	struct symbols *s = symbols__new();
	const char **names = calloc(FILES, sizeof(*names));
	int fd = file_with_symbols();
	char text[64];

	for (uint32_t i = 0; i < FILES; i++) {
		snprintf(text, sizeof(text), "/lib/lib%u.so", i);
		ck_assert_int_eq(symbols__add_file(s, i, i % 100 ? -1 : fd, text), 0);
		names[i] = resolve(s, FRAME_MAKE_FILE(FRAME_FILE, i, 0x77)).name;
	}
	for (uint32_t i = 0; i < FILES; i++) {
		snprintf(text, sizeof(text), "lib%u.so+0x77", i);
		ck_assert_str_eq(names[i], text);
		ck_assert_ptr_eq(resolve(s, FRAME_MAKE_FILE(FRAME_FILE, i, 0x77)).name, names[i]);
	}
	symbols__free(s);
	free(names);
	close(fd);
}
END_TEST

UNIT_MAIN("symbols_cache", functions_of_a_file, places_without_symbol, anonymous_code,
	  ends_of_stacks, kernel_functions, modules_that_come_later,
	  a_kernel_that_hides_its_addresses, the_vdso, names_without_an_address, many_of_everything)
