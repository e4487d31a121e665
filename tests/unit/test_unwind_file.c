// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Files of every shape, right and lying: which rule is in force at which byte. The images are put
 * together by hand; the rules follow from what is put in.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/elf_maker.h"
#include "tests/unit/unit.h"
#include "unwind/elf_view.h"
#include "unwind/file.h"
#include "unwind/rows.h"

static struct unwind_rule rules[4096];
static struct unwind_row rows[1 << 16];

struct opened {
	struct unwind_file *file;
	struct unwind_store *store;
};

static struct opened open_image(const void *image, size_t size)
{
	const struct unwind_store_config config = {
		.rules = rules, .rows = rows, .max_rules = 4096, .max_rows = 1 << 16,
		.max_pages = 64,
	};
	struct opened o;

	ck_assert_int_eq(unwind_file__open_memory(&o.file, image, size), 0);
	ck_assert_int_eq(unwind_store__new(&o.store, &config), 0);
	return o;
}

static void close_image(struct opened *o)
{
	unwind_store__free(o->store);
	unwind_file__free(o->file);
}

static struct unwind_rule rule_at(struct opened *o, uint64_t offset)
{
	struct unwind_rule rule;

	ck_assert_int_eq(unwind_store__rule(o->store, 1, o->file, offset, &rule), 0);
	return rule;
}

/* CFA = rsp + off with the return address below it: off is what tells one function from another. */
static void expect_rsp(struct opened *o, uint64_t from, uint64_t to, int32_t off)
{
	const struct unwind_rule want = { .cfa = UNWIND_CFA_REG, .cfa_reg = UNWIND_RSP,
					  .cfa_off = off, .ra = UNWIND_SAVE_CFA, .ra_off = -8 };

	for (uint64_t at = from; at < to; at++) {
		struct unwind_rule rule = rule_at(o, at);

		ck_assert_msg(!memcmp(&rule, &want, sizeof(rule)), "0x%llx: cfa %u off %d, not %d",
			      (unsigned long long)at, rule.cfa, rule.cfa_off, off);
	}
}

static void expect_kind(struct opened *o, uint64_t from, uint64_t to, unsigned int cfa)
{
	for (uint64_t at = from; at < to; at++)
		ck_assert_msg(rule_at(o, at).cfa == cfa, "0x%llx: %u, not %u",
			      (unsigned long long)at, rule_at(o, at).cfa, cfa);
}

/* Functions of which each has a CFA of its own, at offsets of the text. */
static void three_functions(struct maker *m)
{
	m->fdes[0] = (struct maker_fde){ .start = maker__code(m, 0x1500), .len = 0x100 };
	MAKER_INSNS(m, 0, "\x0e\x18");			/* rsp + 24 */
	m->fdes[1] = (struct maker_fde){ .start = maker__code(m, 0x1100), .len = 0x80 };
	MAKER_INSNS(m, 1, "\x41\x0e\x10");		/* rsp + 8, from byte 1 rsp + 16 */
	m->fdes[2] = (struct maker_fde){ .start = maker__code(m, 0x1180), .len = 0x40 };
	MAKER_INSNS(m, 2, "\x0e\x28");			/* rsp + 40 */
	m->nr_fdes = 3;
}

static void expect_three_functions(struct opened *o)
{
	expect_kind(o, 0x1000, 0x1100, UNWIND_CFA_NONE);
	expect_rsp(o, 0x1100, 0x1101, 8);
	expect_rsp(o, 0x1101, 0x1180, 16);
	expect_rsp(o, 0x1180, 0x11c0, 40);
	expect_kind(o, 0x11c0, 0x1500, UNWIND_CFA_NONE);
	expect_rsp(o, 0x1500, 0x1600, 24);
	expect_kind(o, 0x1600, 0x1700, UNWIND_CFA_NONE);
}

