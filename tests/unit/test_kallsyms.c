// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Kernel symbols: the text of /proc/kallsyms, whole, odd and hidden. */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "symbols/kernel.h"
#include "tests/unit/unit.h"

static struct kernel_symbols *parse(const char *text)
{
	struct kernel_symbols *k = NULL;

	ck_assert_int_eq(kernel_symbols__parse(text, strlen(text), &k), 0);
	return k;
}

static int parse_error(const char *text)
{
	struct kernel_symbols *k;

	return kernel_symbols__parse(text, strlen(text), &k);
}

/* NULL: no symbol is expected. */
static void expect(const struct kernel_symbols *k, uint64_t address, const char *name,
		   const char *module)
{
	struct kernel_symbol s;
	int err = kernel_symbols__find(k, address, &s);

	if (!name) {
		ck_assert_msg(err == -ENOENT, "%#" PRIx64 ": %s", address, err ? "error" : s.name);
		return;
	}
	ck_assert_msg(err == 0, "%#" PRIx64 ": %d", address, err);
	ck_assert_str_eq(s.name, name);
	if (module)
		ck_assert_str_eq(s.module, module);
	else
		ck_assert_ptr_null(s.module);
	ck_assert_uint_le(s.address, address);
}

START_TEST(a_kernel_and_its_modules)
{
	struct kernel_symbols *k = parse(
		"0000000000000000 A fixed_percpu_data\n"
		"ffffffff81000000 T _stext\n"
		"ffffffff81000100 T schedule\n"
		"ffffffff81000400 t local_one\n"
		"ffffffff81000500 W weak_one\n"
		"ffffffff81000600 T _etext\n"
		"ffffffff82000000 D some_data\n"
		"ffffffffc0001000 t nft_do_chain\t[nf_tables]\n"
		"ffffffffc0001100 t nft_last\t[nf_tables]\n"
		"ffffffffc0004000 d nft_table\t[nf_tables]\n"
		"ffffffffc0010000 t bpf_prog_6deef7357e7b4530_x\t[bpf]\n");

	ck_assert_uint_eq(kernel_symbols__count(k), 8);
	expect(k, 0, NULL, NULL);
	expect(k, 0xffffffff80ffffff, NULL, NULL);
	expect(k, 0xffffffff81000100, "schedule", NULL);
	expect(k, 0xffffffff810003ff, "schedule", NULL);
	expect(k, 0xffffffff81000400, "local_one", NULL);
	expect(k, 0xffffffff81000500, "weak_one", NULL);
	expect(k, 0xffffffff82000000, NULL, NULL);	/* data */
	expect(k, 0xffffffff90000000, NULL, NULL);
	expect(k, 0xffffffffc00010ff, "nft_do_chain", "nf_tables");
	expect(k, 0xffffffffc0001100, "nft_last", "nf_tables");
	expect(k, 0xffffffffc0003fff, "nft_last", "nf_tables");
	expect(k, 0xffffffffc0004000, NULL, NULL);
	expect(k, 0xffffffffc0010010, "bpf_prog_6deef7357e7b4530_x", "bpf");
	expect(k, 0xffffffffc0100000, NULL, NULL);
	kernel_symbols__free(k);
}
END_TEST

/* Modules are listed as they were loaded; nothing says where the last function of one ends. */
START_TEST(modules_in_any_order)
{
	struct kernel_symbols *k = parse(
		"ffffffffc0300000 t third_fn\t[third]\n"
		"ffffffffc0100000 t first_fn\t[first]\n"
		"ffffffffc0200000 t second_fn\t[second]\n"
		"ffffffffc0100800 t first_last\t[first]\n"
		"ffffffff81000000 T kernel_fn\n");

	expect(k, 0xffffffff81000010, "kernel_fn", NULL);
	expect(k, 0xffffffffc0100010, "first_fn", "first");
	expect(k, 0xffffffffc01008ff, "first_last", "first");
	expect(k, 0xffffffffc0101fff, "first_last", "first");	/* its page and one more */
	expect(k, 0xffffffffc0102000, NULL, NULL);
	expect(k, 0xffffffffc01fffff, NULL, NULL);
	expect(k, 0xffffffffc0200000, "second_fn", "second");
	expect(k, 0xffffffffc0300001, "third_fn", "third");
	expect(k, UINT64_MAX, NULL, NULL);
	kernel_symbols__free(k);
}
END_TEST

START_TEST(one_name_for_each_address)
{
	struct kernel_symbols *k = parse(
		"ffffffff81000000 t aaa_local\n"
		"ffffffff81000000 W aa_weak\n"
		"ffffffff81000000 T __x64_sys_read\n"
		"ffffffff81000000 T __ia32_sys_read\n"
		"ffffffff81000000 D data_there\n"
		"ffffffff81000100 T __under\n"
		"ffffffff81000100 T zz_plain\n"
		"ffffffff81000200 t b_local\n");

	ck_assert_uint_eq(kernel_symbols__count(k), 3);
	expect(k, 0xffffffff81000000, "__ia32_sys_read", NULL);
	expect(k, 0xffffffff810000ff, "__ia32_sys_read", NULL);
	expect(k, 0xffffffff81000100, "zz_plain", NULL);
	expect(k, 0xffffffff81000200, "b_local", NULL);
	kernel_symbols__free(k);
}
END_TEST

