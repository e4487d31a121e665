// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Whether a probe can count an interpreter's frees: the first instruction, and what may hold a copy of
 * the function, in code put together by hand from the SDM's tables. And how many are too many.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/python_frees.h"
#include "tests/unit/elf_maker.h"
#include "unwind/python_frees.h"

#define VADDR 0x401000
#define FUNCTION 0x55b7b0

static const struct {
	const char *what;
	uint8_t code[8];
	size_t len;
	int push;
} entries[] = {
	{ "push %rbp", { 0x55, 0x48, 0x89, 0xe5 }, 4, 0 },
	{ "push %rax, the first", { 0x50 }, 1, 0 },
	{ "push %rdi, the last", { 0x57 }, 1, 0 },
	{ "push %r13", { 0x41, 0x55, 0x41, 0x54 }, 4, 0 },
	{ "endbr64; push %rbx", { 0xf3, 0x0f, 0x1e, 0xfa, 0x53 }, 5, 4 },
	{ "endbr64; push %r12", { 0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x54 }, 6, 4 },
	{ "endbr64 alone", { 0xf3, 0x0f, 0x1e, 0xfa }, 4, -1 },
	{ "endbr64 and half a push", { 0xf3, 0x0f, 0x1e, 0xfa, 0x41 }, 5, -1 },
	{ "endbr32; push %rbx", { 0xf3, 0x0f, 0x1e, 0xfb, 0x53 }, 5, -1 },
	{ "pop %rax", { 0x58 }, 1, -1 },
	{ "pop %r8", { 0x41, 0x58 }, 2, -1 },
	{ "a prefix that the kernel doesn't know before a push", { 0x48, 0x55 }, 2, -1 },
	{ "push 8(%rdi)", { 0xff, 0x77, 0x08 }, 3, -1 },
	{ "sub $8,%rsp", { 0x48, 0x83, 0xec, 0x08 }, 4, -1 },
	{ "an optimised probe's call", { 0xe8, 0x00, 0x00, 0x00, 0x00 }, 5, -1 },
	{ "another's breakpoint", { 0xcc, 0x54 }, 2, -1 },
	{ "nothing", { 0 }, 0, -1 },
};

START_TEST(begins)
{
	uint8_t *copy = malloc(entries[_i].len ? entries[_i].len : 1);

	memcpy(copy, entries[_i].code, entries[_i].len);
	ck_assert_msg(python_frees__push(copy, entries[_i].len) == entries[_i].push, "%s", entries[_i].what);
	free(copy);
}
END_TEST

/* Little-endian, relative to the end of an instruction whose operand is at `at`. */
static void put_relative(uint8_t *code, size_t at, uint64_t target)
{
	uint32_t value = (uint32_t)(target - (VADDR + at + 4));

	memcpy(code + at, &value, sizeof(value));
}

/* 0xee: four bytes for the operand. */
static const struct {
	const char *what;
	uint8_t code[12];
	bool relative;		/* the operand; else the address itself */
	bool taken, taken_absolute;
} pieces[] = {
	{ "lea FUNCTION(%rip),%rcx", { 0x48, 0x8d, 0x0d, 0xee }, true, true, true },
	{ "lea FUNCTION(%rip),%r9", { 0x4c, 0x8d, 0x0d, 0xee }, true, true, true },
	{ "lea of something, relative to %rax", { 0x48, 0x8d, 0x80, 0xee }, true, false, false },
	{ "call FUNCTION", { 0x90, 0x90, 0xe8, 0xee }, true, false, false },
	{ "jmp FUNCTION", { 0x90, 0x90, 0xe9, 0xee }, true, false, false },
	{ "jne FUNCTION", { 0x90, 0x0f, 0x85, 0xee }, true, false, false },
	{ "cmp $FUNCTION,%rax", { 0x90, 0x48, 0x3d, 0xee }, false, false, true },
	{ "cmpq $FUNCTION,0x30(%rdx)", { 0x48, 0x81, 0x7a, 0x30, 0xee }, false, false, true },
	{ "mov $FUNCTION,%ecx", { 0x90, 0xb9, 0xee }, false, false, true },
	{ "movabs $FUNCTION,%rax", { 0x48, 0xb8, 0xee }, false, false, true },
};

