// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which symbol a place belongs to: one case for each rule, over files made for it. */
#include <errno.h>
#include <stdio.h>

#include "symbols/file.h"
#include "tests/unit/symbols_elf.h"
#include "tests/unit/unit.h"

#define FUNC(name, at, size) { name, TEXT + (at), size, STB_GLOBAL, STT_FUNC, 0 }
#define BOUND(name, at, size, bind) { name, TEXT + (at), size, STB_##bind, STT_FUNC, 0 }
#define LABEL(name, at) { name, TEXT + (at), 0, STB_GLOBAL, STT_NOTYPE, 0 }
#define ARRAY(a) a, sizeof(a) / sizeof((a)[0])

/* NULL: no symbol is expected. */
static void expect(struct symbol_file *f, uint64_t address, const char *name)
{
	struct symbol s;
	int err = symbol_file__find(f, OFFSET_OF(address), &s);

	if (!name) {
		ck_assert_msg(err == -ENOENT, "%#lx: %s", (long)address, err ? "error" : s.name);
		return;
	}
	ck_assert_msg(err == 0, "%#lx: error %d, not %s", (long)address, err, name);
	ck_assert_str_eq(s.name, name);
	ck_assert_uint_eq(s.address + s.offset, address);
	ck_assert_uint_lt(s.offset, s.size);
}

static struct symbol_file *open_elf(struct test_elf *e)
{
	struct symbol_file *f = symbol_file__open_memory(e->bytes, e->size);

	ck_assert_ptr_nonnull(f);
	test_elf__free(e);	/* it was copied */
	return f;
}

static struct symbol_file *file_of(const struct test_symbol *symbols, size_t nr)
{
	struct test_elf e = test_elf__new(symbols, nr, NULL, 0);

	return open_elf(&e);
}

START_TEST(a_sized_function_ends_where_it_says)
{
	static const struct test_symbol symbols[] = {
		FUNC("b", 0x40, 0x10), FUNC("a", 0x10, 0x20),
	};
	struct symbol_file *f = file_of(ARRAY(symbols));

	expect(f, TEXT + 0x0f, NULL);
	expect(f, TEXT + 0x10, "a");
	expect(f, TEXT + 0x2f, "a");
	expect(f, TEXT + 0x30, NULL);
	expect(f, TEXT + 0x3f, NULL);
	expect(f, TEXT + 0x40, "b");
	expect(f, TEXT + 0x4f, "b");
	expect(f, TEXT + 0x50, NULL);
	symbol_file__free(f);
}
END_TEST

START_TEST(the_innermost_of_nested_functions)
{
	static const struct test_symbol symbols[] = {
		FUNC("outer", 0x00, 0x100), FUNC("inner", 0x40, 0x20), FUNC("least", 0x48, 0x08),
	};
	struct symbol_file *f = file_of(ARRAY(symbols));

	expect(f, TEXT + 0x3f, "outer");
	expect(f, TEXT + 0x40, "inner");
	expect(f, TEXT + 0x4f, "least");
	expect(f, TEXT + 0x50, "inner");
	expect(f, TEXT + 0x60, "outer");
	expect(f, TEXT + 0x100, NULL);
	symbol_file__free(f);
}
END_TEST

/* More functions than the index looks at one by one. */
START_TEST(an_outer_function_is_found_behind_many_inner_ones)
{
	struct test_symbol symbols[401];
	char names[401][16];
	struct symbol_file *f;

	for (int i = 0; i < 400; i++) {
		snprintf(names[i], sizeof(names[i]), "f%d", i);
		symbols[i] = (struct test_symbol)BOUND(names[i], 0x10 + 4 * (uint64_t)i, 2, GLOBAL);
	}
	symbols[400] = (struct test_symbol)FUNC("outer", 0x08, 0x7f0);
	f = file_of(ARRAY(symbols));
	for (uint64_t i = 0; i < 400; i++) {
		expect(f, TEXT + 0x10 + 4 * i + 1, names[i]);
		expect(f, TEXT + 0x10 + 4 * i + 2, "outer");
	}
	symbol_file__free(f);
}
END_TEST

