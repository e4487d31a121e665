// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Walks over made-up stacks: which words come out, and why each walk ends. */
#include <stdio.h>

#include "tests/unit/elf_maker.h"
#include "tests/unit/unit.h"
#include "unwind/file.h"
#include "unwind/rows.h"
#include "unwind/stack.h"

#define BASE 0x7f0000000000ull	/* where offset 0 of the file is mapped */
#define STACK 0x7ffd00001000ull
#define JIT 0x300000ull
#define FILE_ID 5
#define OTHER_ID 6

/* Offsets of the file's functions; see setup(). */
#define SMALL 0x1100		/* CFA = rsp + 8 */
#define FRAME 0x1200		/* CFA = rsp + 32, rbp at CFA - 16 */
#define NOT_LAST 0x1240		/* directly behind FRAME: another frame size */
#define BY_RBP 0x1300		/* CFA = rbp + 16, rbp at CFA - 16 */
#define BY_RBX 0x1400		/* CFA = rbx + 16 */
#define SAVES_RBX 0x1500	/* CFA = rsp + 24, rbx at CFA - 16 */
#define DEREF 0x1600		/* CFA = *(rbp - 8) */
#define IN_RDI 0x1700		/* CFA = rsp, return address in rdi */
#define LOSES_RBP 0x1800	/* CFA = rsp + 8, rbp undefined */
#define ROOT 0x1900
#define ODD 0x1a00		/* a CFA that can't be expressed */
#define TRAMPOLINE 0x2000	/* rt_sigreturn, without unwind information */
#define NO_INFO 0x3000

static struct unwind_rule rules[256];
static struct unwind_row rows[8192];
static struct maker m;
static struct unwind_file *file;
static struct unwind_store *store;

static __u64 regs[16];
static __u64 stack[4096];
static struct mapping maps[3];
static struct unwind_stack_input in;
static __u64 words[GPUCOLLECT_MAX_FRAMES];

static struct unwind_file *file_of(void *ctx, uint32_t id)
{
	ck_assert_ptr_eq(ctx, &in);
	return id == FILE_ID ? file : NULL;
}

static void add_function(uint64_t start, uint64_t len, const char *insns, size_t insns_len)
{
	m.fdes[m.nr_fdes++] = (struct maker_fde){ start, len, insns, insns_len, false };
}
#define FUNCTION(start, len, insns) add_function(start, len, insns, sizeof(insns) - 1)

static void setup(void)
{
	const struct unwind_store_config config = {
		.rules = rules, .rows = rows, .max_rules = 256, .max_rows = 8192,
		.max_pages = 64,
	};

	unwind_store__free(store);
	unwind_file__free(file);
	memset(&m, 0, sizeof(m));
	FUNCTION(SMALL, 0x20, "");
	FUNCTION(FRAME, 0x40, "\x0e\x20\x86\x02");
	FUNCTION(NOT_LAST, 0x20, "\x0e\x80\x08");
	FUNCTION(BY_RBP, 0x20, "\x0c\x06\x10\x86\x02");
	FUNCTION(BY_RBX, 0x20, "\x0c\x03\x10");
	FUNCTION(SAVES_RBX, 0x20, "\x0e\x18\x83\x02");
	FUNCTION(DEREF, 0x20, "\x0f\x03\x76\x78\x06\x10\x06\x02\x76\x00");
	FUNCTION(IN_RDI, 0x20, "\x0e\x00\x09\x10\x05");
	FUNCTION(LOSES_RBP, 0x20, "\x07\x06");
	FUNCTION(ROOT, 0x20, "\x07\x10");
	FUNCTION(ODD, 0x20, "\x0f\x04\x77\x08\x06\x06");
	memcpy(m.image + TRAMPOLINE, "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9);
	maker__build(&m);
	ck_assert_int_eq(unwind_file__open_memory(&file, m.image, sizeof(m.image)), 0);
	ck_assert_int_eq(unwind_store__new(&store, &config), 0);
	maps[0] = (struct mapping){ JIT, JIT + 0x1000, 0, 0, MAPPING_ANON };
	maps[1] = (struct mapping){ BASE + 0x1000, BASE + 0x7000, 0x1000, FILE_ID, MAPPING_FILE };
	maps[2] = (struct mapping){ BASE + 0x8000, BASE + 0x9000, 0, OTHER_ID, MAPPING_FILE };
	regs[UNWIND_RSP] = STACK;
	in = (struct unwind_stack_input){
		.regs = regs, .start = STACK, .stack = stack, .len = sizeof(stack),
		.mappings = maps, .nr_mappings = 3, .file = file_of, .ctx = &in,
	};
}

static size_t walk_from(uint64_t offset)
{
	if (!store)
		setup();
	in.pc = BASE + offset;
	memset(words, 0xff, sizeof(words));
	return unwind_stack__walk(store, &in, words, GPUCOLLECT_MAX_FRAMES);
}

static __u64 in_file(uint64_t offset)
{
	return 1ull << 60 | (__u64)FILE_ID << 36 | offset;	/* FRAME_FILE */
}

static __u64 guess_in_file(uint64_t offset)
{
	return 2ull << 60 | (__u64)FILE_ID << 36 | offset;	/* FRAME_FILE_GUESS */
}

static __u64 end(unsigned int why, unsigned int id)
{
	return 6ull << 60 | (__u64)why << 52 | id;		/* FRAME_END */
}

#define EXPECT(n, ...) do { \
	const __u64 want_[] = { __VA_ARGS__ }; \
	ck_assert_uint_eq(n, sizeof(want_) / sizeof(want_[0])); \
	for (size_t i_ = 0; i_ < sizeof(want_) / sizeof(want_[0]); i_++) \
		ck_assert_msg(words[i_] == want_[i_], "word %zu: %llx, not %llx", i_, \
			      (unsigned long long)words[i_], (unsigned long long)want_[i_]); \
} while (0)

