// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Runs of launches that have one time together: how it is split. */
#include <string.h>

#include "loader/runs.h"
#include "tests/unit/unit.h"

#define ENTRIES 8

static struct tally *tally;
static struct runs *runs;
static uint32_t whole;
static struct estimate_times shares[ENTRIES];

/* Entry i is of the kernel i / 2 + 1: two paths each. */
static void setup(void)
{
	tally = tally__new();
	runs = runs__new();
	ck_assert(tally && runs);
	for (uint32_t i = 0; i < ENTRIES; i++) {
		const struct tally_key key = { .kind = TALLY_LAUNCH, .user = i + 1, .work = i / 2 + 1 };
		const struct tally_add none = { 0 };
		uint32_t at;

		ck_assert_int_eq(tally__add(tally, &key, &none), 0);
		ck_assert_int_eq(tally__index(tally, &key, &at), 0);
		ck_assert_uint_eq(at, i);
	}
}

/* n launches of the entry that were timed by themselves. */
static void alone(uint32_t entry, uint64_t n, uint64_t ns)
{
	const struct tally_add add = { .count = n, .timed = n, .ns = ns };

	ck_assert_int_eq(tally__add(tally, &tally__at(tally, entry)->key, &add), 0);
}

/* A run of the entries that the text names by their digits; '-': of a launch outside of the capture. */
static void put(const char *entries, uint64_t ns, uint32_t weight)
{
	uint32_t run = runs__begin(runs, (uint32_t)strlen(entries), ns, weight);

	ck_assert_uint_ne(run, 0);
	for (; *entries; entries++)
		ck_assert_int_eq(runs__add(runs, run, *entries == '-' ? RUNS_NO_ENTRY :
					   (uint32_t)(*entries - '0'), &whole), 0);
}

static uint64_t kernel_of(const struct tally_key *key)
{
	return key->work;
}

static void split(void)
{
	memset(shares, 0, sizeof(shares));
	ck_assert_int_eq(runs__split(runs, tally, kernel_of, shares), 0);
}

static void near(uint64_t got, double want)
{
	ck_assert_double_le((double)got, want * 1.01 + 1);
	ck_assert_double_ge((double)got, want * 0.99 - 1);
}

START_TEST(what_is_known_of_the_kernels_says_how)
{
	setup();
	alone(1, 2, 200);		/* entry 0's kernel, from another path: 100 each */
	alone(2, 1, 300);
	put("02", 200, 1);		/* overlapped: half of what they take alone */
	put("20", 201, 1);
	split();
	ck_assert_uint_eq(shares[0].timed, 2);
	ck_assert_uint_eq(shares[0].ns, 100);
	ck_assert_uint_eq(shares[2].timed, 2);
	ck_assert_uint_eq(shares[2].ns, 301);
	ck_assert_uint_eq(shares[1].timed, 0);
	ck_assert_uint_eq(shares[0].chanced, 0);
}
END_TEST

START_TEST(a_known_one_leaves_the_rest_to_the_other)
{
	setup();
	alone(0, 1, 100);
	put("02", 350, 1);
	put("022", 600, 1);
	split();
	near(shares[0].ns, 200);
	near(shares[2].ns, 750);
	ck_assert_uint_eq(shares[0].ns + shares[2].ns, 950);
}
END_TEST

/* Kernels of 100, 250 and 40 ns. */
START_TEST(unknown_ones_are_told_apart_by_what_they_are_with)
{
	setup();
	put("02", 350, 1);
	put("2244", 580, 1);
	put("04", 140, 1);
	put("0", 100, 1);
	split();
	near(shares[0].ns, 300);
	near(shares[2].ns, 750);
	near(shares[4].ns, 120);
	ck_assert_uint_eq(shares[0].ns + shares[2].ns + shares[4].ns, 350 + 580 + 140 + 100);
}
END_TEST

START_TEST(where_nothing_tells_they_are_alike)
{
	setup();
	put("024", 100, 1);
	put("420", 1, 1);		/* the same kind */
	split();
	ck_assert_uint_eq(shares[0].ns + shares[2].ns + shares[4].ns, 101);
	near(shares[0].ns, 33.7);
	near(shares[4].ns, 33.7);
	ck_assert_uint_eq(shares[2].timed, 2);
}
END_TEST

START_TEST(paths_of_a_kernel_are_alike_but_what_has_no_name)
{
	const struct tally_key nameless = { .kind = TALLY_LAUNCH, .user = 90 };
	const struct tally_add timed = { .count = 1, .timed = 1, .ns = 100 };
	uint32_t at;

	setup();
	put("01", 300, 1);		/* two paths of one kernel */
	put("0", 100, 1);
	ck_assert_int_eq(tally__add(tally, &nameless, &timed), 0);
	ck_assert_int_eq(tally__index(tally, &nameless, &at), 0);
	ck_assert_uint_eq(at, ENTRIES);
	split();
	ck_assert_uint_eq(shares[1].ns, 150);
	ck_assert_uint_eq(shares[0].ns, 250);
}
END_TEST

START_TEST(runs_by_chance_stand_for_others)
{
	setup();
	put("02", 400, 4);
	put("02", 200, 1);
	split();
	ck_assert_uint_eq(shares[0].timed, 2);
	ck_assert_uint_eq(shares[0].chanced, 1);
	ck_assert_uint_eq(shares[0].others, 3);
	ck_assert_uint_eq(shares[0].others_ns + shares[2].others_ns, 3 * 400);
	ck_assert_uint_eq(shares[0].ns + shares[2].ns, 600);
}
END_TEST

