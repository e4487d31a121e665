// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Call frame instructions, byte by byte: what rule each makes. Values are worked out by hand. */
#include <errno.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "unwind/cfi.h"
#include "unwind/fde.h"

#define START 0x1000
#define SIZE 0x100

struct got {
	uint64_t start[64], end[64];
	struct unwind_rule rule[64];
	unsigned int nr;
	struct cfi_stats stats;
};

static int collect(void *ctx, uint64_t start, uint64_t end, const struct unwind_rule *rule)
{
	struct got *got = ctx;

	ck_assert_uint_lt(got->nr, 64);
	ck_assert_uint_lt(start, end);
	ck_assert_uint_eq(start, got->nr ? got->end[got->nr - 1] : start);
	got->start[got->nr] = start;
	got->end[got->nr] = end;
	got->rule[got->nr++] = *rule;
	return 0;
}

/* CFA = rsp + 8, return address at CFA - 8: how every x86-64 CIE starts. */
#define PLAIN "\x0c\x07\x08\x90\x01"

static struct got run_cie(const char *cie_insns, size_t cie_len, const char *insns, size_t len)
{
	const struct cie cie = {
		.code_align = 1, .data_align = -8, .ra_reg = 16, .fde_encoding = 0x1b,
		.insns = (const uint8_t *)cie_insns, .insns_len = cie_len,
	};
	const struct fde fde = {
		.start = START, .end = START + SIZE, .cie = &cie,
		.insns = (const uint8_t *)insns, .insns_len = len, .insns_vaddr = 0x100,
	};
	struct got got = { .nr = 0 };

	ck_assert_int_eq(cfi__run(&fde, 0, UINT64_MAX, collect, &got, &got.stats), 0);
	ck_assert_uint_eq(got.start[0], START);
	ck_assert_uint_eq(got.end[got.nr - 1], START + SIZE);
	ck_assert_uint_eq(got.stats.rows, got.nr);
	return got;
}

#define RUN(insns) run_cie(PLAIN, sizeof(PLAIN) - 1, insns, sizeof(insns) - 1)
#define RUN_CIE(cie, insns) run_cie(cie, sizeof(cie) - 1, insns, sizeof(insns) - 1)

static uint64_t odd_sum(const struct got *got)
{
	uint64_t sum = 0;

	for (int i = 0; i < NR_CFI_ODD; i++)
		sum += got->stats.odd[i];
	return sum;
}

static struct unwind_rule cfa_rsp(int32_t off)
{
	return (struct unwind_rule){ .cfa = UNWIND_CFA_REG, .cfa_reg = UNWIND_RSP, .cfa_off = off,
				     .ra = UNWIND_SAVE_CFA, .ra_off = -8 };
}

static void expect(const struct got *got, unsigned int i, uint64_t start, struct unwind_rule rule)
{
	ck_assert_uint_lt(i, got->nr);
	ck_assert_uint_eq(got->start[i], start);
	ck_assert_mem_eq(&got->rule[i], &rule, sizeof(rule));
}

static void expect_unknown(const struct got *got, unsigned int i, enum cfi_odd why)
{
	ck_assert_uint_eq(got->rule[i].cfa, UNWIND_CFA_UNKNOWN);
	ck_assert_uint_ge(got->stats.odd[why], 1);
}

START_TEST(no_instructions_leave_the_cie_rule)
{
	struct got got = RUN("");

	ck_assert_uint_eq(got.nr, 1);
	expect(&got, 0, START, cfa_rsp(8));
}
END_TEST

START_TEST(a_frame_is_set_up_and_torn_down)
{
	/* advance 1; CFA +16; rbp at CFA-16; advance 3; CFA by rbp; rbx at CFA-24; advance 40;
	 * CFA = rsp+8; rbp and rbx as in the CIE
	 */
	struct got got = RUN("\x41\x0e\x10\x86\x02\x43\x0d\x06\x83\x03\x68\x0c\x07\x08\xc6\xc3");
	struct unwind_rule r = cfa_rsp(16);

	ck_assert_uint_eq(got.nr, 4);
	expect(&got, 0, START, cfa_rsp(8));
	r.rbp = UNWIND_SAVE_CFA;
	r.rbp_off = -16;
	expect(&got, 1, START + 1, r);
	r.cfa_reg = UNWIND_RBP;
	r.rbx = UNWIND_SAVE_CFA;
	r.rbx_off = -24;
	expect(&got, 2, START + 4, r);
	expect(&got, 3, START + 44, cfa_rsp(8));
	ck_assert_uint_eq(odd_sum(&got), 0);
}
END_TEST