START_TEST(global_before_weak_before_local)
{
	static const struct test_symbol symbols[] = {
		BOUND("aaa_local", 0x10, 8, LOCAL), BOUND("aa_weak", 0x10, 8, WEAK),
		BOUND("zz_global", 0x10, 8, GLOBAL), BOUND("b_local", 0x20, 8, LOCAL),
		BOUND("c_weak", 0x20, 8, WEAK), BOUND("d_local", 0x30, 8, LOCAL),
	};
	struct symbol_file *f = file_of(ARRAY(symbols));

	expect(f, TEXT + 0x10, "zz_global");
	expect(f, TEXT + 0x20, "c_weak");
	expect(f, TEXT + 0x30, "d_local");
	symbol_file__free(f);
}
END_TEST

START_TEST(plain_names_before_those_with_a_mark_in_front)
{
	static const struct test_symbol symbols[] = {
		FUNC("__two", 0x10, 8), FUNC("_one", 0x10, 8), FUNC("zero", 0x10, 8),
		FUNC("$mark", 0x20, 8), FUNC("_one", 0x20, 8),
		FUNC(".Llocal", 0x30, 8), FUNC("__two", 0x30, 8),
		FUNC("_ZN1a1bEv", 0x40, 8), FUNC("_under", 0x40, 8),
		FUNC("_RNvC1a1b", 0x50, 8), FUNC("__under", 0x50, 8),
		FUNC("beta", 0x60, 8), FUNC("alpha", 0x60, 8), FUNC("gamma", 0x60, 8),
	};
	struct symbol_file *f = file_of(ARRAY(symbols));

	expect(f, TEXT + 0x10, "zero");
	expect(f, TEXT + 0x20, "_one");
	expect(f, TEXT + 0x30, "__two");
	expect(f, TEXT + 0x40, "_ZN1a1bEv");
	expect(f, TEXT + 0x50, "_RNvC1a1b");
	expect(f, TEXT + 0x60, "alpha");
	symbol_file__free(f);
}
END_TEST

/* The order in the file, which a rebuild may change, has no say. */
START_TEST(the_choice_does_not_depend_on_the_order)
{
	struct test_symbol symbols[] = {
		FUNC("gamma", 0x10, 8), FUNC("alpha", 0x10, 8), FUNC("beta", 0x10, 8),
		BOUND("aaa", 0x10, 8, WEAK), BOUND("aab", 0x10, 8, LOCAL),
	};

	for (int turn = 0; turn < 5; turn++) {
		struct test_symbol first = symbols[0];
		struct symbol_file *f = file_of(ARRAY(symbols));

		expect(f, TEXT + 0x12, "alpha");
		symbol_file__free(f);
		memmove(symbols, symbols + 1, sizeof(symbols) - sizeof(symbols[0]));
		symbols[4] = first;
	}
}
END_TEST

START_TEST(of_aliases_only_those_that_reach_the_place)
{
	static const struct test_symbol symbols[] = {
		FUNC("short_one", 0x10, 8), BOUND("long_one", 0x10, 0x20, LOCAL),
	};
	struct symbol_file *f = file_of(ARRAY(symbols));

	expect(f, TEXT + 0x17, "short_one");
	expect(f, TEXT + 0x18, "long_one");
	expect(f, TEXT + 0x30, NULL);
	symbol_file__free(f);
}
END_TEST

START_TEST(a_label_reaches_to_the_next_symbol)
{
	static const struct test_symbol symbols[] = {
		FUNC("before", 0x10, 0x10), LABEL("label", 0x20), FUNC("behind", 0x40, 0x10),
		FUNC("no_size", 0x60, 0), LABEL("last", 0x700), FUNC("_fini", 0x7f0, 0),
	};
	struct symbol_file *f = file_of(ARRAY(symbols));
	struct symbol s;

	expect(f, TEXT + 0x1f, "before");
	expect(f, TEXT + 0x20, "label");
	expect(f, TEXT + 0x3f, "label");
	expect(f, TEXT + 0x40, "behind");
	expect(f, TEXT + 0x50, NULL);
	expect(f, TEXT + 0x60, "no_size");
	expect(f, TEXT + 0x6ff, "no_size");
	expect(f, TEXT + 0x700, "last");
	expect(f, TEXT + 0x7ff, "_fini");	/* and no further than its section */
	expect(f, RODATA, NULL);
	ck_assert_int_eq(symbol_file__find(f, OFFSET_OF(TEXT + 0x21), &s), 0);
	ck_assert_int_eq(s.kind, SYMBOL_LABEL);
	ck_assert_uint_eq(s.size, 0x20);
	symbol_file__free(f);
}
END_TEST