START_TEST(odd_lines)
{
	static const char text[] =
		"\n"
		"   \n"
		"garbage\n"
		"ffffffff81000000\n"
		"ffffffff81000000 T\n"
		"ffffffff81000000 TT two_letters\n"
		"ffffffff8100000000 T seventeen_digits\n"
		"xfffffff81000000 T no_number\n"
		"-1 T negative\n"
		"FFFFFFFF81000010 T upper_case_digits\n"
		"81000020 T short_number\n"
		"ffffffff81000030  T   many_blanks\n"
		"ffffffff81000040\tT\ttabs\t[module]\n"
		"ffffffff81000050 T with_return\r\n"
		"ffffffff81000060 T unclosed\t[module\n"
		"ffffffff81000070 T empty_module\t[]\n"
		"ffffffff81000080 T more words [follow] here\n"
		"ffffffff81000090 i odd_type\n"
		"ffffffff810000a0 T __cfi_\303\244\n"
		"ffffffff810000b0 T nul\0inside\n"
		"ffffffff810000c0 T last_without_line_end";
	struct kernel_symbols *k;

	ck_assert_int_eq(kernel_symbols__parse(text, sizeof(text) - 1, &k), 0);
	expect(k, 0x8100001f, NULL, NULL);
	expect(k, 0xffffffff81000010, "upper_case_digits", NULL);
	expect(k, 0x81000020, "short_number", NULL);
	expect(k, 0xffffffff81000030, "many_blanks", NULL);
	expect(k, 0xffffffff81000040, "tabs", "module");
	expect(k, 0xffffffff81000050, "with_return", NULL);
	expect(k, 0xffffffff81000060, "unclosed", NULL);
	expect(k, 0xffffffff81000070, "empty_module", NULL);
	expect(k, 0xffffffff81000080, "more", NULL);
	expect(k, 0xffffffff81000090, NULL, NULL);
	expect(k, 0xffffffff810000a0, "__cfi_\303\244", NULL);
	expect(k, 0xffffffff810000b0, "__cfi_\303\244", NULL);
	expect(k, 0xffffffff810000c0, "last_without_line_end", NULL);
	kernel_symbols__free(k);
}
END_TEST

START_TEST(hidden_or_empty)
{
	ck_assert_int_eq(parse_error("0000000000000000 T a\n0000000000000000 t b\t[m]\n"), -EPERM);
	ck_assert_int_eq(parse_error("0000000000000000 T a\nffffffff82000000 D data\n"), -EPERM);
	ck_assert_int_eq(parse_error(""), -ENODATA);
	ck_assert_int_eq(parse_error("ffffffff82000000 D data\n"), -ENODATA);
	ck_assert_int_eq(parse_error("no symbols at all\n"), -ENODATA);
	kernel_symbols__free(NULL);
}
END_TEST

START_TEST(files)
{
	struct kernel_symbols *k;

	ck_assert_int_eq(kernel_symbols__read("/no/such/file", &k), -ENOENT);
	ck_assert_int_eq(kernel_symbols__read("/dev/null", &k), -ENODATA);
	ck_assert_int_eq(kernel_symbols__read("/", &k), -EISDIR);
}
END_TEST

/*
 * Every text symbol of this kernel is found at its own address, under a name that stands there. The
 * text is copied first: programs and modules come and go.
 */
START_TEST(this_kernel)
{
	struct kernel_symbols *k;
	struct kernel_symbol s;
	int err, seen = 0, named = 0;
	char line[1024], name[512], path[256], type;
	uint64_t address;
	FILE *from, *to;
	size_t n;

	snprintf(path, sizeof(path), "%s/kallsyms.%d", getenv("TMPDIR") ?: "/tmp", (int)getpid());
	from = fopen("/proc/kallsyms", "r");
	to = fopen(path, "w+");
	ck_assert_ptr_nonnull(to);
	while (from && (n = fread(line, 1, sizeof(line), from)))
		fwrite(line, 1, n, to);
	if (from)
		fclose(from);
	fflush(to);
	err = kernel_symbols__read(path, &k);
	unlink(path);
	if (err == -EPERM || !from) {
		printf("addresses are hidden here\n");
		fclose(to);
		return;
	}
	ck_assert_int_eq(err, 0);
	rewind(to);
	while (fgets(line, sizeof(line), to)) {
		if (sscanf(line, "%" SCNx64 " %c %511s", &address, &type, name) != 3 ||
		    (type != 't' && type != 'T'))
			continue;
		seen++;
		ck_assert_int_eq(kernel_symbols__find(k, address, &s), 0);
		ck_assert_uint_eq(s.address, address);
		named += !strcmp(s.name, name);
	}
	fclose(to);
	ck_assert_int_gt(seen, 10000);
	ck_assert_int_eq(kernel_symbols__find(k, 0x400000, &s), -ENOENT);
	/* all but aliases */
	ck_assert_int_gt(named, seen * 9 / 10);
	kernel_symbols__free(k);
}
END_TEST

START_TEST(any_bytes)
{
	uint64_t state = 7;

	for (int turn = 0; turn < 20000; turn++) {
		static const char letters[] = "0123456789abcdef tTwD\n\t[]\r\0x";
		size_t len = (size_t)turn % 4096;
		struct kernel_symbols *k;
		struct kernel_symbol s;
		char *exact = malloc(len ?: 1);

		for (size_t i = 0; i < len; i++) {
			state = state * 6364136223846793005ull + 1442695040888963407ull;
			exact[i] = letters[(state >> 33) % sizeof(letters)];
		}
		if (!kernel_symbols__parse(exact, len, &k)) {
			kernel_symbols__find(k, state, &s);
			kernel_symbols__find(k, UINT64_MAX, &s);
			kernel_symbols__free(k);
		}
		free(exact);
	}
}
END_TEST

UNIT_MAIN("kallsyms", a_kernel_and_its_modules, modules_in_any_order, one_name_for_each_address,
	  odd_lines, hidden_or_empty, files, this_kernel, any_bytes)
