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

UNIT_MAIN("table", keys_keep_their_values_through_growth, removed_keys_do_not_hide_others)
