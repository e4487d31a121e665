// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>

#include "loader/tally.h"
#include "tests/unit/refuse.h"
#include "tests/unit/unit.h"

static const struct tally_key base = {
	.kind = TALLY_LAUNCH, .process = 1, .tid = 2, .user = 3, .kernel = 4, .work = 5, .flags = 0,
	.device = 6, .stream = 7,
};

static int add(struct tally *t, const struct tally_key *key, uint64_t count, uint64_t timed,
	       uint64_t ns)
{
	const struct tally_add what = { .count = count, .timed = timed, .ns = ns };

	return tally__add(t, key, &what);
}

START_TEST(equal_keys_add_up)
{
	struct tally *t = tally__new();
	const struct tally_value *v;

	ck_assert_int_eq(add(t, &base, 1, 1, 1000), 0);
	ck_assert_int_eq(add(t, &base, 2, 0, 0), 0);
	ck_assert_int_eq(add(t, &base, 3, 2, 1ull << 40), 0);
	ck_assert_uint_eq(tally__count(t), 1);
	v = tally__at(t, 0);
	ck_assert_uint_eq(v->count, 6);
	ck_assert_uint_eq(v->timed, 3);
	ck_assert_uint_eq(v->ns, (1ull << 40) + 1000);
	ck_assert_mem_eq(&v->key, &base, sizeof(base));
	tally__free(t);
}
END_TEST

/* What a time stands for besides itself is kept beside the sum of times. */
START_TEST(weights)
{
	const struct tally_add often = { .count = 1, .timed = 1, .ns = 100 };
	const struct tally_add seldom = { .count = 1, .timed = 1, .ns = 500, .others = 9 };
	const struct tally_add left_out = { .count = 1, .untimed = 1, .left_out = 1 };
	struct tally *t = tally__new();
	const struct tally_value *v;

	ck_assert_int_eq(tally__add(t, &base, &often), 0);
	ck_assert_int_eq(tally__add(t, &base, &seldom), 0);
	for (int i = 0; i < 9; i++)
		ck_assert_int_eq(tally__add(t, &base, &left_out), 0);
	v = tally__at(t, 0);
	ck_assert_uint_eq(v->count, 11);
	ck_assert_uint_eq(v->timed, 2);
	ck_assert_uint_eq(v->ns, 600);
	ck_assert_uint_eq(v->untimed, 9);
	ck_assert_uint_eq(v->left_out, 9);
	ck_assert_uint_eq(v->chanced, 1);
	ck_assert_uint_eq(v->others, 9);
	ck_assert_uint_eq(v->others_ns, 4500);
	tally__free(t);
}
END_TEST

/* Everything a sample or a launch was recorded under tells it from others. */
START_TEST(each_field_counts)
{
	struct tally *t = tally__new();
	struct tally_key keys[10];

	for (int i = 0; i < 10; i++)
		keys[i] = base;
	keys[1].kind = TALLY_SAMPLE;
	keys[2].process++;
	keys[3].tid++;
	keys[4].user++;
	keys[5].kernel++;
	keys[6].work++;
	keys[7].flags = TALLY_UNCALIBRATED;
	keys[8].device = -1;
	keys[9].stream |= 1ull << 63;
	for (int round = 0; round < 2; round++)
		for (uint64_t i = 0; i < 10; i++)
			ck_assert_int_eq(add(t, &keys[i], i + 1, 0, 0), 0);
	ck_assert_uint_eq(tally__count(t), 10);
	for (size_t i = 0; i < 10; i++) {
		ck_assert_mem_eq(&tally__at(t, i)->key, &keys[i], sizeof(keys[i]));
		ck_assert_uint_eq(tally__at(t, i)->count, 2 * (i + 1));
	}
	tally__free(t);
}
END_TEST

START_TEST(many_keys)
{
	struct tally *t = tally__new();
	struct tally_key key = base;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < 50000; i++) {
		key.user = i % 10000;
		key.stream = (uint64_t)(i % 3) << 40;
		ck_assert_int_eq(add(t, &key, 1, 0, i), 0);
	}
	ck_assert_uint_eq(tally__count(t), 30000);
	for (size_t i = 0; i < tally__count(t); i++)
		sum += tally__at(t, i)->ns;
	ck_assert_uint_eq(sum, 49999ull * 50000 / 2);
	tally__free(t);
	tally__free(NULL);
}
END_TEST

START_TEST(without_memory)
{
	struct tally_key key = base;

	if (!CAN_REFUSE)
		return;
	for (long left = 0; left < 8; left++) {
		struct tally *t = tally__new();
		uint64_t added = 0, counted = 0;

		for (uint32_t i = 0; i < 5000; i++) {
			key.user = i;
			if (i == 100)
				allocations_left = left;
			added += add(t, &key, 1, 0, 0) == 0;
		}
		allocations_left = -1;
		for (size_t i = 0; i < tally__count(t); i++)
			counted += tally__at(t, i)->count;
		ck_assert_uint_eq(counted, added);
		ck_assert_int_eq(add(t, &key, 1, 0, 0), 0);
		tally__free(t);
	}
}
END_TEST

/* Of two in 2 w launches each: 7 and 11 us here, one of another entry there, one that stays alone. */
START_TEST(halves_of_blocks_meet_in_any_order)
{
	static const struct tally_key a = { .kind = TALLY_LAUNCH, .user = 1, .stratum = 1 };
	static const struct tally_key b = { .kind = TALLY_LAUNCH, .user = 2, .stratum = 1 };
	static const struct tally_key c = { .kind = TALLY_LAUNCH, .user = 1, .stratum = 2 };
	static const struct {
		const struct tally_key *key;
		uint32_t block;
		uint64_t ns;
	} records[] = {
		{ &a, 1, 7000 }, { &a, 2, 5000 }, { &a, 3, 100 }, { &c, 1, 1000 }, { &b, 2, 6000 },
		{ &a, 1, 11000 }, { &c, 1, 1000 },
	};
	struct tally *t = tally__new();
	const double factor = 10 * 9;

	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		const struct tally_add add = {
			.weight = 10, .block = records[i].block, .count = 1, .timed = 1, .ns = records[i].ns,
		};

		ck_assert_int_eq(tally__add(t, records[i].key, &add), 0);
	}
	ck_assert_uint_eq(tally__count(t), 3);
	ck_assert_double_eq(tally__at(t, 0)->ns_variance, factor * (16e6 + 25e6));
	tally__settle(t);
	tally__settle(t);
	ck_assert_double_eq(tally__at(t, 0)->ns_variance, factor * (16e6 + 25e6 + 1e4));
	ck_assert_double_eq(tally__at(t, 0)->count_variance, factor * 2);
	ck_assert_double_eq(tally__at(t, 1)->ns_variance, 0);
	ck_assert_double_eq(tally__at(t, 2)->ns_variance, factor * 6000 * 6000);
	ck_assert_double_eq(tally__at(t, 2)->count_variance, factor);
	ck_assert_double_eq(tally__covariance(t, 1), -2 * factor * 5000 * 6000);
	ck_assert_double_eq(tally__covariance(t, 2), 0);
	ck_assert_double_eq(tally__covariance(t, (uint32_t)tally__nr_strata(t)), 0);
	ck_assert_uint_eq(tally__at(t, 0)->count, 40);
	ck_assert_uint_eq(tally__at(t, 0)->ns, 10 * (7000 + 5000 + 100 + 11000));
	tally__free(t);
}
END_TEST

UNIT_MAIN("tally", halves_of_blocks_meet_in_any_order,
	  equal_keys_add_up, weights, each_field_counts, many_keys, without_memory)
