// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Waits for the device: what of them gets into the tally, and from there into the model. */
#include "loader/strata.h"
#include "loader/widths.h"
#include "tests/unit/launches_setup.h"

#define BLOCK(n) ((n) << CHANNEL_BLOCK_SHIFT)

static void record_wait(uint64_t id, uint32_t stack, uint64_t time, uint32_t flags)
{
	const struct rec_launch r = {
		.head.time = time, .tgid = (uint32_t)getpid(), .tid = 77, .id = id, .flags = (uint16_t)flags,
		.entry = SLOT_STREAM_SYNC, .weight = 1, .grid = { 0, 0, COPY_DTOH },
	};

	ck_assert_int_eq(launches__record(launches, &process, &r, stack), 0);
}

static struct channel_result waited(uint64_t id, uint64_t ns)
{
	struct channel_result r = timed(id, ns);

	r.entry = SLOT_STREAM_SYNC;
	r.flags = LAUNCH_WAIT;
	r.load = LOAD_UNKNOWN;
	r.device = -1;
	return r;
}

static void put_wait(uint64_t id, uint64_t ns)
{
	const struct channel_result r = waited(id, ns);

	put_result(&r);
}

START_TEST(the_part_in_the_capture_counts)
{
	setup();
	hello();
	launches__only(launches, 200, 300);
	put_wait(1, 100);
	put_wait(2, 100);
	put_wait(3, 1000);
	put_wait(4, 20);
	put_wait(5, ~0ull >> 12);
	record_wait(1, 11, 150, LAUNCH_WAIT);	/* 200 to 250 */
	record_wait(2, 12, 260, LAUNCH_WAIT);	/* 260 to 300 */
	record_wait(3, 13, 100, LAUNCH_WAIT);	/* all of it */
	record_wait(4, 14, 180, LAUNCH_WAIT);	/* over before */
	record_wait(5, 15, 300, LAUNCH_WAIT);	/* begun after */
	launches__poll(launches);
	launches__finish(launches);
	ck_assert_uint_eq(tally__count(tally), 3);
	ck_assert_uint_eq(of_stack(11)->ns, 50);
	ck_assert_uint_eq(of_stack(12)->ns, 40);
	ck_assert_uint_eq(of_stack(13)->ns, 100);
	ck_assert_uint_eq(of_stack(11)->count, 1);
	ck_assert_uint_eq(of_stack(11)->key.kind, TALLY_WAIT);
	ck_assert_uint_eq(of_stack(11)->key.tid, 77);
	ck_assert_int_eq(of_stack(11)->key.device, -1);
	ck_assert_uint_eq(counters().by_cause[CAUSE_NONE] + counters().no_end + counters().no_stack, 0);
	ck_assert_uint_eq(counters().waiting + counters().waits_no_end + counters().waits_no_stack, 0);
}
END_TEST

/* As long as the thread says that it is inside; what else has no result lost it. */
START_TEST(under_way_up_to_the_end)
{
	uint64_t ns = 0;

	setup();
	hello();
	launches__only(launches, 200, 300);
	segment->nr_threads = 4;
	segment->threads[1].waiting = 1;
	segment->threads[2].waiting = 3;
	segment->threads[3].waiting = 9;	/* nobody has heard of that one */
	record_wait(1, 11, 220, LAUNCH_WAIT);
	record_wait(2, 12, 230, LAUNCH_WAIT);
	record_wait(3, 13, 280, LAUNCH_COPY);
	record_wait(4, 14, 150, LAUNCH_COPY);
	launches__poll(launches);
	launches__exited(launches, &process, 290);
	ck_assert_uint_eq(of_stack(11)->ns, 70);
	ck_assert_ptr_null(of_stack(12));
	ck_assert_uint_eq(counters().waiting, 2);
	ck_assert_uint_eq(counters().waits_no_end, 1);
	/* The copy is one, without a time, and a wait. */
	ck_assert_uint_eq(tally__count(tally), 3);
	for (size_t i = 0; i < 3; i++)
		ns += tally__at(tally, i)->ns;
	ck_assert_uint_eq(ns, 70 + 10);
	ck_assert_uint_eq(counters().copies_by_cause[CAUSE_NO_END], 1);
}
END_TEST

START_TEST(made_up_ones_do_no_harm)
{
	setup();
	hello();
	launches__only(launches, 200, 300);
	segment->nr_threads = ~0u;
	segment->threads[7].waiting = 1;
	record_wait(1, 11, ~0ull, LAUNCH_WAIT);		/* a time that can't be */
	put_wait(2, (1ull << 53) - 1);			/* without its record */
	put_wait(3, (1ull << 53) - 1);
	record_wait(3, 13, ~0ull - 1, LAUNCH_WAIT);
	record_wait(4, 14, 0, LAUNCH_WAIT | LAUNCH_COPY);
	launches__poll(launches);
	launches__finish(launches);
	ck_assert_uint_eq(tally__count(tally), 1);
	ck_assert_uint_eq(of_stack(STACKS_NONE)->ns, (1ull << 53) - 1);
	ck_assert_uint_eq(counters().waits_no_stack, 1);
	ck_assert_uint_eq(counters().waiting, 0);
}
END_TEST