START_TEST(labels_are_taken_only_where_no_function_is)
{
	static const struct test_symbol symbols[] = {
		FUNC("function", 0x10, 0x40), LABEL("inside", 0x20), LABEL("at_start", 0x10),
		LABEL("label", 0x60),
		{ "sized_label", TEXT + 0x80, 0x10, STB_GLOBAL, STT_NOTYPE, 0 },
	};
	struct symbol_file *f = file_of(ARRAY(symbols));

	expect(f, TEXT + 0x10, "function");
	expect(f, TEXT + 0x20, "function");
	expect(f, TEXT + 0x4f, "function");
	expect(f, TEXT + 0x50, NULL);	/* behind a sized function, whatever label lies in it */
	expect(f, TEXT + 0x60, "label");
	expect(f, TEXT + 0x8f, "sized_label");
	expect(f, TEXT + 0x90, NULL);
	symbol_file__free(f);
}
END_TEST

START_TEST(data_is_not_code)
{
	static const struct test_symbol symbols[] = {
		{ "object", TEXT + 0x10, 8, STB_GLOBAL, STT_OBJECT, 0 },
		{ "section", TEXT, 0, STB_LOCAL, STT_SECTION, 0 },
		{ "file.c", TEXT, 0, STB_LOCAL, STT_FILE, 0 },
		{ "thread_local", TEXT, 8, STB_GLOBAL, STT_TLS, 0 },
		{ "undefined", TEXT + 0x20, 8, STB_GLOBAL, STT_FUNC, SHN_ABS },
		{ "table", RODATA, 0, STB_GLOBAL, STT_NOTYPE, S_RODATA },
	};
	struct symbol_file *f = file_of(ARRAY(symbols));

	for (uint64_t at = TEXT; at < TEXT + SEGMENT_SIZE; at += 8)
		expect(f, at, NULL);
	symbol_file__free(f);
}
END_TEST

START_TEST(a_symbol_without_name_still_stands_for_its_code)
{
	static const struct test_symbol symbols[] = {
		LABEL("label", 0x10), FUNC("", 0x20, 0x10), FUNC("", 0x40, 0x10),
		FUNC("named", 0x40, 0x10),
	};
	static const struct test_symbol dynamic[] = {
		LABEL("far_label", 0x18),
		{ "sized_label", TEXT + 0x20, 8, STB_GLOBAL, STT_NOTYPE, 0 },
	};
	struct symbol_file *f = file_of(ARRAY(symbols));
	struct test_elf e;

	expect(f, TEXT + 0x10, "label");
	expect(f, TEXT + 0x20, NULL);
	expect(f, TEXT + 0x40, "named");
	symbol_file__free(f);
	/* for the other table, too */
	e = test_elf__new(ARRAY(symbols), ARRAY(dynamic));
	f = open_elf(&e);
	expect(f, TEXT + 0x1f, "far_label");
	expect(f, TEXT + 0x20, NULL);
	expect(f, TEXT + 0x2f, NULL);
	expect(f, TEXT + 0x30, NULL);
	symbol_file__free(f);
}
END_TEST

START_TEST(versions_are_no_part_of_a_name)
{
	static const struct test_symbol symbols[] = {
		FUNC("memcpy@@GLIBC_2.14", 0x10, 8), FUNC("memmove@GLIBC_2.2.5", 0x20, 8),
		FUNC("@odd", 0x30, 8),
	};
	struct symbol_file *f = file_of(ARRAY(symbols));

	expect(f, TEXT + 0x10, "memcpy");
	expect(f, TEXT + 0x20, "memmove");
	expect(f, TEXT + 0x30, "@odd");
	symbol_file__free(f);
}
END_TEST

