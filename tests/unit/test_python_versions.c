// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where new code objects get their versions, in code put together by hand from the SDM's tables. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/python_versions.h"

#define VERSION 0x5c
#define VADDR 0x10000

#define TAIL 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90

/* In memory of exactly its size: what is read beyond is seen. */
static int decode(const uint8_t *code, size_t len, struct python_versions *out)
{
	uint8_t *copy = malloc(len ? len : 1);
	int err;

	memcpy(copy, code, len);
	memset(out, 0xee, sizeof(*out));
	err = python_versions__decode(copy, len, VADDR, VERSION, out);
	free(copy);
	return err;
}

static const uint8_t member[] = {
	0x41, 0x8b, 0x86, 0x68, 0x42, 0x00, 0x00,	/* mov 0x4268(%r14),%eax */
	0x89, 0x43, 0x5c,				/* mov %eax,0x5c(%rbx) */
	0x85, 0xc0, 0x74, 0x0a,				/* test %eax,%eax; je */
	0x83, 0xc0, 0x01,				/* add $1,%eax */
	0x41, 0x89, 0x86, 0x68, 0x42, 0x00, 0x00,	/* mov %eax,0x4268(%r14) */
	TAIL,
};

START_TEST(finds_a_member)
{
	struct python_versions v;

	ck_assert_int_eq(decode(member, sizeof(member), &v), 0);
	ck_assert(v.of_interpreter);
	ck_assert_uint_eq(v.at, 0x4268);
}
END_TEST

/* From here on %ecx is the version, in %r8's object; the stack pointer's and %r12's operands are longer. */
START_TEST(finds_a_member_of_other_registers)
{
	static const uint8_t code[] = {
		0x41, 0x8b, 0x8c, 0x24, 0x00, 0x10, 0x04, 0x00,	/* mov 0x41000(%r12),%ecx */
		0x41, 0x89, 0x48, 0x5c,				/* mov %ecx,0x5c(%r8) */
		0x83, 0xf9, 0x01, 0x83, 0xd9, 0xff,		/* cmp $1,%ecx; sbb $-1,%ecx */
		0x41, 0x89, 0x8c, 0x24, 0x00, 0x10, 0x04, 0x00,	/* mov %ecx,0x41000(%r12) */
		TAIL,
	};
	struct python_versions v;

	ck_assert_int_eq(decode(code, sizeof(code), &v), 0);
	ck_assert(v.of_interpreter);
	ck_assert_uint_eq(v.at, 0x41000);
}
END_TEST

/* What precedes the version's store ends with 0x48, which looks like its prefix. */
static const uint8_t by_pointer[] = {
	0x48, 0x8d, 0x15, 0x00, 0x20, 0x00, 0x00,	/* lea 0x2000(%rip),%rdx */
	0x44, 0x89, 0x53, 0x58,				/* mov %r10d,0x58(%rbx) */
	0x8b, 0x02,					/* mov (%rdx),%eax */
	0x0f, 0x11, 0x43, 0x48,				/* movups %xmm0,0x48(%rbx) */
	0x89, 0x43, 0x5c,				/* mov %eax,0x5c(%rbx) */
	0x85, 0xc0, 0x74, 0x05, 0x83, 0xc0, 0x01,
	0x89, 0x02,					/* mov %eax,(%rdx) */
	TAIL,
};

START_TEST(finds_a_variable_by_its_pointer)
{
	struct python_versions v;

	ck_assert_int_eq(decode(by_pointer, sizeof(by_pointer), &v), 0);
	ck_assert(!v.of_interpreter);
	ck_assert_uint_eq(v.at, VADDR + 7 + 0x2000);
}
END_TEST

START_TEST(finds_a_variable)
{
	static const uint8_t code[] = {
		0x8b, 0x05, 0xfa, 0xff, 0xff, 0xff,		/* mov -6(%rip),%eax: of this very place */
		0x89, 0x45, 0x5c,				/* mov %eax,0x5c(%rbp) */
		0x8d, 0x48, 0x01,				/* lea 1(%rax),%ecx */
		0x89, 0x0d, 0xee, 0xff, 0xff, 0xff,		/* mov %ecx,-18(%rip) */
		TAIL,
	};
	struct python_versions v;

	ck_assert_int_eq(decode(code, sizeof(code), &v), 0);
	ck_assert(!v.of_interpreter);
	ck_assert_uint_eq(v.at, VADDR);
}
END_TEST

/* One byte changed, so that it is no longer what is looked for. */
static const struct {
	const char *what;
	size_t at;
	uint8_t byte;
} spoilt[] = {
	{ "another member of the object", 9, 0x58 },
	{ "another register is stored", 8, 0x4b },
	{ "another place is stored to", 20, 0x64 },
	{ "another base is stored to", 19, 0x87 },
	{ "nothing is stored", 18, 0x8b },
	{ "an early member", 4, 0x00 },
};

START_TEST(is_not_taken_in)
{
	uint8_t code[sizeof(member)];
	struct python_versions v;

	memcpy(code, member, sizeof(code));
	if (spoilt[_i].byte == 0x00) {	/* in both, else it would be another place */
		code[3] = code[20] = 0x68;
		code[4] = code[21] = 0;
	} else {
		code[spoilt[_i].at] = spoilt[_i].byte;
	}
	ck_assert_msg(decode(code, sizeof(code), &v) == -ENOENT, "%s", spoilt[_i].what);
}
END_TEST

START_TEST(takes_one_place_only)
{
	uint8_t code[2 * sizeof(member)];
	struct python_versions v;

	memcpy(code, member, sizeof(member));
	memcpy(code + sizeof(member), member, sizeof(member));
	ck_assert_int_eq(decode(code, sizeof(code), &v), 0);
	ck_assert_uint_eq(v.at, 0x4268);
	code[sizeof(member) + 3] = code[sizeof(member) + 20] = 0x70;
	ck_assert_int_eq(decode(code, sizeof(code), &v), -ENOENT);
}
END_TEST

START_TEST(survives_every_cut)
{
	struct python_versions v;

	for (size_t from = 0; from < sizeof(by_pointer); from++)
		for (size_t len = 0; from + len <= sizeof(by_pointer); len++)
			if (decode(by_pointer + from, len, &v) == 0)
				ck_assert(from == 0 && len >= sizeof(by_pointer) - 16);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("python_versions");
	TCase *t = tcase_create("python_versions");
	SRunner *r;
	int failed;

	tcase_add_test(t, finds_a_member);
	tcase_add_test(t, finds_a_member_of_other_registers);
	tcase_add_test(t, finds_a_variable_by_its_pointer);
	tcase_add_test(t, finds_a_variable);
	tcase_add_loop_test(t, is_not_taken_in, 0, sizeof(spoilt) / sizeof(spoilt[0]));
	tcase_add_test(t, takes_one_place_only);
	tcase_add_test(t, survives_every_cut);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