/* The three functions, in an image made as `m` says otherwise. */
static void try_three_functions(struct maker m, enum fde_source source)
{
	struct opened o;

	three_functions(&m);
	maker__build(&m);
	o = open_image(m.image, sizeof(m.image));
	expect_three_functions(&o);
	ck_assert_int_eq(fde_index__source(unwind_file__fdes(o.file, FDE_EH_FRAME)), source);
	close_image(&o);
}

START_TEST(found_by_the_table)
{
	try_three_functions((struct maker){ .vaddr = 0 }, FDE_TABLE);
	try_three_functions((struct maker){ .vaddr = 0x400000 }, FDE_TABLE);
	try_three_functions((struct maker){ .no_sections = true }, FDE_TABLE);
}
END_TEST

START_TEST(segments_have_biases_of_their_own)
{
	struct maker m = { .vaddr = 0x200000, .text_shift = 0x1000, .text2_shift = 0x33000 };
	struct opened o;

	three_functions(&m);
	m.fdes[3] = (struct maker_fde){ .start = maker__code(&m, 0x7010), .len = 0x20 };
	MAKER_INSNS(&m, 3, "\x0e\x30");
	m.nr_fdes = 4;
	maker__build(&m);
	o = open_image(m.image, sizeof(m.image));
	expect_three_functions(&o);
	expect_kind(&o, 0x7000, 0x7010, UNWIND_CFA_NONE);
	expect_rsp(&o, 0x7010, 0x7030, 48);
	expect_kind(&o, 0x7030, 0x7040, UNWIND_CFA_NONE);
	close_image(&o);
}
END_TEST

START_TEST(found_without_a_table)
{
	try_three_functions((struct maker){ .table = TABLE_OMITTED }, FDE_SCAN);
	try_three_functions((struct maker){ .table = TABLE_OMITTED, .no_sections = true }, FDE_SCAN);
	try_three_functions((struct maker){ .no_phdr = true }, FDE_SCAN);
}
END_TEST

/* Where no header gives its size, .eh_frame ends at its terminator: what follows is something else. */
START_TEST(nothing_is_read_behind_the_terminator)
{
	struct maker m = { .table = TABLE_OMITTED, .no_sections = true };
	struct opened o;

	three_functions(&m);
	maker__build(&m);
	m.fdes[3] = (struct maker_fde){ .start = maker__code(&m, 0x1200), .len = 0x40 };
	m.at = MAKER_EH + m.eh_size;
	maker__fde(&m, 3, MAKER_EH, false);
	o = open_image(m.image, sizeof(m.image));
	expect_three_functions(&o);
	close_image(&o);
}
END_TEST

START_TEST(a_table_that_lies_is_not_believed)
{
	try_three_functions((struct maker){ .table = TABLE_UNSORTED }, FDE_SCAN);
	try_three_functions((struct maker){ .table = TABLE_WRONG_START }, FDE_SCAN);
	try_three_functions((struct maker){ .table = TABLE_SHORT }, FDE_SCAN);
	try_three_functions((struct maker){ .table = TABLE_WILD }, FDE_SCAN);
	try_three_functions((struct maker){ .table = TABLE_TOO_LONG }, FDE_SCAN);
	try_three_functions((struct maker){ .table = TABLE_WILD, .no_sections = true }, FDE_SCAN);
}
END_TEST

START_TEST(section_headers_that_lie_are_not_believed)
{
	struct maker m = { .vaddr = 0 };
	Elf64_Shdr sh;
	struct opened o;

	three_functions(&m);
	maker__build(&m);
	memcpy(&sh, m.image + MAKER_SHDRS + sizeof(sh), sizeof(sh));
	sh.sh_offset = sh.sh_addr = 0x2000;		/* zeros there */
	memcpy(m.image + MAKER_SHDRS + sizeof(sh), &sh, sizeof(sh));
	o = open_image(m.image, sizeof(m.image));
	expect_three_functions(&o);
	close_image(&o);
}
END_TEST