START_TEST(callers_are_looked_up_before_their_return_address)
{
	size_t n;

	/* SMALL called from the last instruction of FRAME: the return address is NOT_LAST's */
	stack[0] = BASE + NOT_LAST;
	stack[4] = BASE + SMALL + 1;	/* FRAME's frame is 32 bytes: its own, above SMALL's 8 */
	stack[5] = BASE + ROOT + 16;
	n = walk_from(SMALL);
	EXPECT(n, in_file(SMALL), in_file(NOT_LAST - 1), in_file(SMALL), in_file(ROOT + 15),
	       end(END_ROOT, 0));
}
END_TEST

START_TEST(behind_a_syscall_the_byte_before_is_looked_up)
{
	size_t n;

	setup();
	in.in_syscall = true;
	stack[3] = BASE + ROOT + 16;
	n = walk_from(NOT_LAST);	/* the syscall was FRAME's last instruction */
	EXPECT(n, in_file(NOT_LAST - 1), in_file(ROOT + 15), end(END_ROOT, 0));
}
END_TEST

START_TEST(by_frame_pointer)
{
	size_t n;

	regs[UNWIND_RBP] = STACK + 0x100;
	stack[0x100 / 8] = STACK + 0x200;
	stack[0x108 / 8] = BASE + BY_RBP + 8;
	stack[0x200 / 8] = 1;
	stack[0x208 / 8] = BASE + ROOT + 1;
	n = walk_from(BY_RBP);
	EXPECT(n, in_file(BY_RBP), in_file(BY_RBP + 7), in_file(ROOT), end(END_ROOT, 0));
}
END_TEST

START_TEST(rbx_is_fetched_where_it_was_saved)
{
	size_t n;

	/* SAVES_RBX is the leaf, SMALL leaves rbx alone, BY_RBX needs it */
	stack[1] = STACK + 0x300;		/* rbx at CFA - 16 = STACK + 8 */
	stack[2] = BASE + SMALL + 5;
	stack[3] = BASE + BY_RBX + 5;
	stack[0x308 / 8] = BASE + ROOT + 1;	/* CFA = rbx + 16 */
	n = walk_from(SAVES_RBX);
	EXPECT(n, in_file(SAVES_RBX), in_file(SMALL + 4), in_file(BY_RBX + 4), in_file(ROOT),
	       end(END_ROOT, 0));
	/* nobody saved it: the register itself */
	regs[UNWIND_RBX] = STACK + 0x300;
	stack[0] = BASE + BY_RBX + 5;
	n = walk_from(SMALL);
	EXPECT(n, in_file(SMALL), in_file(BY_RBX + 4), in_file(ROOT), end(END_ROOT, 0));
}
END_TEST

START_TEST(realigned)
{
	size_t n;

	regs[UNWIND_RBP] = STACK + 0x100;
	stack[0xf8 / 8] = STACK + 0x400;	/* the CFA, at rbp - 8 */
	stack[0x100 / 8] = STACK + 0x500;	/* the caller's rbp, at rbp */
	stack[0x3f8 / 8] = BASE + BY_RBP + 1;
	stack[0x508 / 8] = BASE + ROOT + 1;
	n = walk_from(DEREF);
	EXPECT(n, in_file(DEREF), in_file(BY_RBP), in_file(ROOT), end(END_ROOT, 0));
}
END_TEST

