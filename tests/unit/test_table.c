// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/base/table.h"
#include "tests/unit/unit.h"

START_TEST(keys_keep_their_values_through_growth)
{
	struct table *t = table__new();
	uint64_t v;

	for (uint64_t k = 0; k < 10000; k++)
		ck_assert_int_eq(table__set(t, k * 8, k + 1), 0);
	ck_assert_uint_eq(table__count(t), 10000);
	for (uint64_t k = 0; k < 10000; k++) {
		ck_assert(table__get(t, k * 8, &v));
		ck_assert_uint_eq(v, k + 1);
		ck_assert(!table__get(t, k * 8 + 1, &v));
	}
	table__free(t);
}
END_TEST

START_TEST(removed_keys_do_not_hide_others)
{
	struct table *t = table__new();
	uint64_t k, v, sum = 0;
	size_t pos = 0;

	for (k = 0; k < 1000; k++)
		table__set(t, k, k);
	for (k = 0; k < 1000; k += 2)
		ck_assert(table__remove(t, k));
	ck_assert(!table__remove(t, 2));
	for (k = 1; k < 1000; k += 2)
		ck_assert(table__get(t, k, &v));
	while (table__next(t, &pos, &k, &v))
		sum += v;
	ck_assert_uint_eq(sum, 250000);	/* 1 + 3 + … + 999 */
	for (int i = 0; i < 100000; i++) {	/* tombstones must not fill the table */
		table__set(t, 5000 + (uint64_t)i, 1);
		table__remove(t, 5000 + (uint64_t)i);
	}
	ck_assert_uint_eq(table__count(t), 500);
	table__free(t);
}
END_TEST

/* The inverse of y = x ^ x >> 32. */
static uint64_t unshift(uint64_t y)
{
	return y ^ y >> 32;
}

/* The key that hash__mix turns into `hash`: whoever reads the source can make such. */
static uint64_t unmix(uint64_t hash)
{
	const uint64_t factor = 0xd6e8feb86659fd93ull;
	uint64_t inverse = factor, x = unshift(hash);

	for (int i = 0; i < 6; i++)		/* Newton: each step doubles the bits that are right */
		inverse *= 2 - factor * inverse;
	x = unshift(x * inverse);
	return unshift(x * inverse);
}

/* If they did, this would take minutes: each key would look at all those before. */
START_TEST(chosen_keys_do_not_collide)
{
	struct table *t = table__new();
	uint64_t v, wrong = 0;

	for (uint64_t k = 0; k < 1000000; k++) {
		uint64_t key = unmix(k << 32);

		wrong += hash__mix(key) != k << 32;
		wrong += table__set(t, key, k) != 0;
	}
	ck_assert_uint_eq(wrong, 0);
	ck_assert(table__get(t, unmix(7ull << 32), &v));
	ck_assert_uint_eq(v, 7);
	table__free(t);
}
END_TEST

UNIT_MAIN("table", keys_keep_their_values_through_growth, removed_keys_do_not_hide_others,
	  chosen_keys_do_not_collide)