START_TEST(nothing_but_debug_frame)
{
	struct maker m = { .debug = true, .no_phdr = true };
	struct opened o;

	three_functions(&m);
	for (int i = 0; i < 3; i++)
		m.fdes[i].debug = true;
	maker__build(&m);
	o = open_image(m.image, sizeof(m.image));
	expect_three_functions(&o);
	close_image(&o);
}
END_TEST

START_TEST(debug_frame_fills_the_gaps_only)
{
	struct maker m = { .debug = true };
	struct opened o;

	three_functions(&m);
	m.fdes[0].debug = true;
	m.fdes[3] = (struct maker_fde){ .start = 0x1100, .len = 0x80, .debug = true };
	MAKER_INSNS(&m, 3, "\x0e\x38");			/* .eh_frame has this one */
	m.nr_fdes = 4;
	maker__build(&m);
	o = open_image(m.image, sizeof(m.image));
	expect_three_functions(&o);
	close_image(&o);
}
END_TEST

START_TEST(encodings_versions_and_lengths)
{
	static const struct maker makers[] = {
		{ .encoding = 0x1c },				/* pcrel sdata8 */
		{ .encoding = 0x13 },				/* pcrel udata4 */
		{ .encoding = 0x03 },				/* absolute udata4 */
		{ .encoding = 0x0a },				/* absolute sdata2 */
		{ .encoding = 0x04 },				/* absolute udata8 */
		{ .encoding = 0x01 },				/* absolute ULEB128 */
		{ .augmentation = "" },				/* absolute pointers */
		{ .augmentation = "zPLR" }, { .augmentation = "zRS" }, { .augmentation = "zRB" },
		{ .augmentation = "eh" },
		{ .version = 3 }, { .version = 4 },
		{ .wide = true }, { .wide = true, .wide_id = true },
	};

	for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
		struct maker m = makers[i];

		try_three_functions(m, FDE_TABLE);
		m.table = TABLE_OMITTED;
		try_three_functions(m, FDE_SCAN);
	}
}
END_TEST

START_TEST(debug_frame_in_64_bit_form)
{
	struct maker m = { .debug = true, .no_phdr = true, .wide = true, .version = 4 };
	struct opened o;

	three_functions(&m);
	for (int i = 0; i < 3; i++)
		m.fdes[i].debug = true;
	maker__build(&m);
	o = open_image(m.image, sizeof(m.image));
	expect_three_functions(&o);
	close_image(&o);
}
END_TEST

START_TEST(what_can_not_be_read_has_no_rule)
{
	static const struct maker makers[] = {
		{ .version = 2 },			/* there is no such version */
		{ .encoding = 0x9b },			/* indirect: needs a process */
		{ .encoding = 0x2b },			/* relative to the text's start */
	};

	for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
		struct maker m = makers[i];
		struct opened o;

		three_functions(&m);
		maker__build(&m);
		o = open_image(m.image, sizeof(m.image));
		expect_kind(&o, 0x1000, 0x1700, UNWIND_CFA_NONE);
		close_image(&o);
	}
}
END_TEST

START_TEST(unknown_augmentation_is_a_rule_that_is_not_known)
{
	struct maker m = { .augmentation = "q" };
	struct opened o;

	three_functions(&m);
	maker__build(&m);
	o = open_image(m.image, sizeof(m.image));
	expect_kind(&o, 0x1100, 0x11c0, UNWIND_CFA_UNKNOWN);
	close_image(&o);
}
END_TEST

/* As lld leaves behind of a function that was folded away. */
START_TEST(empty_entries_are_passed_over)
{
	for (int table = TABLE_GOOD; table <= TABLE_OMITTED; table++) {
		struct maker m = { .table = (enum maker_table)table };
		struct opened o;

		three_functions(&m);
		m.fdes[3] = (struct maker_fde){ .start = 0x1100, .len = 0 };
		MAKER_INSNS(&m, 3, "\x0e\x38");
		m.fdes[4] = (struct maker_fde){ .start = 0x1140, .len = 0 };
		MAKER_INSNS(&m, 4, "\x0e\x38");
		m.nr_fdes = 5;
		maker__build(&m);
		o = open_image(m.image, sizeof(m.image));
		expect_three_functions(&o);
		close_image(&o);
	}
}
END_TEST