START_TEST(every_way_to_advance)
{
	/* 2, then 1, 2, 4 and 8 byte operands, and an absolute place by set_loc (pcrel) */
	struct got got = RUN("\x42\x0e\x10"			/* 0x1002 */
			     "\x02\x03\x0e\x18"			/* 0x1005 */
			     "\x03\x04\x00\x0e\x20"		/* 0x1009 */
			     "\x04\x05\x00\x00\x00\x0e\x28"	/* 0x100e */
			     "\x1d\x06\0\0\0\0\0\0\0\x0e\x30"	/* 0x1014 */
			     "\x01\x21\x0f\x00\x00\x0e\x38");	/* place 0x11f + 0xf21 = 0x1040 */

	ck_assert_uint_eq(got.nr, 7);
	expect(&got, 1, 0x1002, cfa_rsp(16));
	expect(&got, 2, 0x1005, cfa_rsp(24));
	expect(&got, 3, 0x1009, cfa_rsp(32));
	expect(&got, 4, 0x100e, cfa_rsp(40));
	expect(&got, 5, 0x1014, cfa_rsp(48));
	expect(&got, 6, 0x1040, cfa_rsp(56));
}
END_TEST

START_TEST(instructions_behind_the_end_do_nothing)
{
	struct got got = RUN("\x03\x00\x20\x0e\x10\x42\x0e\x18");

	ck_assert_uint_eq(got.nr, 1);
	expect(&got, 0, START, cfa_rsp(8));
}
END_TEST

START_TEST(remember_and_restore_nest)
{
	/* remember; advance 1; CFA 16, rbp saved; remember; advance 1; CFA 32; restore;
	 * advance 1; restore; advance 1
	 */
	struct got got = RUN("\x0a\x41\x0e\x10\x86\x02\x0a\x41\x0e\x20\x41\x0b\x41\x0b");
	struct unwind_rule r = cfa_rsp(16);

	r.rbp = UNWIND_SAVE_CFA;
	r.rbp_off = -16;
	ck_assert_uint_eq(got.nr, 5);
	expect(&got, 1, START + 1, r);
	expect(&got, 3, START + 3, r);
	expect(&got, 4, START + 4, cfa_rsp(8));
}
END_TEST

START_TEST(restored_is_what_the_cie_says)
{
	/* CIE: rbp at CFA-16; FDE: rbp at CFA-32, rbx at CFA-40; then both as before */
	struct got got = RUN_CIE(PLAIN "\x86\x02", "\x86\x04\x83\x05\x44\xc6\xc3");
	struct unwind_rule r = cfa_rsp(8);

	r.rbp = UNWIND_SAVE_CFA;
	r.rbp_off = -16;
	ck_assert_uint_eq(got.nr, 2);
	ck_assert_int_eq(got.rule[0].rbp_off, -32);
	ck_assert_int_eq(got.rule[0].rbx_off, -40);
	expect(&got, 1, START + 4, r);
}
END_TEST

START_TEST(restore_without_remember_ends_what_is_known)
{
	struct got got = RUN("\x41\x0e\x10\x41\x0b\x41\x0e\x18");

	ck_assert_uint_eq(got.nr, 3);
	expect(&got, 1, START + 1, cfa_rsp(16));
	expect_unknown(&got, 2, CFI_ODD_OPCODE);
	ck_assert_uint_eq(got.start[2], START + 2);
}
END_TEST

START_TEST(too_many_remembered_states_are_said_so)
{
	struct got got = RUN("\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a");

	expect_unknown(&got, 0, CFI_ODD_DEPTH);
}
END_TEST