START_TEST(return_address_in_a_register)
{
	size_t n;

	regs[5] = BASE + SMALL + 1;		/* rdi; the stack pointer does not move */
	stack[0] = BASE + ROOT + 1;
	n = walk_from(IN_RDI);
	EXPECT(n, in_file(IN_RDI), in_file(SMALL), in_file(ROOT), end(END_ROOT, 0));
	/* not known further out, where registers other than rsp, rbp and rbx are gone */
	stack[0] = BASE + IN_RDI + 1;
	n = walk_from(SMALL);
	EXPECT(n, in_file(SMALL), in_file(IN_RDI), end(END_NO_RULE, FILE_ID));
}
END_TEST

/* struct ucontext_64: registers from 40 on, in the order of struct sigcontext_64. */
static void put_ucontext(size_t at, __u64 pc, __u64 sp, __u64 rbp, __u64 rdi)
{
	stack[at + 5 + 8] = rdi;
	stack[at + 5 + 10] = rbp;
	stack[at + 5 + 15] = sp;
	stack[at + 5 + 16] = pc;
}

START_TEST(what_a_signal_interrupted_is_exact)
{
	size_t n;

	/* SMALL as the handler; the first instruction of IN_RDI was interrupted */
	stack[0] = BASE + TRAMPOLINE;
	put_ucontext(1, BASE + IN_RDI, STACK + 0x800, 0, BASE + SMALL + 1);
	stack[0x800 / 8] = BASE + ROOT + 1;
	n = walk_from(SMALL);
	EXPECT(n, in_file(SMALL), in_file(TRAMPOLINE - 1), in_file(IN_RDI), in_file(SMALL),
	       in_file(ROOT), end(END_ROOT, 0));
}
END_TEST

START_TEST(a_signal_may_lead_down_or_away)
{
	size_t n;

	/* down: the handler ran above the interrupted stack */
	setup();
	regs[UNWIND_RSP] = STACK + 0x800;
	stack[0x800 / 8] = BASE + TRAMPOLINE;
	put_ucontext(0x808 / 8, BASE + SMALL, STACK + 0x10, 0, 0);
	stack[2] = BASE + ROOT + 1;
	n = walk_from(SMALL);
	EXPECT(n, in_file(SMALL), in_file(TRAMPOLINE - 1), in_file(SMALL), in_file(ROOT),
	       end(END_ROOT, 0));
	/* away: to a stack that was not copied */
	put_ucontext(0x808 / 8, BASE + SMALL, STACK - 0x100000, 0, 0);
	n = walk_from(SMALL);
	EXPECT(n, in_file(SMALL), in_file(TRAMPOLINE - 1), in_file(SMALL),
	       end(END_UNREADABLE, 0));
}
END_TEST

START_TEST(a_copy_that_is_too_short)
{
	size_t n;

	setup();
	stack[0] = BASE + FRAME + 1;
	stack[4] = BASE + ROOT + 1;
	in.len = 32;		/* FRAME's return address is in bytes 32 to 39 */
	n = walk_from(SMALL);
	EXPECT(n, in_file(SMALL), in_file(FRAME), end(END_TRUNCATED, 0));
	in.len = 40;
	n = walk_from(SMALL);
	EXPECT(n, in_file(SMALL), in_file(FRAME), in_file(ROOT), end(END_ROOT, 0));
	in.len = 0;
	n = walk_from(SMALL);
	EXPECT(n, in_file(SMALL), end(END_UNREADABLE, 0));
}
END_TEST

START_TEST(more_frames_than_words)
{
	size_t n;

	for (int i = 0; i < 4096; i++)
		stack[i] = BASE + SMALL + 1;
	n = walk_from(SMALL);
	ck_assert_uint_eq(n, GPUCOLLECT_MAX_FRAMES);
	ck_assert_uint_eq(words[n - 1], end(END_TRUNCATED, 0));
	ck_assert_uint_eq(words[n - 2], in_file(SMALL));
	/* exactly as many as there is room for is not too many */
	stack[2] = BASE + ROOT + 1;
	memset(words, 0, sizeof(words));
	n = unwind_stack__walk(store, &in, words, 5);
	EXPECT(n, in_file(SMALL), in_file(SMALL), in_file(SMALL), in_file(ROOT),
	       end(END_ROOT, 0));
	n = unwind_stack__walk(store, &in, words, 4);
	EXPECT(n, in_file(SMALL), in_file(SMALL), in_file(SMALL), end(END_TRUNCATED, 0));
	n = unwind_stack__walk(store, &in, words, 1);
	EXPECT(n, end(END_TRUNCATED, 0));
}
END_TEST