START_TEST(of_two_that_overlap_the_later_start_wins)
{
	for (int table = TABLE_GOOD; table <= TABLE_OMITTED; table++) {
		struct maker m = { .table = (enum maker_table)table };
		struct opened o;

		m.fdes[0] = (struct maker_fde){ .start = 0x1f00, .len = 0x1200 };
		MAKER_INSNS(&m, 0, "\x0e\x10");
		m.fdes[1] = (struct maker_fde){ .start = 0x2080, .len = 0x80 };
		MAKER_INSNS(&m, 1, "\x0e\x20");
		m.nr_fdes = 2;
		maker__build(&m);
		o = open_image(m.image, sizeof(m.image));
		expect_rsp(&o, 0x1f00, 0x2080, 16);
		expect_rsp(&o, 0x2080, 0x2100, 32);
		expect_rsp(&o, 0x2100, 0x3100, 16);	/* on into a page of its own */
		expect_kind(&o, 0x3100, 0x3110, UNWIND_CFA_NONE);
		close_image(&o);
	}
}
END_TEST

START_TEST(a_function_reaches_across_pages)
{
	struct maker m = { .vaddr = 0x10000 };
	struct opened o;
	struct page_rows page;

	m.fdes[0] = (struct maker_fde){ .start = maker__code(&m, 0x1f80), .len = 0x3000 };
	/* rsp+16 from 0x1fc0, +24 from 0x2fff, +32 from 0x3000 */
	MAKER_INSNS(&m, 0, "\x02\x40\x0e\x10\x03\x3f\x10\x0e\x18\x41\x0e\x20");
	m.nr_fdes = 1;
	maker__build(&m);
	o = open_image(m.image, sizeof(m.image));
	expect_rsp(&o, 0x1f80, 0x1fc0, 8);
	expect_rsp(&o, 0x1fc0, 0x2fff, 16);
	expect_rsp(&o, 0x2fff, 0x3000, 24);
	expect_rsp(&o, 0x3000, 0x4f80, 32);
	expect_kind(&o, 0x4f80, 0x5000, UNWIND_CFA_NONE);
	/* the first row of a page is the rule that reaches into it */
	ck_assert_int_eq(unwind_store__page(o.store, 1, o.file, 2, &page), 0);
	ck_assert_uint_eq(page.nr, 2);
	ck_assert_uint_eq(rows[page.first].pc, 0);
	ck_assert_uint_eq(rows[page.first + 1].pc, 0xfff);
	ck_assert_int_eq(unwind_store__page(o.store, 1, o.file, 3, &page), 0);
	ck_assert_uint_eq(page.nr, 1);
	close_image(&o);
}
END_TEST

START_TEST(padding_shares_a_row_and_a_gap_has_one)
{
	struct maker m = { .vaddr = 0 };
	struct opened o;
	struct page_rows page;

	m.fdes[0] = (struct maker_fde){ .start = 0x1000, .len = 0x11 };
	m.fdes[1] = (struct maker_fde){ .start = 0x1020, .len = 0x10 };	/* 15 bytes behind */
	MAKER_INSNS(&m, 1, "\x0e\x10");
	m.fdes[2] = (struct maker_fde){ .start = 0x1040, .len = 0x10 };	/* 16 bytes behind */
	MAKER_INSNS(&m, 2, "\x0e\x10");
	m.nr_fdes = 3;
	maker__build(&m);
	o = open_image(m.image, sizeof(m.image));
	expect_rsp(&o, 0x1000, 0x1020, 8);
	expect_rsp(&o, 0x1020, 0x1030, 16);
	expect_kind(&o, 0x1030, 0x1040, UNWIND_CFA_NONE);
	expect_rsp(&o, 0x1040, 0x1050, 16);
	ck_assert_int_eq(unwind_store__page(o.store, 1, o.file, 1, &page), 0);
	ck_assert_uint_eq(page.nr, 5);
	close_image(&o);
}
END_TEST