START_TEST(signed_and_extended_forms)
{
	struct unwind_rule r = cfa_rsp(64);
	/* def_cfa_sf rsp -8 (x -8); offset_extended rbp 2; offset_extended_sf rbx -3 (x -8) */
	struct got got = RUN("\x12\x07\x78\x05\x06\x02\x11\x03\x7d");

	r.rbp = UNWIND_SAVE_CFA;
	r.rbp_off = -16;
	r.rbx = UNWIND_SAVE_CFA;
	r.rbx_off = 24;
	expect(&got, 0, START, r);
	/* def_cfa_offset_sf -5; GNU_negative_offset_extended rbp 2; restore_extended rbx */
	got = RUN("\x83\x09\x13\x7b\x2f\x06\x02\x06\x03");
	r = cfa_rsp(40);
	r.rbp = UNWIND_SAVE_CFA;
	r.rbp_off = 16;
	expect(&got, 0, START, r);
	ck_assert_uint_eq(odd_sum(&got), 0);
}
END_TEST

START_TEST(registers_lost_kept_or_moved)
{
	struct unwind_rule r = cfa_rsp(8);
	/* rbp undefined, rbx undefined */
	struct got got = RUN("\x07\x06\x07\x03");

	r.rbp = UNWIND_SAVE_UNDEF;
	r.rbx = UNWIND_SAVE_UNDEF;
	expect(&got, 0, START, r);
	/* rbp same value, then in r9; RA in rdx; rsp in r8: longjmp */
	got = RUN("\x08\x06\x09\x06\x09\x09\x10\x01\x09\x07\x08");
	r = (struct unwind_rule){ .cfa = UNWIND_CFA_REG, .cfa_reg = UNWIND_RSP, .cfa_off = 8,
				  .ra = UNWIND_SAVE_REG, .ra_reg = 1, .rbp = UNWIND_SAVE_REG,
				  .rbp_reg = 9, .rsp = UNWIND_SAVE_REG, .rsp_reg = 8 };
	expect(&got, 0, START, r);
	ck_assert_uint_eq(odd_sum(&got), 0);
}
END_TEST

START_TEST(undefined_return_address_is_the_root)
{
	struct got got = RUN("\x07\x10");
	const struct unwind_rule stop = { .cfa = UNWIND_CFA_STOP };

	expect(&got, 0, START, stop);
}
END_TEST

START_TEST(other_registers_and_args_size_change_nothing)
{
	/* r12 at CFA-24, xmm0 (17) at CFA-32, GNU_args_size 48, r13 undefined */
	struct got got = RUN("\x8c\x03\x05\x11\x04\x2e\x30\x07\x0d");

	expect(&got, 0, START, cfa_rsp(8));
	ck_assert_uint_eq(odd_sum(&got), 0);
}
END_TEST

START_TEST(drap)
{
	/* CFA = r10; then def_cfa_expression breg6 -8, deref; rbp: expression breg6 0;
	 * rbx: expression breg6 -16
	 */
	struct got got = RUN("\x41\x0c\x0a\x00"
			     "\x41\x0f\x03\x76\x78\x06\x10\x06\x02\x76\x00\x10\x03\x02\x76\x70");
	struct unwind_rule r = { .cfa = UNWIND_CFA_REG, .cfa_reg = 10, .ra = UNWIND_SAVE_CFA,
				 .ra_off = -8 };

	expect(&got, 1, START + 1, r);
	r = (struct unwind_rule){ .cfa = UNWIND_CFA_DEREF, .cfa_reg = UNWIND_RBP, .cfa_off = -8,
				  .ra = UNWIND_SAVE_CFA, .ra_off = -8, .rbp = UNWIND_SAVE_DEREF,
				  .rbp_reg = UNWIND_RBP, .rbx = UNWIND_SAVE_DEREF, .rbx_off = -16,
				  .rbx_reg = UNWIND_RBP };
	expect(&got, 2, START + 2, r);
}
END_TEST