START_TEST(indirect_functions_are_told_apart)
{
	static const struct test_symbol symbols[] = {
		{ "indirect", TEXT + 0x10, 8, STB_GLOBAL, STT_GNU_IFUNC, 0 },
		BOUND("resolver", 0x10, 8, LOCAL), FUNC("plain", 0x20, 8),
	};
	struct symbol_file *f = file_of(ARRAY(symbols));
	struct symbol s;

	ck_assert_int_eq(symbol_file__find(f, OFFSET_OF(TEXT + 0x10), &s), 0);
	ck_assert_str_eq(s.name, "indirect");
	ck_assert_int_eq(s.kind, SYMBOL_IFUNC);
	ck_assert_int_eq(symbol_file__find(f, OFFSET_OF(TEXT + 0x20), &s), 0);
	ck_assert_int_eq(s.kind, SYMBOL_FUNCTION);
	symbol_file__free(f);
}
END_TEST

START_TEST(dynamic_symbols_fill_the_holes_only)
{
	static const struct test_symbol symbols[] = {
		FUNC("full_a", 0x10, 0x10), LABEL("label", 0x30),
	};
	static const struct test_symbol dynamic[] = {
		FUNC("dyn_a", 0x10, 0x10), FUNC("dyn_b", 0x38, 0x10), FUNC("dyn_c", 0x50, 0x10),
	};
	static const struct test_symbol labels[] = {
		LABEL("label_a", 0x10), LABEL("label_b", 0x44), LABEL("label_c", 0x60),
	};
	static const struct test_symbol functions[] = {
		FUNC("dyn_a", 0x20, 0x10), FUNC("dyn_b", 0x40, 0x10),
	};
	struct test_elf e = test_elf__new(ARRAY(symbols), ARRAY(dynamic)), only;
	struct symbol_file *f = open_elf(&e);

	expect(f, TEXT + 0x10, "full_a");
	expect(f, TEXT + 0x30, "label");
	expect(f, TEXT + 0x38, "dyn_b");	/* surer than a label */
	expect(f, TEXT + 0x50, "dyn_c");
	symbol_file__free(f);

	/* a label of one table ends where a symbol of the other begins, or around it ends */
	e = test_elf__new(ARRAY(labels), ARRAY(functions));
	f = open_elf(&e);
	expect(f, TEXT + 0x1f, "label_a");
	expect(f, TEXT + 0x20, "dyn_a");
	expect(f, TEXT + 0x30, NULL);
	expect(f, TEXT + 0x41, "dyn_b");
	expect(f, TEXT + 0x50, NULL);
	expect(f, TEXT + 0x60, "label_c");
	symbol_file__free(f);

	only = test_elf__new(NULL, 0, ARRAY(dynamic));
	f = open_elf(&only);
	expect(f, TEXT + 0x10, "dyn_a");
	expect(f, TEXT + 0x20, NULL);
	symbol_file__free(f);
}
END_TEST

START_TEST(offsets_become_link_time_addresses)
{
	static const struct test_symbol symbols[] = { FUNC("a", 0x10, 0x20) };
	struct symbol_file *f = file_of(ARRAY(symbols));
	uint64_t address;

	ck_assert(symbol_file__address(f, SEGMENT_OFFSET, &address));
	ck_assert_uint_eq(address, TEXT);
	ck_assert(symbol_file__address(f, SEGMENT_OFFSET + SEGMENT_SIZE - 1, &address));
	ck_assert_uint_eq(address, TEXT + SEGMENT_SIZE - 1);
	ck_assert(!symbol_file__address(f, SEGMENT_OFFSET + SEGMENT_SIZE, &address));
	ck_assert(!symbol_file__address(f, SEGMENT_OFFSET - 1, &address));
	ck_assert(!symbol_file__address(f, UINT64_MAX, &address));
	symbol_file__free(f);
}
END_TEST

UNIT_MAIN("symbols_rules", a_sized_function_ends_where_it_says, the_innermost_of_nested_functions,
	  an_outer_function_is_found_behind_many_inner_ones, global_before_weak_before_local,
	  plain_names_before_those_with_a_mark_in_front, the_choice_does_not_depend_on_the_order,
	  of_aliases_only_those_that_reach_the_place, a_label_reaches_to_the_next_symbol,
	  labels_are_taken_only_where_no_function_is, data_is_not_code,
	  a_symbol_without_name_still_stands_for_its_code, versions_are_no_part_of_a_name,
	  indirect_functions_are_told_apart, dynamic_symbols_fill_the_holes_only,
	  offsets_become_link_time_addresses)