static void put_code(struct maker *m, size_t offset, const char *bytes, size_t len)
{
	memcpy(m->image + offset, bytes, len);
}
#define CODE(m, offset, bytes) put_code(m, offset, bytes, sizeof(bytes) - 1)

START_TEST(plt_slots_by_their_code)
{
	struct maker m = { .text_shift = 0x1000 };
	struct unwind_store_stats stats;
	struct opened o;

	three_functions(&m);
	/* header, two lazy slots as lld writes them */
	CODE(&m, 0x2000, "\xff\x35\x01\x02\x03\x04\xff\x25\x05\x06\x07\x08\x0f\x1f\x40\x00");
	CODE(&m, 0x2010, "\xff\x25\x01\x02\x03\x04\x68\x00\x00\x00\x00\xe9\xe0\xff\xff\xff");
	CODE(&m, 0x2020, "\xff\x25\x01\x02\x03\x04\x68\x01\x00\x00\x00\xe9\xd0\xff\xff\xff");
	/* with IBT: lazy and .plt.sec */
	CODE(&m, 0x2030, "\xf3\x0f\x1e\xfa\x68\x00\x00\x00\x00\xe9\x01\x02\x03\x04\x66\x90");
	CODE(&m, 0x2040, "\xf3\x0f\x1e\xfa\xff\x25\x01\x02\x03\x04\x66\x0f\x1f\x44\x00\x00");
	/* mold's header of 32 bytes, a slot */
	CODE(&m, 0x2080, "\xf3\x0f\x1e\xfa\x41\x53\xff\x35\x01\x02\x03\x04\xff\x25\x01\x02\x03\x04");
	CODE(&m, 0x20a0, "\xf3\x0f\x1e\xfa\x41\xbb\x01\x00\x00\x00\xff\x25\x01\x02\x03\x04");
	/* .plt.got: slots of 8 bytes */
	CODE(&m, 0x20c8, "\xff\x25\x01\x02\x03\x04\x66\x90");
	/* not aligned as slots are; and a jump that is none of a slot */
	CODE(&m, 0x20e4, "\xff\x25\x01\x02\x03\x04\x68\x00\x00\x00\x00\xe9\xe0\xff\xff\xff");
	CODE(&m, 0x2100, "\xff\x25\x01\x02\x03\x04\x48\x89\xe5\x90\x90\x90\x90\x90\x90\x90");
	maker__build(&m);
	o = open_image(m.image, sizeof(m.image));
	expect_three_functions(&o);
	expect_rsp(&o, 0x2000, 0x2006, 16);
	expect_rsp(&o, 0x2006, 0x2010, 24);
	for (uint64_t slot = 0x2010; slot <= 0x2020; slot += 16) {
		expect_rsp(&o, slot, slot + 11, 8);
		expect_rsp(&o, slot + 11, slot + 16, 16);
	}
	expect_rsp(&o, 0x2030, 0x2039, 8);
	expect_rsp(&o, 0x2039, 0x2040, 16);
	expect_rsp(&o, 0x2040, 0x2050, 8);
	expect_kind(&o, 0x2050, 0x2080, UNWIND_CFA_NONE);
	expect_rsp(&o, 0x2080, 0x2086, 8);
	expect_rsp(&o, 0x2086, 0x208c, 16);
	expect_rsp(&o, 0x208c, 0x2092, 24);
	expect_rsp(&o, 0x20a0, 0x20b0, 8);
	expect_rsp(&o, 0x20c8, 0x20d0, 8);
	expect_kind(&o, 0x20d0, 0x2200, UNWIND_CFA_NONE);
	unwind_store__stats(o.store, &stats);
	ck_assert_uint_eq(stats.plt_pages, 1);
	close_image(&o);
}
END_TEST