START_TEST(takes_the_address)
{
	uint8_t code[sizeof(pieces[0].code)];
	const uint32_t address = FUNCTION;
	size_t at;

	memcpy(code, pieces[_i].code, sizeof(code));
	at = (size_t)((uint8_t *)memchr(code, 0xee, sizeof(code)) - code);
	if (pieces[_i].relative)
		put_relative(code, at, FUNCTION);
	else
		memcpy(code + at, &address, sizeof(address));
	ck_assert_msg(python_frees__takes(code, sizeof(code), VADDR, FUNCTION, false) == pieces[_i].taken,
		      "%s", pieces[_i].what);
	ck_assert_msg(python_frees__takes(code, sizeof(code), VADDR, FUNCTION, true) ==
		      pieces[_i].taken_absolute, "%s, in a program that can't be moved", pieces[_i].what);
	/* Of another function, and where a byte of the operand is missing. */
	ck_assert(!python_frees__takes(code, sizeof(code), VADDR, FUNCTION + 16, true));
	for (size_t len = 0; len < at + 4; len++) {
		uint8_t *copy = malloc(len ? len : 1);

		memcpy(copy, code, len);
		ck_assert(!python_frees__takes(copy, len, VADDR, FUNCTION, true));
		free(copy);
	}
}
END_TEST

/* A file with the function in one segment, and perhaps the address of it in another. */
static int find(uint64_t vaddr, const void *entry, const void *elsewhere, size_t len, unsigned int *behind)
{
	struct maker m = { .vaddr = vaddr, .text2_shift = 0x33000 };
	struct elf_view *view;
	int err;

	maker__build(&m);
	memset(m.image + MAKER_TEXT, 0x90, 0x6000);
	memset(m.image + MAKER_TEXT2, 0x90, 0x2000);
	memcpy(m.image + 0x1500, entry, 8);
	memcpy(m.image + 0x7123, elsewhere, len);
	ck_assert_int_eq(elf_view__open_memory(&view, m.image, sizeof(m.image)), 0);
	*behind = 99;
	err = python_frees__find(view, maker__code(&m, 0x1500), behind);
	elf_view__free(view);
	return err;
}

START_TEST(looks_through_a_file)
{
	static const uint8_t push[8] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x55 }, none[8] = { 0x48, 0x83, 0xec, 0x08 };
	/* 0x7123 + 7 is 0x33000 behind its place in the file: lea, and a call, to 0x1500 */
	uint8_t lea[] = { 0x48, 0x8d, 0x05, 0, 0, 0, 0 }, call[] = { 0x90, 0x90, 0xe8, 0, 0, 0, 0 };
	const int32_t away = 0x1500 - (0x7123 + 7 + 0x33000);
	const uint32_t address = 0x401500;
	uint8_t cmp[] = { 0x48, 0x3d, 0, 0, 0, 0 };
	unsigned int behind;

	memcpy(lea + 3, &away, sizeof(away));
	memcpy(call + 3, &away, sizeof(away));
	memcpy(cmp + 2, &address, sizeof(address));
	ck_assert_int_eq(find(0, push, none, 1, &behind), 0);
	ck_assert_uint_eq(behind, 4);
	ck_assert_int_eq(find(0, push, call, sizeof(call), &behind), 0);
	ck_assert_int_eq(find(0, push, lea, sizeof(lea), &behind), -EEXIST);
	ck_assert_int_eq(find(0, none, call, sizeof(call), &behind), -ENOENT);
	ck_assert_int_eq(find(0x400000, push, cmp, sizeof(cmp), &behind), -EEXIST);
	ck_assert_int_eq(find(0x500000, push, cmp, sizeof(cmp), &behind), 0);
}
END_TEST

/* Seconds with so many frees each; the last is too many, or none is. */
static const struct {
	uint64_t n[12];
	unsigned int at;	/* second in which it is, from 1; 0: never */
} courses[] = {
	{ { 300, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300 }, 0 },
	{ { 301, 301, 301, 301, 301, 301, 301, 301, 301, 301 }, 10 },
	{ { 301, 301, 301, 301, 301, 300, 301, 301, 301, 301, 301, 301 }, 0 },
	{ { 0, 301, 301, 301, 301, 301, 301, 301, 301, 301, 301 }, 11 },
	{ { 30000, 300, 30000, 0, 30000 }, 0 },
	{ { 20000, 10000, 301 }, 3 },
	{ { 30001 }, 1 },
};

START_TEST(counts_too_many)
{
	struct python_frees_rate rate = { .nr = 1ull << 33 };
	uint64_t nr = rate.nr;

	for (unsigned int i = 0; i < 12; i++) {
		bool within = python_frees__too_many(&rate, nr + courses[_i].n[i], false), over;

		nr += courses[_i].n[i];
		over = within || python_frees__too_many(&rate, nr, true);
		ck_assert_msg(over == (i + 1 == courses[_i].at), "course %d, second %u", _i, i + 1);
		if (over)
			return;
	}
}
END_TEST

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

int main(void)
{
	Suite *s = suite_create("python_frees");
	TCase *t = tcase_create("python_frees");
	SRunner *r;
	int failed;

	tcase_add_loop_test(t, begins, 0, COUNT(entries));
	tcase_add_loop_test(t, takes_the_address, 0, COUNT(pieces));
	tcase_add_test(t, looks_through_a_file);
	tcase_add_loop_test(t, counts_too_many, 0, COUNT(courses));
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
