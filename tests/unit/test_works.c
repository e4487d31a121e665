// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdio.h>
#include <string.h>

#include "loader/works.h"
#include "tests/unit/unit.h"

static uint32_t add(struct works *w, const char *text)
{
	return works__add(w, text, strlen(text));
}

START_TEST(each_name_once)
{
	struct works *w = works__new();
	uint32_t a = add(w, "gemm"), b = add(w, "gemm_1"), c = add(w, "gem");

	ck_assert(a && b && c && a != b && b != c && a != c);
	ck_assert_uint_eq(add(w, "gemm"), a);
	ck_assert_str_eq(works__get(w, a), "gemm");
	ck_assert_str_eq(works__get(w, b), "gemm_1");
	ck_assert_str_eq(works__get(w, c), "gem");
	works__free(w);
}
END_TEST

/* A part of a longer text, as it lies in a channel. */
START_TEST(length_and_end)
{
	struct works *w = works__new();
	uint32_t id = works__add(w, "kernel<float>garbage", 13);

	ck_assert_str_eq(works__get(w, id), "kernel<float>");
	ck_assert_uint_eq(add(w, "kernel<float>"), id);
	/* From a 0 on it is cut. */
	ck_assert_uint_eq(works__add(w, "kernel<float>\0more", 18), id);
	/* No 0 at its end: only so many bytes may be looked at. */
	ck_assert_str_eq(works__get(w, works__add(w, (const char[]){ 'a', 'b' }, 2)), "ab");
	works__free(w);
}
END_TEST

START_TEST(empty_and_unknown)
{
	struct works *w = works__new();
	uint32_t id = works__add(w, "", 0);

	ck_assert_uint_ne(id, 0);
	ck_assert_uint_eq(works__add(w, "\0x", 2), id);
	ck_assert_str_eq(works__get(w, id), "");
	ck_assert_str_eq(works__get(w, 0), "");
	ck_assert_str_eq(works__get(w, id + 1), "");
	ck_assert_str_eq(works__get(w, UINT32_MAX), "");
	works__free(w);
	works__free(NULL);
}
END_TEST

START_TEST(many_and_long)
{
	struct works *w = works__new();
	static char text[65536];

	memset(text, 'x', sizeof(text));
	for (int i = 0; i < 5000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "kernel_%d", i);
		ck_assert_uint_eq(add(w, name), (uint32_t)i + 1);
	}
	ck_assert_uint_eq(works__add(w, text, sizeof(text)), 5001);
	ck_assert_uint_eq(strlen(works__get(w, 5001)), sizeof(text));
	ck_assert_str_eq(works__get(w, 1234), "kernel_1233");
	works__free(w);
}
END_TEST

START_TEST(sizes_are_kept_whole_or_not_at_all)
{
	uint32_t sizes = works__sizes(168, 49152);

	ck_assert_uint_eq(works__registers(sizes), 168);
	ck_assert_uint_eq(works__shared_bytes(sizes), 49152);
	sizes = works__sizes(WORKS_MAX_REGISTERS, WORKS_MAX_SHARED);
	ck_assert_uint_eq(works__registers(sizes), WORKS_MAX_REGISTERS);
	ck_assert_uint_eq(works__shared_bytes(sizes), WORKS_MAX_SHARED);
	ck_assert_uint_ne(works__sizes(1, 0), 0);
	ck_assert_uint_eq(works__sizes(0, 1024), 0);
	ck_assert_uint_eq(works__sizes(WORKS_MAX_REGISTERS + 1, 0), 0);
	ck_assert_uint_eq(works__sizes(8, WORKS_MAX_SHARED + 1), 0);
	ck_assert_uint_eq(works__sizes(UINT32_MAX, UINT32_MAX), 0);
}
END_TEST

UNIT_MAIN("works", each_name_once, length_and_end, empty_and_unknown, many_and_long,
	  sizes_are_kept_whole_or_not_at_all)