START_TEST(nonsense_ends_the_channel)
{
	struct channel_result r[] = {
		waited(1, 10), waited(1, 0), waited(1, 10), waited(1, 10), waited(1, 10), waited(1, 10),
	};

	r[0].entry = SLOT_WAIT_VALUE32;		/* the device's wait, not the host's */
	r[1].cause = CAUSE_NO_END;
	r[2].flags |= LAUNCH_COPY;
	r[3].waited = 10;
	r[4].entry = ENTRY_LAUNCH_KERNEL;
	r[5].flags = 0;
	for (size_t i = 0; i < sizeof(r) / sizeof(r[0]); i++) {
		setup();
		hello();
		put_result(&r[i]);
		launches__poll(launches);
		ck_assert_msg(counters().bad_channels == 1, "%zu", i);
		launches__finish(launches);
	}
}
END_TEST

/* A copy and the wait for it: one record, two entries. */
START_TEST(copies_that_are_waited_for)
{
	struct channel_result r = timed(1, 700);

	setup();
	hello();
	r.entry = SLOT_DTOH;
	r.flags = LAUNCH_COPY;
	r.copy = COPY_DTOH;
	r.bytes = 64;
	r.waited = 5000;
	put_result(&r);
	record_wait(1, 11, 20, LAUNCH_COPY);
	launches__poll(launches);
	launches__finish(launches);
	ck_assert_uint_eq(tally__count(tally), 2);
	ck_assert_uint_eq(tally__at(tally, 0)->key.kind, TALLY_WAIT);
	ck_assert_uint_eq(tally__at(tally, 0)->ns, 5000);
	ck_assert_uint_eq(tally__at(tally, 1)->key.kind, TALLY_COPY);
	ck_assert_uint_eq(tally__at(tally, 1)->ns, 700);
}
END_TEST

/*
 * Where each stands for 10, a block's two records pair up by themselves, though copies have records of the
 * same block; sums are scaled to the stratum's number; and no number of launches has waits in it.
 */
START_TEST(sampled_ones_stand_for_others)
{
	static const uint64_t ns[] = { 300, 100, 500, 500 };
	struct profile *p = profile__new();
	struct profile_value v;
	struct widths *w;
	uint32_t frame, node;
	size_t pos = 0;

	setup();
	hello();
	for (uint64_t i = 0; i < 4; i++) {
		struct channel_result r = waited(i + 1, ns[i]);

		r.stands_for = 10;
		r.stratum = 17 | BLOCK(1 + (uint32_t)i / 2);
		put_result(&r);
		record_wait(i + 1, 11, 20, LAUNCH_WAIT);
	}
	segment->strata[17] = 50;	/* ten of them in a block that has begun */
	launches__poll(launches);
	launches__finish(launches);
	ck_assert_uint_eq(of_stack(11)->ns, 14000);
	/* w (w - 1) (a - b)^2, of the first block; the second one's are alike */
	ck_assert(of_stack(11)->ns_variance == 10.0 * 9 * 200 * 200);
	ck_assert_uint_eq(strata__totals(launches__strata(launches)).records, 0);
	ck_assert_uint_eq(strata__totals(launches__strata(launches)).launches, 0);

	ck_assert_int_eq(profile__process(p, 1, "x", &frame), 0);
	ck_assert_int_eq(profile__node(p, PROFILE_ROOT, frame, &node), 0);
	ck_assert_int_eq(profile__labels(p, &(struct profile_labels){ .pid = 1 }, &frame), 0);
	ck_assert_int_eq(widths__new(tally, launches__strata(launches), NULL, p, 1, &w), 0);
	ck_assert_int_eq(widths__add(w, of_stack(11), node, frame), 0);
	widths__finish(w);
	ck_assert_uint_eq(profile__total(p, PROFILE_WAIT_NS), 14000 * 50 / 40);
	ck_assert_uint_eq(profile__total_count(p, PROFILE_WAIT_NS), 50);
	ck_assert_uint_eq(profile__total(p, PROFILE_GPU_NS) + profile__total(p, PROFILE_LAUNCHES), 0);
	ck_assert(profile__next(p, &pos, &v) && !v.flags && v.value == 1400 && v.count == 4);
	ck_assert(profile__next(p, &pos, &v) && v.flags == PROFILE_ESTIMATED);
	ck_assert(v.variance == 10.0 * 9 * 200 * 200 * 50 * 50 / 40 / 40);
	ck_assert_uint_eq(profile__run(p)->looked_at, 0);
	widths__free(w);
	profile__free(p);
}
END_TEST

/* What finds no room among the strata shares one: waits are told apart by their records there. */
START_TEST(a_stratum_of_both)
{
	struct strata *s = strata__new();
	uint32_t id = strata__add(s);

	for (int i = 0; i < 3; i++)
		strata__saw(s, id, 20, true);
	strata__saw(s, id, 40, false);
	strata__saw(s, 0, 1, false);
	strata__set_launches(s, id, 200);
	ck_assert(strata__scale(s, id) == 2);
	ck_assert_uint_eq(strata__totals(s).records, 3);
	ck_assert_uint_eq(strata__totals(s).launches, 120);
	strata__free(s);
}
END_TEST

UNIT_MAIN("waits",
	  the_part_in_the_capture_counts,
	  under_way_up_to_the_end,
	  made_up_ones_do_no_harm,
	  nonsense_ends_the_channel,
	  copies_that_are_waited_for,
	  sampled_ones_stand_for_others,
	  a_stratum_of_both)
