// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "loader/join.h"
#include "tests/unit/unit.h"

/* What came out, in the order in which it did. */
struct out {
	unsigned int both, launches, results;
	uint64_t stacks, durations;
	uint32_t last_stack;
	uint64_t last_duration;
	int answer;
};

static int done(void *ctx, const struct join_launch *launch, const struct channel_result *result)
{
	struct out *o = ctx;

	ck_assert(launch || result);
	o->both += launch && result;
	o->launches += launch && !result;
	o->results += !launch && result;
	if (launch)
		o->stacks += o->last_stack = launch->stack;
	if (result)
		o->durations += o->last_duration = result->duration;
	return o->answer;
}

static int add_launch(struct join *j, uint64_t id, uint32_t stack, struct out *o)
{
	const struct join_launch l = { .stack = stack, .tid = 1 };

	return join__launch(j, id, &l, o);
}

static int add_result(struct join *j, uint64_t id, uint64_t ns, struct out *o)
{
	const struct channel_result r = { .launch = id, .duration = ns };

	return join__result(j, &r, o);
}

START_TEST(halves_meet_in_either_order)
{
	struct join *j = join__new(1000, done);
	struct out o = {};

	ck_assert_int_eq(add_launch(j, 7, 70, &o), 0);
	ck_assert_int_eq(add_result(j, 8, 800, &o), 0);
	ck_assert_uint_eq(o.both + o.launches + o.results, 0);
	ck_assert_int_eq(add_result(j, 7, 700, &o), 0);
	ck_assert_uint_eq(o.last_stack, 70);
	ck_assert_uint_eq(o.last_duration, 700);
	ck_assert_int_eq(add_launch(j, 8, 80, &o), 0);
	ck_assert_uint_eq(o.last_stack, 80);
	ck_assert_uint_eq(o.last_duration, 800);
	ck_assert_uint_eq(o.both, 2);
	ck_assert_int_eq(join__finish(j, &o), 0);
	ck_assert_uint_eq(o.launches + o.results, 0);
	join__free(j);
}
END_TEST

START_TEST(many_wait_and_none_is_lost)
{
	struct join *j = join__new(1 << 20, done);
	struct out o = {};
	uint64_t i, nr = 100000;

	for (i = 0; i < nr; i++)
		ck_assert_int_eq(add_launch(j, i * 4096, (uint32_t)i, &o), 0);
	for (i = nr; i-- > 1;)
		ck_assert_int_eq(add_result(j, i * 4096, 1, &o), 0);
	ck_assert_uint_eq(o.both, nr - 1);
	ck_assert_uint_eq(o.stacks, nr * (nr - 1) / 2);
	ck_assert_int_eq(add_result(j, 1, 5, &o), 0);
	ck_assert_int_eq(join__finish(j, &o), 0);
	ck_assert_uint_eq(o.launches, 1);
	ck_assert_uint_eq(o.results, 1);
	ck_assert_uint_eq(o.durations, nr - 1 + 5);
	/* What was finished is gone: both are new ones. */
	ck_assert_int_eq(add_result(j, 0, 9, &o), 0);
	ck_assert_int_eq(add_launch(j, 1, 9, &o), 0);
	ck_assert_uint_eq(o.both, nr - 1);
	join__free(j);
}
END_TEST

START_TEST(a_half_that_comes_twice_counts_twice)
{
	struct join *j = join__new(1000, done);
	struct out o = {};

	add_launch(j, 1, 10, &o);
	add_launch(j, 1, 20, &o);
	ck_assert_uint_eq(o.launches, 1);
	ck_assert_uint_eq(o.last_stack, 10);
	add_result(j, 1, 5, &o);
	ck_assert_uint_eq(o.both, 1);
	ck_assert_uint_eq(o.last_stack, 20);
	for (int i = 0; i < 1000000; i++)	/* and holds no memory */
		add_result(j, 1, 1, &o);
	ck_assert_uint_eq(o.results, 999999);
	join__finish(j, &o);
	ck_assert_uint_eq(o.results, 1000000);
	join__free(j);
}
END_TEST

START_TEST(more_than_may_wait_go_on_alone)
{
	struct join *j = join__new(100, done);
	struct out o = {};
	uint64_t i;

	for (i = 0; i < 1000; i++)
		ck_assert_int_eq(add_result(j, i, 1, &o), 0);
	ck_assert_uint_eq(o.results, 900);
	for (i = 0; i < 1000; i++)
		ck_assert_int_eq(add_launch(j, i, 1, &o), 0);
	/* The 100 that waited left room for 100 of the others. */
	ck_assert_uint_eq(o.both, 100);
	ck_assert_uint_eq(o.launches, 800);
	ck_assert_int_eq(join__finish(j, &o), 0);
	ck_assert_uint_eq(o.launches, 900);
	ck_assert_uint_eq(o.durations, 1000);
	ck_assert_uint_eq(o.stacks, 1000);
	join__free(j);
}
END_TEST

START_TEST(errors_are_handed_on)
{
	struct join *j = join__new(10, done);
	struct out o = { .answer = -ENOMEM };

	ck_assert_int_eq(add_launch(j, 1, 1, &o), 0);
	ck_assert_int_eq(add_result(j, 1, 1, &o), -ENOMEM);
	ck_assert_int_eq(add_launch(j, 2, 1, &o), 0);
	ck_assert_int_eq(join__finish(j, &o), -ENOMEM);
	join__free(j);
	join__free(NULL);
}
END_TEST

UNIT_MAIN("join", halves_meet_in_either_order, many_wait_and_none_is_lost,
	  a_half_that_comes_twice_counts_twice, more_than_may_wait_go_on_alone, errors_are_handed_on)