START_TEST(no_code)
{
	size_t n;

	stack[0] = 0x1234;
	n = walk_from(SMALL);
	EXPECT(n, in_file(SMALL), end(END_NOT_CODE, 0));
	n = walk_from(0x7000);		/* not mapped */
	EXPECT(n, end(END_NOT_CODE, 0));
	stack[0] = BASE + 0x7000;	/* a call at the very end of a mapping returns behind it */
	n = walk_from(SMALL);
	EXPECT(n, in_file(SMALL), in_file(0x6fff), end(END_NO_INFO, FILE_ID));
	stack[0] = 0;			/* how outermost frames without information are marked */
	n = walk_from(SMALL);
	EXPECT(n, in_file(SMALL), end(END_ROOT, 0));
	setup();
	in.nr_mappings = 0;
	n = walk_from(SMALL);
	EXPECT(n, end(END_NOT_CODE, 0));
}
END_TEST

START_TEST(a_guess_is_marked_and_must_lead_to_code)
{
	size_t n;

	regs[UNWIND_RBP] = STACK + 0x100;
	stack[0x100 / 8] = STACK + 0x200;
	stack[0x108 / 8] = BASE + SMALL + 1;
	stack[0x110 / 8] = BASE + ROOT + 1;
	n = walk_from(NO_INFO);
	EXPECT(n, in_file(NO_INFO), guess_in_file(SMALL), in_file(ROOT), end(END_ROOT, 0));
	stack[0x108 / 8] = 0x1234;
	n = walk_from(NO_INFO);
	EXPECT(n, in_file(NO_INFO), end(END_NO_INFO, FILE_ID));
	stack[0x108 / 8] = 0;
	n = walk_from(NO_INFO);
	EXPECT(n, in_file(NO_INFO), end(END_NO_INFO, FILE_ID));
	stack[0x108 / 8] = BASE + SMALL + 1;
	regs[UNWIND_RBP] = STACK - 8;		/* below the stack pointer */
	n = walk_from(NO_INFO);
	EXPECT(n, in_file(NO_INFO), end(END_NO_INFO, FILE_ID));
	regs[UNWIND_RBP] = STACK + 0x101;	/* not aligned */
	n = walk_from(NO_INFO);
	EXPECT(n, in_file(NO_INFO), end(END_NO_INFO, FILE_ID));
	regs[UNWIND_RBP] = STACK + sizeof(stack);	/* outside the copy */
	n = walk_from(NO_INFO);
	EXPECT(n, in_file(NO_INFO), end(END_NO_INFO, FILE_ID));
	stack[0] = BASE + NO_INFO + 1;		/* the frame pointer got lost on the way */
	regs[UNWIND_RBP] = STACK + 0x100;
	n = walk_from(LOSES_RBP);
	EXPECT(n, in_file(LOSES_RBP), in_file(NO_INFO), end(END_NO_INFO, FILE_ID));
}
END_TEST

START_TEST(code_without_a_file)
{
	size_t n;

	setup();
	regs[UNWIND_RBP] = STACK + 0x100;
	stack[0] = JIT + 0x10;
	stack[0x108 / 8] = JIT + 0x20;
	stack[0x100 / 8] = STACK + 0x200;
	stack[0x208 / 8] = BASE + ROOT + 1;
	stack[0x200 / 8] = 0;
	n = walk_from(SMALL);
	EXPECT(n, in_file(SMALL), 3ull << 60 | (JIT + 0xf), 4ull << 60 | (JIT + 0x1f),
	       guess_in_file(ROOT), end(END_ROOT, 0));
	regs[UNWIND_RBP] = 0;
	n = walk_from(SMALL);
	EXPECT(n, in_file(SMALL), 3ull << 60 | (JIT + 0xf), end(END_ANON, 0));
	/* a file that can't be opened */
	stack[0] = BASE + 0x8010;
	n = walk_from(SMALL);
	EXPECT(n, in_file(SMALL), 1ull << 60 | (__u64)OTHER_ID << 36 | 0xf,
	       end(END_NO_INFO, OTHER_ID));
}
END_TEST