#define SIGRETURN "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"

START_TEST(signal_trampolines_by_their_code)
{
	struct maker m = { .vaddr = 0 };
	const struct unwind_rule want = { .cfa = UNWIND_CFA_SIGNAL, .cfa_reg = UNWIND_RSP,
					  .cfa_off = 40 };
	struct unwind_rule rule;
	struct opened o;

	three_functions(&m);
	CODE(&m, 0x1800, SIGRETURN);
	CODE(&m, 0x1a80, "\xb8\x0f\x00\x00\x00\x0f\x05");
	CODE(&m, 0x3000, SIGRETURN);		/* the byte before is in another page */
	CODE(&m, 0x3ffc, SIGRETURN);		/* across the border */
	CODE(&m, 0x11c0, SIGRETURN);		/* directly behind a function */
	CODE(&m, 0x1120, SIGRETURN);		/* in one: it has its rules */
	maker__build(&m);
	o = open_image(m.image, sizeof(m.image));
	expect_kind(&o, 0x17ff, 0x1809, UNWIND_CFA_SIGNAL);
	rule = rule_at(&o, 0x1800);
	ck_assert_mem_eq(&rule, &want, sizeof(rule));
	expect_kind(&o, 0x1809, 0x1a7f, UNWIND_CFA_NONE);
	expect_kind(&o, 0x1a7f, 0x1a87, UNWIND_CFA_SIGNAL);
	expect_kind(&o, 0x2fff, 0x3009, UNWIND_CFA_SIGNAL);
	expect_kind(&o, 0x3ffb, 0x4005, UNWIND_CFA_SIGNAL);
	expect_rsp(&o, 0x1180, 0x11c0, 40);
	expect_kind(&o, 0x11c0, 0x11c9, UNWIND_CFA_SIGNAL);
	expect_rsp(&o, 0x1101, 0x1180, 16);
	close_image(&o);
}
END_TEST

START_TEST(the_entry_is_the_root)
{
	struct maker m = { .vaddr = 0x400000 };
	struct opened o;

	m.entry = maker__code(&m, 0x1fe0);
	three_functions(&m);
	m.fdes[3] = (struct maker_fde){ .start = maker__code(&m, 0x2010), .len = 8 };
	m.nr_fdes = 4;
	maker__build(&m);
	o = open_image(m.image, sizeof(m.image));
	expect_three_functions(&o);
	expect_kind(&o, 0x1f00, 0x1fe0, UNWIND_CFA_NONE);
	expect_kind(&o, 0x1fe0, 0x2010, UNWIND_CFA_STOP);
	expect_rsp(&o, 0x2010, 0x2018, 8);
	expect_kind(&o, 0x2018, 0x2040, UNWIND_CFA_NONE);	/* behind it is something else */
	close_image(&o);
}
END_TEST

START_TEST(pages_outside_the_code_have_no_rule)
{
	struct maker m = { .vaddr = 0 };
	struct opened o;

	three_functions(&m);
	maker__build(&m);
	o = open_image(m.image, sizeof(m.image));
	expect_kind(&o, 0x0, 0x1000, UNWIND_CFA_NONE);
	ck_assert_int_eq(rule_at(&o, 0x123456789).cfa, UNWIND_CFA_NONE);
	close_image(&o);
}
END_TEST

static int open_error(const void *image, size_t size)
{
	struct unwind_file *file;
	int err = unwind_file__open_memory(&file, image, size);

	if (!err)
		unwind_file__free(file);
	return err;
}