START_TEST(sums_in_expressions)
{
	/* breg7 16, deref, plus_uconst 8 */
	struct got got = RUN("\x0f\x05\x77\x10\x06\x23\x08");
	struct unwind_rule r = cfa_rsp(16);

	r.cfa = UNWIND_CFA_DEREF;
	r.cfa_add = 8;
	expect(&got, 0, START, r);
	got = RUN("\x0f\x04\x77\x10\x38\x22");		/* breg7 16, lit8, plus */
	expect(&got, 0, START, cfa_rsp(24));
	got = RUN("\x0f\x05\x77\x10\x09\xfe\x1c");	/* breg7 16, const1s -2, minus */
	expect(&got, 0, START, cfa_rsp(18));
	got = RUN("\x0f\x04\x92\x07\x90\x01");		/* bregx 7 144 */
	expect(&got, 0, START, cfa_rsp(144));
	got = RUN("\x10\x06\x02\x48\x1c");		/* rbp: (CFA,) lit24, minus */
	r = cfa_rsp(8);
	r.rbp = UNWIND_SAVE_CFA;
	r.rbp_off = -24;
	expect(&got, 0, START, r);
}
END_TEST

START_TEST(plt)
{
	struct got got = RUN("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22");
	struct unwind_rule r = cfa_rsp(8);

	r.cfa = UNWIND_CFA_PLT;
	r.cfa_add = 11;
	expect(&got, 0, START, r);
	got = RUN("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x39\x2a\x33\x24\x22");	/* with IBT */
	r.cfa_add = 9;
	expect(&got, 0, START, r);
	/* another constant to shift by: not a PLT's */
	got = RUN("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x39\x2a\x34\x24\x22");
	expect_unknown(&got, 0, CFI_ODD_CFA_EXPRESSION);
}
END_TEST

START_TEST(expressions_that_can_not_be_expressed)
{
	static const struct {
		const char *insns;
		size_t len;
		enum cfi_odd why;
	} cases[] = {
		{ "\x0f\x06\x77\x08\x79\x00\x22\x06", 8, CFI_ODD_CFA_EXPRESSION },	/* two registers */
		{ "\x0f\x04\x77\x08\x06\x06", 6, CFI_ODD_CFA_EXPRESSION },	/* two derefs */
		{ "\x0f\x00", 2, CFI_ODD_CFA_EXPRESSION },			/* empty */
		{ "\x0f\x01\x22", 3, CFI_ODD_CFA_EXPRESSION },			/* underflow */
		{ "\x0f\x02\x92\x07", 4, CFI_ODD_CFA_EXPRESSION },		/* cut off */
		{ "\x16\x10\x02\x77\x08", 5, CFI_ODD_RA },	/* RA = rsp + 8 */
		{ "\x14\x10\x01", 3, CFI_ODD_RA },		/* RA = CFA - 8 */
		{ "\x08\x10", 2, CFI_ODD_RA },			/* RA unchanged */
		{ "\x87\x02", 2, CFI_ODD_RSP },			/* rsp saved */
		{ "\x14\x07\x01", 3, CFI_ODD_RSP },		/* rsp = CFA - 8 */
		{ "\x0c\x07\x80\x80\x80\x80\x08", 7, CFI_ODD_RANGE },	/* CFA = rsp + 2^31 */
		{ "\x0c\x12\x08", 3, CFI_ODD_CFA_EXPRESSION },	/* CFA by xmm1 */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct got got = run_cie(PLAIN, sizeof(PLAIN) - 1, cases[i].insns, cases[i].len);

		ck_assert_msg(got.rule[0].cfa == UNWIND_CFA_UNKNOWN, "case %zu", i);
		ck_assert_msg(got.stats.odd[cases[i].why] == 1, "case %zu", i);
	}
}
END_TEST

/* An expression is evaluated for each row: none may be long. */
START_TEST(long_expressions_are_not_looked_at)
{
	char insns[80] = "\x0f\x40\x77\x10";		/* breg7 16, then nops: 64 bytes */
	struct got got;

	memset(insns + 4, 0x96, sizeof(insns) - 4);
	got = run_cie(PLAIN, sizeof(PLAIN) - 1, insns, 66);
	expect(&got, 0, START, cfa_rsp(16));
	insns[1] = 0x41;
	got = run_cie(PLAIN, sizeof(PLAIN) - 1, insns, 67);
	expect_unknown(&got, 0, CFI_ODD_CFA_EXPRESSION);
}
END_TEST