START_TEST(rules_that_lead_nowhere)
{
	size_t n;

	n = walk_from(ODD);
	EXPECT(n, in_file(ODD), end(END_NO_RULE, FILE_ID));
	/* CFA below the stack pointer */
	regs[UNWIND_RBP] = STACK - 0x100;
	n = walk_from(BY_RBP);
	EXPECT(n, in_file(BY_RBP), end(END_UNREADABLE, 0));
	in.start = STACK - 0x800;
	regs[UNWIND_RBP] = STACK - 0x800;
	stack[1] = BASE + SMALL + 1;
	n = walk_from(BY_RBP);
	EXPECT(n, in_file(BY_RBP), end(END_NO_PROGRESS, 0));
	/* returns to itself without moving */
	regs[5] = BASE + IN_RDI;
	n = walk_from(IN_RDI);
	EXPECT(n, in_file(IN_RDI), end(END_NO_PROGRESS, 0));
}
END_TEST

/* What a walk in the kernel leaves to be done: it is at a caller, with few registers. */
START_TEST(a_walk_that_goes_on)
{
	size_t n;

	setup();
	in.later = true;
	regs[UNWIND_RBX] = STACK + 0x300;
	stack[0x308 / 8] = BASE + ROOT + 1;
	n = walk_from(BY_RBX + 5);
	EXPECT(n, in_file(BY_RBX + 4), in_file(ROOT), end(END_ROOT, 0));
	in.lost_rbx = true;
	n = walk_from(BY_RBX + 5);
	EXPECT(n, in_file(BY_RBX + 4), end(END_NO_RULE, FILE_ID));
	regs[5] = BASE + ROOT + 1;
	n = walk_from(IN_RDI + 1);
	EXPECT(n, in_file(IN_RDI), end(END_NO_RULE, FILE_ID));
	/* interrupted by a signal: exact, with all registers; and found by a guess */
	in.full = true;
	in.exact = true;
	in.guess = true;
	n = walk_from(IN_RDI);
	EXPECT(n, guess_in_file(IN_RDI), in_file(ROOT), end(END_ROOT, 0));
	in.full = false;
	in.lost_rbp = true;
	n = walk_from(BY_RBP);
	EXPECT(n, guess_in_file(BY_RBP), end(END_NO_RULE, FILE_ID));
}
END_TEST

START_TEST(pages_that_were_not_copied)
{
	__u64 holes[1] = { 1 << 1 };	/* the second chunk, bytes 4096 to 8191 */
	size_t n;

	setup();
	in.holes = holes;
	regs[UNWIND_RBP] = STACK + RAW_CHUNK - 16;	/* the last words before it */
	stack[RAW_CHUNK / 8 - 2] = STACK + 2 * RAW_CHUNK;
	stack[RAW_CHUNK / 8 - 1] = BASE + BY_RBP + 1;
	stack[2 * RAW_CHUNK / 8] = STACK + RAW_CHUNK;	/* the first behind it */
	stack[2 * RAW_CHUNK / 8 + 1] = BASE + ROOT + 1;
	n = walk_from(BY_RBP);
	EXPECT(n, in_file(BY_RBP), in_file(BY_RBP), in_file(ROOT), end(END_ROOT, 0));
	stack[RAW_CHUNK / 8 - 2] = STACK + 2 * RAW_CHUNK - 16;
	n = walk_from(BY_RBP);
	ck_assert_uint_eq(FRAME_END_WHY(words[n - 1]), END_TRUNCATED);
	ck_assert_uint_eq(n, 3);
}
END_TEST

/* A frame of the kernel's own, called from the probed instruction: not shown, but passed. */
START_TEST(in_the_trampoline_of_a_probe)
{
	static const unsigned int pushed[18] = {
		0, 1, 1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 2, 2, 1, 0,
	};
	size_t n;

	setup();
	maps[0].kind = MAPPING_TRAMPOLINE;
	for (unsigned int at = 0; at < 18; at++) {
		memset(stack, 0, sizeof(stack));
		stack[pushed[at]] = BASE + SMALL + 5;
		stack[pushed[at] + 1] = BASE + ROOT + 1;
		in.pc = JIT + at;
		n = unwind_stack__walk(store, &in, words, GPUCOLLECT_MAX_FRAMES);
		EXPECT(n, in_file(SMALL + 4), in_file(ROOT), end(END_ROOT, 0));
	}
}
END_TEST

UNIT_MAIN("unwind_stack", callers_are_looked_up_before_their_return_address,
	  behind_a_syscall_the_byte_before_is_looked_up, by_frame_pointer,
	  rbx_is_fetched_where_it_was_saved, realigned, return_address_in_a_register,
	  what_a_signal_interrupted_is_exact, a_signal_may_lead_down_or_away,
	  a_copy_that_is_too_short, more_frames_than_words, no_code,
	  a_guess_is_marked_and_must_lead_to_code, code_without_a_file, rules_that_lead_nowhere,
	  a_walk_that_goes_on, pages_that_were_not_copied, in_the_trampoline_of_a_probe)