START_TEST(what_is_no_file_of_ours_is_refused)
{
	struct maker m = { .vaddr = 0 };
	Elf64_Ehdr eh;

	three_functions(&m);
	maker__build(&m);
	ck_assert_int_eq(open_error(m.image, sizeof(m.image)), 0);
	ck_assert_int_eq(open_error(m.image, 0), -ENOTSUP);
	ck_assert_int_eq(open_error(m.image, 63), -ENOTSUP);
	ck_assert_int_eq(open_error("#!/bin/sh\necho this is a script and not an ELF file at all;"
				    " exit 0; # it is long enough", 80), -ENOTSUP);
	memcpy(&eh, m.image, sizeof(eh));
	m.image[EI_CLASS] = ELFCLASS32;
	ck_assert_int_eq(open_error(m.image, sizeof(m.image)), -ENOTSUP);
	m.image[EI_CLASS] = ELFCLASS64;
	eh.e_machine = EM_AARCH64;
	memcpy(m.image, &eh, sizeof(eh));
	ck_assert_int_eq(open_error(m.image, sizeof(m.image)), -ENOTSUP);
	eh.e_machine = EM_X86_64;
	eh.e_type = ET_REL;
	memcpy(m.image, &eh, sizeof(eh));
	ck_assert_int_eq(open_error(m.image, sizeof(m.image)), -ENOTSUP);
	eh.e_type = ET_DYN;
	eh.e_phentsize = 32;
	memcpy(m.image, &eh, sizeof(eh));
	ck_assert_int_eq(open_error(m.image, sizeof(m.image)), -EINVAL);
	eh.e_phentsize = sizeof(Elf64_Phdr);
	eh.e_phoff = UINT64_MAX - 8;
	memcpy(m.image, &eh, sizeof(eh));
	ck_assert_int_eq(open_error(m.image, sizeof(m.image)), -EINVAL);
}
END_TEST

/* Through a descriptor: reads in blocks, and a file that gets shorter under our hands. */
START_TEST(from_a_descriptor)
{
	const struct unwind_store_config config = {
		.rules = rules, .rows = rows, .max_rules = 4096, .max_rows = 1 << 16,
		.max_pages = 64,
	};
	struct maker m = { .vaddr = 0x400000 };
	struct unwind_store_stats stats;
	struct opened o;
	int fd = memfd_create("image", MFD_CLOEXEC);

	three_functions(&m);
	maker__build(&m);
	ck_assert_int_eq(write(fd, m.image, sizeof(m.image)), sizeof(m.image));
	ck_assert_int_eq(unwind_file__open(&o.file, fd), 0);
	ck_assert_int_eq(unwind_store__new(&o.store, &config), 0);
	expect_three_functions(&o);
	ck_assert_uint_lt(unwind_file__memory(o.file), 200000);
	ck_assert_int_eq(ftruncate(fd, 0x1000), 0);
	expect_kind(&o, 0x2000, 0x2004, UNWIND_CFA_NONE);
	unwind_store__stats(o.store, &stats);
	ck_assert_uint_eq(stats.failed_pages, 1);
	close_image(&o);
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	ck_assert_int_eq(unwind_file__open(&o.file, fd), -ENOTSUP);
	close(fd);
	ck_assert_int_eq(unwind_file__open(&o.file, fd), -EBADF);
}
END_TEST

UNIT_MAIN("unwind_file", found_by_the_table, segments_have_biases_of_their_own,
	  found_without_a_table, nothing_is_read_behind_the_terminator,
	  a_table_that_lies_is_not_believed,
	  section_headers_that_lie_are_not_believed, nothing_but_debug_frame,
	  debug_frame_fills_the_gaps_only, encodings_versions_and_lengths,
	  debug_frame_in_64_bit_form, what_can_not_be_read_has_no_rule,
	  unknown_augmentation_is_a_rule_that_is_not_known, empty_entries_are_passed_over,
	  of_two_that_overlap_the_later_start_wins, a_function_reaches_across_pages,
	  padding_shares_a_row_and_a_gap_has_one, plt_slots_by_their_code,
	  signal_trampolines_by_their_code, the_entry_is_the_root,
	  pages_outside_the_code_have_no_rule, what_is_no_file_of_ours_is_refused,
	  from_a_descriptor)