START_TEST(what_is_kept_for_callers_may_get_lost_alone)
{
	/* val_offset rbp, val_expression rbx breg7 8: frames go on without them */
	struct got got = RUN("\x14\x06\x01\x16\x03\x02\x77\x08");
	struct unwind_rule r = cfa_rsp(8);

	r.rbp = UNWIND_SAVE_UNDEF;
	r.rbx = UNWIND_SAVE_UNDEF;
	expect(&got, 0, START, r);
	ck_assert_uint_eq(got.stats.odd[CFI_ODD_RBP], 1);
	ck_assert_uint_eq(got.stats.odd[CFI_ODD_RBX], 1);
}
END_TEST

START_TEST(spelled_out_defaults)
{
	/* rsp = CFA + 0 by val_offset; rbp in rbp; rbx by val_expression of itself */
	struct got got = RUN("\x14\x07\x00\x09\x06\x06\x16\x03\x02\x73\x00");

	expect(&got, 0, START, cfa_rsp(8));
	ck_assert_uint_eq(odd_sum(&got), 0);
}
END_TEST

/* CFA = *(rsp+160); rip, rbp, rbx by expression: a signal trampoline of glibc. */
#define GLIBC_SIGNAL "\x0f\x04\x77\xa0\x01\x06\x10\x10\x03\x77\xa8\x01" \
		     "\x10\x06\x03\x77\xf8\x00\x10\x03\x03\x77\x80\x01"

START_TEST(signal_frames)
{
	const struct unwind_rule by_expression = cfi__sigreturn_rule();
	struct got got = RUN(GLIBC_SIGNAL);

	ck_assert_int_eq(by_expression.cfa_off, 40);
	expect(&got, 0, START, by_expression);
	/* the same by offsets from CFA = rsp + 8: rip 160, rbp 112, rsp 152 of it */
	got = RUN_CIE("\x0c\x07\x08", "\x11\x10\x6c\x11\x06\x72\x11\x07\x6d");
	expect(&got, 0, START, by_expression);
	/* rbp elsewhere: no sigcontext; rsp can't be had */
	got = RUN_CIE("\x0c\x07\x08", "\x11\x10\x6c\x11\x06\x73\x11\x07\x6d");
	expect_unknown(&got, 0, CFI_ODD_RSP);
}
END_TEST

START_TEST(malformed_instructions)
{
	struct got got;

	got = RUN("\x41\x0e\x10\x41\x3f");	/* unknown */
	expect(&got, 1, START + 1, cfa_rsp(16));
	expect_unknown(&got, 2, CFI_ODD_OPCODE);
	got = RUN("\x41\x0e");			/* operand missing */
	expect_unknown(&got, got.nr - 1, CFI_ODD_OPCODE);
	got = RUN("\x04\x01\x00");		/* operand cut */
	expect_unknown(&got, 0, CFI_ODD_OPCODE);
	got = RUN("\x0f\x10\x77\x08");		/* block longer than what follows */
	expect_unknown(&got, 0, CFI_ODD_OPCODE);
	got = RUN("\x0f\x02\x77\x08\x0e\x10");	/* offset of a CFA that has none */
	expect_unknown(&got, 0, CFI_ODD_OPCODE);
	got = RUN("\x44\x01\x00\x00\x00\x00");	/* set_loc backwards */
	expect_unknown(&got, got.nr - 1, CFI_ODD_OPCODE);
	got = RUN_CIE("\x0c\x07\x08\x90\x01\x41", "");	/* advance in a CIE */
	expect_unknown(&got, got.nr - 1, CFI_ODD_CIE);
	got = RUN_CIE("\x0a\x0c\x07\x08\x90\x01", "");	/* remember in a CIE */
	expect_unknown(&got, 0, CFI_ODD_CIE);
	got = RUN_CIE("", "");			/* no CFA at all */
	expect_unknown(&got, 0, CFI_ODD_CFA_EXPRESSION);
}
END_TEST

