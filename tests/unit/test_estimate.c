// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What stands for the time of launches that have none. */
#include "loader/estimate.h"
#include "tests/unit/unit.h"

static double mean(const struct estimate_times *path, const struct estimate_times *kernel, bool left_out)
{
	double ns = -1;

	return estimate__mean(path, kernel, left_out, &ns) ? ns : -1;
}

/* Twelve of 100 ns, none of which could be left out; three of 500, 500, 800 for 1, 3 and 6 others. */
static const struct estimate_times burst = { 15, 12 * 100 + 1800, 3, 10, 500 + 1500 + 4800, 15 };

START_TEST(those_left_out_are_like_those_that_could_have_been)
{
	ck_assert_double_eq(mean(&burst, &burst, true), 680);
	ck_assert_double_eq(mean(&burst, NULL, true), 680);
	/* Others may be anywhere: all that are known or stood for, 25 launches. */
	ck_assert_double_eq(mean(&burst, &burst, false), (3000 + 6800) / 25.0);
}
END_TEST

START_TEST(a_path_s_own_come_first_if_there_are_enough)
{
	const struct estimate_times own = { 3, 600, 0, 0, 0, 3 }, few = { 2, 400, 0, 0, 0, 2 };
	const struct estimate_times chanced = { 3, 600, 2, 9, 2700, 3 };
	const struct estimate_times kernel = { 30, 30000, 5, 10, 20000, 30 };

	ck_assert_double_eq(mean(&own, &kernel, false), 200);
	ck_assert_double_eq(mean(&few, &kernel, false), 50000 / 40.0);
	/* One or two by chance say little, nor does the head of a burst: the kernel's say how much more. */
	ck_assert_double_eq(mean(&few, &kernel, true), 2000);
	ck_assert_double_eq(mean(&chanced, &kernel, true), (600 + 2700) / 12.0 * 2000 / (50000 / 40.0));
	ck_assert_double_eq(mean(&own, &kernel, true), 200 * 2000 / (50000 / 40.0));
	ck_assert_double_eq(mean(&own, &own, true), 200);
	ck_assert_double_eq(mean(&chanced, &chanced, true), (600 + 2700) / 12.0);
}
END_TEST

START_TEST(without_a_kernel_any_of_the_path_will_do)
{
	const struct estimate_times one = { 1, 70, 0, 0, 0, 1 }, none = {};

	ck_assert_double_eq(mean(&one, NULL, true), 70);
	ck_assert_double_eq(mean(&one, NULL, false), 70);
	ck_assert_double_eq(mean(&none, &one, false), 70);
	ck_assert_double_eq(mean(&none, NULL, false), -1);
	ck_assert_double_eq(mean(&none, &none, true), -1);
}
END_TEST

START_TEST(sums_do_not_wrap)
{
	struct estimate_times sum = { 1, UINT64_MAX - 5, 1, 2, UINT64_MAX - 5, 1 };
	const struct estimate_times more = { 1, 10, 1, 2, 10, 1 };

	estimate__merge(&sum, &more);
	ck_assert_uint_eq(sum.timed, 2);
	ck_assert_uint_eq(sum.seen, 2);
	ck_assert_uint_eq(sum.chanced, 2);
	ck_assert_uint_eq(sum.others, 4);
	ck_assert_uint_eq(sum.ns, UINT64_MAX);
	ck_assert_uint_eq(sum.others_ns, UINT64_MAX);
}
END_TEST

UNIT_MAIN("estimate", those_left_out_are_like_those_that_could_have_been,
	  a_path_s_own_come_first_if_there_are_enough, without_a_kernel_any_of_the_path_will_do,
	  sums_do_not_wrap)
