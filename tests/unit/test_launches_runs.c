// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Launches that have one time together, in a channel of this process: what of them gets into the tally. */
#include "loader/runs.h"
#include "tests/unit/launches_setup.h"

struct three {
	struct channel_result r;
	struct channel_member more[2];
};

/* Launches 1 to 3, of the kernels that are named 1 and 2 and of one without a name. */
static struct three run_of_three(enum launch_cause cause)
{
	struct three three = {
		.r = timed(1, cause ? 0 : 900),
		.more = { { .launch = 2, .name = 2 }, { .launch = 3 } },
	};

	three.r.launches = 3;
	three.r.cause = (uint16_t)cause;
	three.r.name = 1;
	return three;
}

static uint64_t of_work(const struct tally_key *key)
{
	return key->work;
}

static struct estimate_times share_of(uint32_t stack)
{
	struct estimate_times shares[16] = { 0 };

	ck_assert_int_eq(runs__split(launches__runs(launches), tally, of_work, shares), 0);
	return shares[of_stack(stack) - tally__at(tally, 0)];
}

START_TEST(launches_that_have_a_time_together)
{
	struct three three = run_of_three(CAUSE_NONE);

	setup();
	hello();
	put_name(0x100, 1, "first", NAME_KNOWN);
	put_name(0x200, 2, "second", NAME_KNOWN);
	put_name(0x200, 3, "its handle came again", NAME_KNOWN);
	record(1, 11, 0x100);
	record(3, 13, 0x300);
	put(&three, sizeof(three), CHANNEL_RESULT);
	launches__poll(launches);
	ck_assert_uint_eq(share_of(11).timed, 0);	/* one is still to come */
	record(2, 12, 0x200);
	ck_assert_uint_eq(share_of(11).timed, 1);
	ck_assert_uint_eq(share_of(11).ns + share_of(12).ns + share_of(13).ns, 900);
	for (uint32_t stack = 11; stack <= 13; stack++) {
		ck_assert_uint_eq(of_stack(stack)->count, 1);
		ck_assert_uint_eq(of_stack(stack)->timed + of_stack(stack)->untimed, 0);
		ck_assert_uint_eq(of_stack(stack)->key.stream, 9);
	}
	ck_assert_str_eq(launches__name(launches, of_stack(12)->key.work), "second");
	ck_assert_uint_eq(of_stack(13)->key.work, 0);
	launches__finish(launches);
	ck_assert_uint_eq(counters().by_cause[CAUSE_NONE], 3);
	ck_assert_uint_eq(counters().in_runs, 3);
	ck_assert_uint_eq(counters().no_stack + counters().no_end, 0);
}
END_TEST

START_TEST(launches_that_have_none_together)
{
	struct three three = run_of_three(CAUSE_DISTURBED);

	setup();
	hello();
	put_name(0x200, 2, "second", NAME_KNOWN);
	put(&three, sizeof(three), CHANNEL_RESULT);
	launches__poll(launches);
	for (uint64_t id = 1; id <= 3; id++)
		record(id, 10 + (uint32_t)id, 0x100);
	ck_assert_uint_eq(of_stack(11)->untimed, 1);
	ck_assert_uint_eq(of_stack(13)->untimed, 1);
	ck_assert_str_eq(launches__name(launches, of_stack(12)->key.work), "second");
	ck_assert_uint_eq(counters().by_cause[CAUSE_DISTURBED], 3);
	ck_assert_uint_eq(counters().in_runs, 0);
}
END_TEST

START_TEST(a_run_of_which_a_part_is_lost)
{
	struct three three = run_of_three(CAUSE_NONE);

	setup();
	hello();
	put(&three, sizeof(three), CHANNEL_RESULT);
	three.more[0].launch = three.more[1].launch = 1;	/* made up */
	put(&three, sizeof(three), CHANNEL_RESULT);
	launches__poll(launches);
	record(1, 11, 0x100);
	record(3, 13, 0x100);
	launches__finish(launches);
	ck_assert_uint_eq(of_stack(11)->count, 1);
	ck_assert_uint_eq(of_stack(13)->count, 1);
	ck_assert_uint_ge(of_stack(STACKS_NONE)->count, 1);
	launches__free(launches);
	tally__free(tally);
}
END_TEST

/* Runs that can't ever be whole are kept up to a bound; what comes then has no time. */
START_TEST(made_up_runs)
{
	struct three three = run_of_three(CAUSE_NONE);
	struct {
		struct channel_result r;
		struct channel_member more[1];
	} twice = { .r = timed(0, 900) };

	setup();
	hello();
	twice.r.launches = 2;
	for (uint64_t id = 100; id < 100 + (1u << 17); id++) {
		twice.r.launch = twice.more[0].launch = id;
		put(&twice, sizeof(twice), CHANNEL_RESULT);
		if (id % 1024 == 0)
			launches__poll(launches);
	}
	put(&three, sizeof(three), CHANNEL_RESULT);
	launches__poll(launches);
	record(1, 11, 0x100);
	ck_assert_uint_eq(of_stack(11)->count, 1);
	ck_assert_uint_eq(of_stack(11)->untimed, 1);
}
END_TEST

UNIT_MAIN("launches_runs", launches_that_have_a_time_together, launches_that_have_none_together,
	  a_run_of_which_a_part_is_lost, made_up_runs)