START_TEST(a_range_is_clipped_to_what_is_asked)
{
	const struct cie cie = { .code_align = 1, .data_align = -8, .ra_reg = 16,
				 .insns = (const uint8_t *)PLAIN, .insns_len = 5 };
	const struct fde fde = { .start = START, .end = START + SIZE, .cie = &cie,
				 .insns = (const uint8_t *)"\x44\x0e\x10\x44\x0e\x18\x44\x0e\x20",
				 .insns_len = 9 };
	struct got got = { .nr = 0 };

	ck_assert_int_eq(cfi__run(&fde, START + 5, START + 10, collect, &got, &got.stats), 0);
	ck_assert_uint_eq(got.nr, 2);
	expect(&got, 0, START + 5, cfa_rsp(16));
	expect(&got, 1, START + 8, cfa_rsp(24));
	ck_assert_uint_eq(got.end[1], START + 10);
}
END_TEST

START_TEST(factors_of_the_cie)
{
	const struct cie cie = { .code_align = 4, .data_align = -4, .ra_reg = 16,
				 .insns = (const uint8_t *)"\x0c\x07\x08\x90\x02", .insns_len = 5 };
	const struct fde fde = { .start = START, .end = START + SIZE, .cie = &cie,
				 .insns = (const uint8_t *)"\x43\x0e\x10\x86\x04", .insns_len = 5 };
	struct unwind_rule r = cfa_rsp(16);
	struct got got = { .nr = 0 };

	r.rbp = UNWIND_SAVE_CFA;
	r.rbp_off = -16;
	ck_assert_int_eq(cfi__run(&fde, 0, UINT64_MAX, collect, &got, &got.stats), 0);
	expect(&got, 1, START + 12, r);
}
END_TEST

START_TEST(cies_that_can_not_be_used)
{
	struct cie cie = { .code_align = 1, .data_align = -8, .ra_reg = 16, .broken = true,
			   .insns = (const uint8_t *)PLAIN, .insns_len = 5 };
	const struct fde fde = { .start = START, .end = START + SIZE, .cie = &cie };
	struct got got = { .nr = 0 };

	ck_assert_int_eq(cfi__run(&fde, 0, UINT64_MAX, collect, &got, &got.stats), 0);
	expect_unknown(&got, 0, CFI_ODD_CIE);
	cie.broken = false;
	cie.ra_reg = 15;
	got.nr = 0;
	ck_assert_int_eq(cfi__run(&fde, 0, UINT64_MAX, collect, &got, &got.stats), 0);
	expect_unknown(&got, 0, CFI_ODD_CIE);
}
END_TEST

static int refuse(void *ctx, uint64_t start, uint64_t end, const struct unwind_rule *rule)
{
	(void)ctx, (void)start, (void)end, (void)rule;
	return -ENOSPC;
}

START_TEST(the_callers_error_comes_back)
{
	const struct cie cie = { .code_align = 1, .data_align = -8, .ra_reg = 16,
				 .insns = (const uint8_t *)PLAIN, .insns_len = 5 };
	const struct fde fde = { .start = START, .end = START + SIZE, .cie = &cie };
	struct cfi_stats stats = { 0 };

	ck_assert_int_eq(cfi__run(&fde, 0, UINT64_MAX, refuse, NULL, &stats), -ENOSPC);
}
END_TEST

UNIT_MAIN("cfi", no_instructions_leave_the_cie_rule, a_frame_is_set_up_and_torn_down,
	  every_way_to_advance, instructions_behind_the_end_do_nothing,
	  remember_and_restore_nest, restored_is_what_the_cie_says,
	  restore_without_remember_ends_what_is_known,
	  too_many_remembered_states_are_said_so, signed_and_extended_forms,
	  registers_lost_kept_or_moved, undefined_return_address_is_the_root,
	  other_registers_and_args_size_change_nothing, drap, sums_in_expressions, plt,
	  expressions_that_can_not_be_expressed, long_expressions_are_not_looked_at,
	  what_is_kept_for_callers_may_get_lost_alone,
	  spelled_out_defaults, signal_frames, malformed_instructions,
	  a_range_is_clipped_to_what_is_asked, factors_of_the_cie, cies_that_can_not_be_used,
	  the_callers_error_comes_back)
