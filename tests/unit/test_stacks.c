// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>

#include "loader/stacks.h"
#include "tests/unit/refuse.h"
#include "tests/unit/unit.h"

START_TEST(equal_words_are_one_stack)
{
	const uint64_t a[] = { 1, 2, 3 }, b[] = { 1, 2, 4 }, c[] = { 1, 2 };
	struct stacks *s = stacks__new();
	uint32_t ids[3], nr;

	ids[0] = stacks__add(s, a, 3, 0);
	ids[1] = stacks__add(s, b, 3, 0);
	ids[2] = stacks__add(s, c, 2, 0);
	ck_assert(ids[0] && ids[1] && ids[2]);
	ck_assert(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
	ck_assert_uint_eq(stacks__add(s, a, 3, 0), ids[0]);
	ck_assert_uint_eq(stacks__add(s, c, 2, 0), ids[2]);
	ck_assert_uint_eq(stacks__count(s), 3);
	ck_assert_mem_eq(stacks__words(s, ids[1], &nr), b, sizeof(b));
	ck_assert_uint_eq(nr, 3);
	stacks__free(s);
}
END_TEST

START_TEST(owners_are_told_apart)
{
	const uint64_t a[] = { 7, 8 };
	struct stacks *s = stacks__new();
	uint32_t none = stacks__add(s, a, 2, 0), one = stacks__add(s, a, 2, 1);

	ck_assert_uint_ne(none, one);
	ck_assert_uint_eq(stacks__add(s, a, 2, 1), one);
	ck_assert_uint_ne(stacks__add(s, a, 2, 2), one);
	stacks__free(s);
}
END_TEST

START_TEST(hashes_of_the_bpf_side)
{
	const uint64_t a[] = { 1 }, b[] = { 2 };
	struct stacks *s = stacks__new();
	uint32_t x = stacks__add(s, a, 1, 0), y = stacks__add(s, b, 1, 0);

	ck_assert_uint_eq(stacks__by_hash(s, 100), STACKS_NONE);
	ck_assert_int_eq(stacks__alias(s, 100, x), 0);
	ck_assert_int_eq(stacks__alias(s, 101, x), 0);
	ck_assert_uint_eq(stacks__by_hash(s, 100), x);
	ck_assert_uint_eq(stacks__by_hash(s, 101), x);
	/* 0 is no hash: [no stack]. */
	ck_assert_int_eq(stacks__alias(s, 0, y), 0);
	ck_assert_uint_eq(stacks__by_hash(s, 0), STACKS_NONE);
	/* The same hash again, for other words: the later is what came last. */
	ck_assert_int_eq(stacks__alias(s, 100, y), 0);
	ck_assert_uint_eq(stacks__by_hash(s, 100), y);
	stacks__free(s);
}
END_TEST

START_TEST(numbers_that_are_none)
{
	const uint64_t a[] = { 1 };
	struct stacks *s = stacks__new();
	uint32_t nr = 77;

	ck_assert_uint_eq(stacks__add(s, a, 0, 0), STACKS_NONE);
	ck_assert_ptr_null(stacks__words(s, STACKS_NONE, &nr));
	ck_assert_uint_eq(nr, 0);
	ck_assert_ptr_null(stacks__words(s, 1, &nr));
	ck_assert_uint_eq(stacks__add(s, a, 1, 0), 1);
	ck_assert_ptr_nonnull(stacks__words(s, 1, &nr));
	ck_assert_ptr_null(stacks__words(s, 2, &nr));
	ck_assert_ptr_null(stacks__words(s, UINT32_MAX, &nr));
	stacks__free(s);
	stacks__free(NULL);
}
END_TEST

START_TEST(many)
{
	struct stacks *s = stacks__new();
	uint64_t words[300];
	uint32_t nr;

	for (uint64_t i = 0; i < 20000; i++) {
		uint32_t len = 1 + (uint32_t)(i % 300);

		for (uint32_t j = 0; j < len; j++)
			words[j] = i * 1000 + j;
		ck_assert_uint_eq(stacks__add(s, words, len, 0), i + 1);
	}
	for (uint64_t i = 0; i < 20000; i += 7) {
		const uint64_t *w = stacks__words(s, (uint32_t)i + 1, &nr);

		ck_assert_uint_eq(nr, 1 + i % 300);
		ck_assert_uint_eq(w[0], i * 1000);
		ck_assert_uint_eq(w[nr - 1], i * 1000 + nr - 1);
	}
	stacks__free(s);
}
END_TEST

/* Out of memory is "no stack", and what was there stays. */
START_TEST(without_memory)
{
	const uint64_t first[] = { 5 };
	uint64_t words[2000] = { 9 };
	uint32_t nr;

	if (!CAN_REFUSE)
		return;
	for (long left = 0; left < 12; left++) {
		struct stacks *s = stacks__new();
		uint32_t id = stacks__add(s, first, 1, 0), got = 1;

		allocations_left = left;
		for (uint64_t i = 0; i < 3000 && got; i++) {
			words[0] = i + 10;
			got = stacks__add(s, words, 2000, 0);
			if (got && stacks__alias(s, i + 1, got))
				break;
		}
		allocations_left = -1;
		ck_assert_uint_eq(*stacks__words(s, id, &nr), 5);
		ck_assert_uint_eq(stacks__add(s, first, 1, 0), id);
		words[0] = 99999;
		ck_assert_uint_ne(stacks__add(s, words, 2000, 0), STACKS_NONE);
		stacks__free(s);
	}
}
END_TEST

UNIT_MAIN("stacks", equal_words_are_one_stack, owners_are_told_apart, hashes_of_the_bpf_side,
	  numbers_that_are_none, many, without_memory)