/* That one of the second takes nothing would fit best. */
START_TEST(no_kernel_gets_nothing)
{
	setup();
	put("02", 100, 1);
	put("0", 100, 1);
	put("22", 1, 1);
	split();
	ck_assert_uint_ge(shares[2].ns, 1);
	put("0222", 10000, 1);
	split();
	ck_assert_uint_ge(shares[2].ns, 100);
	ck_assert_uint_eq(shares[0].ns + shares[2].ns, 10201);
}
END_TEST

START_TEST(a_share_may_go_nowhere)
{
	setup();
	put("0-", 500, 1);
	put("--", 100, 1);
	split();
	ck_assert_uint_eq(shares[0].timed, 1);
	ck_assert_uint_le(shares[0].ns, 500);
	ck_assert_uint_ge(shares[0].ns, 200);
}
END_TEST

START_TEST(one_that_is_not_whole_does_not_count)
{
	uint32_t first, second;

	setup();
	first = runs__begin(runs, 2, 100, 1);
	second = runs__begin(runs, 2, 300, 1);
	ck_assert_int_eq(runs__add(runs, first, 0, &whole), 0);
	ck_assert_int_eq(runs__add(runs, second, 0, &whole), 0);
	ck_assert_int_eq(runs__add(runs, second, 0, &whole), 0);
	ck_assert_int_eq(runs__add(runs, second, 0, &whole), 0);	/* made up */
	split();
	ck_assert_uint_eq(shares[0].timed, 2);
	ck_assert_uint_eq(shares[0].ns, 300);
	split();
	ck_assert_uint_eq(shares[0].ns, 300);		/* as often as results are written */
	ck_assert_int_eq(runs__add(runs, first, 2, &whole), 0);
	split();
	ck_assert_uint_eq(shares[0].ns + shares[2].ns, 400);
	ck_assert_uint_eq(runs__begin(runs, 2, 1, 1) <= 2, 1);	/* numbers come again */
}
END_TEST

/* Kinds differ in how many of each of three entries there are. What is more than are kept is split evenly. */
START_TEST(kinds_are_bounded)
{
	const uint32_t nr = 140000;
	uint64_t sum = 0, launches = 0;
	int err = 0;

	setup();
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t of[] = { i % 64 + 1, i / 64 % 64 + 1, i / 4096 + 1 }, all = of[0] + of[1] + of[2];
		uint32_t run = runs__begin(runs, all, 1000 + i, 1);

		for (uint32_t k = 0; k < all; k++)
			err |= runs__add(runs, run, k < of[0] ? 0 : k < of[0] + of[1] ? 2 : 4, &whole);
		launches += all;
	}
	ck_assert_int_eq(err, 0);
	split();
	for (uint32_t i = 0; i < ENTRIES; i++) {
		sum += shares[i].ns;
		launches -= shares[i].timed;
	}
	ck_assert_uint_eq(sum, (uint64_t)nr * 1000 + (uint64_t)nr * (nr - 1) / 2);
	ck_assert_uint_eq(launches, 0);
}
END_TEST

/* Each of another length. */
START_TEST(long_ones)
{
	uint64_t sum = 0, launches = 0;
	int err = 0;

	setup();
	for (uint32_t i = 2; i < 2000; i++) {
		uint32_t run = runs__begin(runs, i, i * 100, 2);

		for (uint32_t k = 0; k < i; k++)
			err |= runs__add(runs, run, k % ENTRIES, &whole);
		sum += i * 100;
		launches += i;
	}
	ck_assert_int_eq(err, 0);
	split();
	for (uint32_t i = 0; i < ENTRIES; i++) {
		sum -= shares[i].ns;
		launches -= shares[i].timed;
		ck_assert_uint_eq(shares[i].others, shares[i].timed);
	}
	ck_assert_uint_eq(sum, 0);
	ck_assert_uint_eq(launches, 0);
}
END_TEST

/* One timed by chance tells as much as all that it stands for. */
START_TEST(times_by_chance_count_for_all_that_they_stand_for)
{
	const struct tally_add early = { .count = 1, .timed = 1, .ns = 1000 };
	const struct tally_add later = { .count = 1, .timed = 1, .ns = 100, .others = 255 };

	setup();
	ck_assert_int_eq(tally__add(tally, &tally__at(tally, 0)->key, &early), 0);
	ck_assert_int_eq(tally__add(tally, &tally__at(tally, 0)->key, &later), 0);
	alone(2, 1, 100);
	put("02", 2000, 1);
	split();
	near(shares[0].ns, 1017);	/* (1000 + 256 x 100) / 257 = 103.5, to 100 */
	ck_assert_uint_eq(shares[0].ns + shares[2].ns, 2000);
}
END_TEST

START_TEST(made_up_times_do_no_harm)
{
	setup();
	put("02", (1ull << 53) - 1, 1024);
	put("02", (1ull << 53) - 1, 1024);
	put("20", 0, 1);
	split();
	ck_assert_uint_eq(shares[0].timed, 3);
	ck_assert_uint_eq(shares[0].ns + shares[2].ns, (1ull << 54) - 2);
}
END_TEST

UNIT_MAIN("runs", what_is_known_of_the_kernels_says_how, a_known_one_leaves_the_rest_to_the_other,
	  unknown_ones_are_told_apart_by_what_they_are_with, where_nothing_tells_they_are_alike,
	  paths_of_a_kernel_are_alike_but_what_has_no_name, runs_by_chance_stand_for_others,
	  no_kernel_gets_nothing, a_share_may_go_nowhere, one_that_is_not_whole_does_not_count,
	  kinds_are_bounded, long_ones, times_by_chance_count_for_all_that_they_stand_for,
	  made_up_times_do_no_harm)
