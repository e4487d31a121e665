// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Records of the ring and of a channel in this process: what of them gets into the tally. */
#include "loader/account.h"
#include "loader/works.h"
#include "tests/unit/launches_setup.h"

START_TEST(halves_meet_whichever_comes_first)
{
	struct channel_result r = timed(1, 500);
	const struct tally_value *v;

	setup();
	hello();
	record(1, 11, 0);
	put_result(&r);
	launches__poll(launches);
	r = timed(2, 700);
	put_result(&r);
	launches__poll(launches);
	ck_assert_uint_eq(tally__count(tally), 1);
	record(2, 11, 0);
	v = of_stack(11);
	ck_assert_ptr_nonnull(v);
	ck_assert_uint_eq(v->count, 2);
	ck_assert_uint_eq(v->timed, 2);
	ck_assert_uint_eq(v->ns, 1200);
	ck_assert_uint_eq(v->key.process, 5);
	ck_assert_uint_eq(v->key.tid, 77);
	ck_assert_uint_eq(v->key.stream, 9);
	ck_assert_uint_eq(v->key.kind, TALLY_LAUNCH);
	launches__finish(launches);
	ck_assert_uint_eq(tally__count(tally), 1);
	ck_assert_uint_eq(counters().no_end + counters().no_stack, 0);
	ck_assert_uint_eq(counters().libraries, 1);
}
END_TEST

static void record_copy(uint64_t id, uint32_t stack, uint32_t kind, uint64_t bytes)
{
	const struct rec_launch r = {
		.tgid = (uint32_t)getpid(), .tid = 77, .id = id, .flags = LAUNCH_COPY,
		.grid = { (uint32_t)bytes, (uint32_t)(bytes >> 32), kind },
	};

	ck_assert_int_eq(launches__record(launches, &process, &r, stack), 0);
}

static void put_copy(uint64_t id, enum copy_kind kind, uint64_t bytes, enum launch_cause cause)
{
	struct channel_result r = timed(id, cause ? 0 : 700);

	r.entry = SLOT_COPIES;
	r.flags = LAUNCH_COPY;
	r.copy = kind;
	r.bytes = bytes;
	r.cause = (uint16_t)cause;
	put_result(&r);
}

/* What the result says holds, for it came when more was known; without one the record's has to do. */
START_TEST(copies_are_kept_apart_from_launches)
{
	const uint64_t large = 5ull << 32 | 7;

	setup();
	hello();
	put_copy(1, COPY_DTOH, large, CAUSE_NONE);
	put_copy(2, COPY_DTOH, 100, CAUSE_NO_STREAM);
	put_copy(3, COPY_SET, 100, CAUSE_CAPTURED);
	put_copy(4, COPY_SET, 100, CAUSE_LAUNCH_FAILED);
	put_copy(5, COPY_SET, ~0ull, CAUSE_NONE);	/* its record was lost */
	put_copy(6, COPY_SET, ~0ull, CAUSE_NONE);
	record_copy(1, 11, COPY_UNKNOWN, 0);
	record_copy(2, 10, COPY_DTOH, 100);
	record_copy(3, 11, COPY_SET, 100);
	record_copy(4, 11, COPY_SET, 100);
	record_copy(7, 12, COPY_HTOD, large);
	record_copy(8, 13, ~0u, 1);
	record(9, 14, 0);
	launches__poll(launches);
	launches__finish(launches);
	ck_assert_uint_eq(of_stack(11)->key.kind, TALLY_COPY);
	ck_assert_uint_eq(of_stack(11)->key.work, COPY_DTOH);
	ck_assert_uint_eq(of_stack(11)->count, 1);
	ck_assert_uint_eq(of_stack(11)->bytes, large);
	ck_assert_uint_eq(of_stack(11)->timed, 1);
	ck_assert_uint_eq(of_stack(11)->ns, 700);
	ck_assert_uint_eq(of_stack(10)->bytes, 100);
	ck_assert_uint_eq(of_stack(10)->timed, 0);
	ck_assert_uint_eq(of_stack(10)->untimed, 1);
	ck_assert_uint_eq(of_stack(STACKS_NONE)->bytes, ~0ull);	/* and not less for two of them */
	ck_assert_uint_eq(of_stack(12)->key.work, COPY_HTOD);
	ck_assert_uint_eq(of_stack(12)->bytes, large);
	ck_assert_uint_eq(of_stack(13)->key.work, COPY_UNKNOWN);
	ck_assert_uint_eq(of_stack(14)->key.kind, TALLY_LAUNCH);
	ck_assert_uint_eq(of_stack(14)->bytes, 0);
	ck_assert_uint_eq(counters().copies_by_cause[CAUSE_NONE], 3);
	ck_assert_uint_eq(counters().copies_by_cause[CAUSE_CAPTURED], 1);
	ck_assert_uint_eq(counters().copies_by_cause[CAUSE_LAUNCH_FAILED], 1);
	ck_assert_uint_eq(counters().copies_by_cause[CAUSE_NO_END], 2);
	ck_assert_uint_eq(counters().by_cause[CAUSE_NONE], 0);
	ck_assert_uint_eq(counters().by_cause[CAUSE_NO_END], 1);
	ck_assert_uint_eq(counters().copies_no_stack, 2);
	ck_assert_uint_eq(counters().no_stack, 0);
	ck_assert_str_eq(launches__copy_name(COPY_PTOP), "memcpy PtoP");
	ck_assert_str_eq(launches__copy_name(COPY_DTOA), "memcpy DtoA");
	ck_assert_str_eq(launches__copy_name(~0u), "memcpy");
}
END_TEST

START_TEST(the_collectors_page_is_written)
{
	setup();
	hello();
	ck_assert_uint_eq(segment->site, SITE_NOP5);
	ck_assert_uint_ne(segment->heartbeat, 0);
	for (uint64_t beat = segment->heartbeat, i = 0; i < 3; i++, beat = segment->heartbeat) {
		launches__poll(launches);
		ck_assert_uint_ne(segment->heartbeat, beat);
	}
	ck_assert_uint_eq(segment->command, CHANNEL_RUN);
	ck_assert(!launches__stopped(launches));
	launches__stop(launches);
	ck_assert_uint_eq(segment->command, CHANNEL_STOP);
	ck_assert(!launches__stopped(launches));
	segment->state = CHANNEL_PASSIVE;
	ck_assert(launches__stopped(launches));
	launches__finish(launches);
	launches__free(launches);
	tally__free(tally);
}
END_TEST

START_TEST(a_launch_has_the_name_that_held_for_it)
{
	struct channel_result r = timed(1, 10);

	setup();
	hello();
	put_name(0x100, 1, "first", NAME_KNOWN);
	r.name = 1;
	r.function = 0x100;
	put_result(&r);
	/* The handle comes again, as another kernel's. */
	put_name(0x100, 2, "second", NAME_KNOWN);
	r.launch = 2;
	r.name = 2;
	put_result(&r);
	put_name(0x200, 3, "first", NAME_KNOWN);
	r.launch = 3;
	r.name = 3;
	put_result(&r);
	r.launch = 4;
	r.name = 99;	/* never heard of */
	put_result(&r);
	for (uint64_t id = 1; id <= 4; id++)
		record(id, (uint32_t)id, 0x100);
	launches__poll(launches);
	ck_assert_str_eq(launches__name(launches, of_stack(1)->key.work), "first");
	ck_assert_str_eq(launches__name(launches, of_stack(2)->key.work), "second");
	ck_assert_uint_eq(of_stack(3)->key.work, of_stack(1)->key.work);
	ck_assert_uint_eq(of_stack(4)->key.work, 0);
}
END_TEST

START_TEST(empty_absent_and_unknown_names_are_three_things)
{
	static const enum channel_name_status status[] = { NAME_KNOWN, NAME_NULL, NAME_ERROR };
	uint32_t work[3];

	setup();
	hello();
	for (uint32_t i = 0; i < 3; i++) {
		struct channel_result r = timed(i + 1, 10);

		put_name(0x100 + i, i + 1, "", status[i]);
		r.name = i + 1;
		put_result(&r);
		record(i + 1, i + 1, 0x100 + i);
	}
	launches__poll(launches);
	for (uint32_t i = 0; i < 3; i++)
		work[i] = of_stack(i + 1)->key.work;
	ck_assert_uint_ne(work[0], 0);
	ck_assert_uint_ne(work[0], WORKS_NAMELESS);
	ck_assert_uint_eq(work[1], WORKS_NAMELESS);
	ck_assert_uint_eq(work[2], 0);
	ck_assert_str_eq(launches__name(launches, work[0]), "");
}
END_TEST

/* One name, and so one mean, but each size has an entry of its own; nonsense counts as not known. */
START_TEST(kernels_of_one_name_differ_in_size)
{
	static const uint32_t registers[] = { 32, 64, 64, 0, 5000 };
	struct channel_result r;

	setup();
	hello();
	for (uint32_t i = 0; i < 5; i++) {
		put_sized(0x100 + i, i + 1, "gemm", NAME_KNOWN, registers[i], 1024);
		r = timed(i + 1, 10);
		r.name = i + 1;
		put_result(&r);
		record(i + 1, 7 + i / 4, 0x100 + i);
	}
	launches__poll(launches);
	/* Stack 7 has that of 32, twice that of 64, and the unknown one; stack 8 the nonsense. */
	ck_assert_uint_eq(tally__count(tally), 4);
	for (size_t i = 0; i < tally__count(tally); i++) {
		const struct tally_value *v = tally__at(tally, i);

		ck_assert_str_eq(launches__name(launches, v->key.work), "gemm");
		ck_assert_uint_eq(v->count, works__registers(v->key.sizes) == 64 ? 2 : 1);
		ck_assert_uint_eq(works__shared_bytes(v->key.sizes), v->key.sizes ? 1024 : 0);
	}
	ck_assert_uint_eq(of_stack(8)->key.sizes, 0);
}
END_TEST

START_TEST(what_did_not_run_is_not_counted)
{
	static const enum launch_cause ran[] = {
		CAUSE_PDL, CAUSE_OTHER_CONTEXT, CAUSE_RECORD_FAILED, CAUSE_CONTEXT_GONE,
		CAUSE_CONTEXT_ERROR, CAUSE_NO_END, CAUSE_ENTRY, CAUSE_BAD_TIME,
	};
	struct channel_result r = timed(1, 0);

	setup();
	hello();
	r.cause = CAUSE_CAPTURED;
	put_result(&r);
	r.launch = 2;
	r.cause = CAUSE_LAUNCH_FAILED;
	put_result(&r);
	for (size_t i = 0; i < sizeof(ran) / sizeof(ran[0]); i++) {
		r.launch = 3 + i;
		r.cause = (uint16_t)ran[i];
		put_result(&r);
	}
	for (uint64_t id = 1; id < 3 + sizeof(ran) / sizeof(ran[0]); id++)
		record(id, 11, 0);
	launches__poll(launches);
	ck_assert_uint_eq(of_stack(11)->count, sizeof(ran) / sizeof(ran[0]));
	ck_assert_uint_eq(of_stack(11)->timed, 0);
	/* Whether the others ran to their end isn't known. */
	ck_assert_uint_eq(of_stack(11)->untimed, 5);
	ck_assert_uint_eq(counters().by_cause[CAUSE_CAPTURED], 1);
	ck_assert_uint_eq(counters().by_cause[CAUSE_LAUNCH_FAILED], 1);
	ck_assert_uint_eq(counters().by_cause[CAUSE_PDL], 1);
}
END_TEST

START_TEST(shares_that_are_timed_by_chance)
{
	struct channel_result r = timed(1, 100);

	setup();
	hello();
	r.weight = 4;
	put_result(&r);
	r = timed(2, 0);
	r.cause = CAUSE_OUTSTANDING;
	put_result(&r);
	record(1, 11, 0);
	record(2, 12, 0);
	launches__poll(launches);
	ck_assert_uint_eq(of_stack(11)->count, 1);
	ck_assert_uint_eq(of_stack(11)->ns, 100);
	ck_assert_uint_eq(of_stack(11)->others, 3);
	ck_assert_uint_eq(of_stack(11)->others_ns, 300);
	ck_assert_uint_eq(of_stack(12)->count, 1);
	ck_assert_uint_eq(of_stack(12)->untimed, 1);
}
END_TEST

START_TEST(a_half_that_stays_alone)
{
	struct channel_result r = timed(3, 300);
	const struct rec_launch graph = {
		.tgid = (uint32_t)getpid(), .tid = 77, .id = 2, .function = 0x300, .flags = LAUNCH_GRAPH,
	};

	setup();
	hello();
	put_name(0x100, 1, "old", NAME_KNOWN);
	put_name(0x100, 2, "spin", NAME_KNOWN);
	record(1, 11, 0x100);
	ck_assert_int_eq(launches__record(launches, &process, &graph, 12), 0);
	put_result(&r);
	launches__poll(launches);
	ck_assert_uint_eq(tally__count(tally), 0);
	launches__exited(launches, &process, UINT64_MAX);
	/* Killed before its end was seen: counted, and under the name that its handle had last. */
	ck_assert_uint_eq(of_stack(11)->count, 1);
	ck_assert_uint_eq(of_stack(11)->timed, 0);
	ck_assert_str_eq(launches__name(launches, of_stack(11)->key.work), "spin");
	ck_assert(of_stack(12)->key.flags & TALLY_GRAPH);
	/* Its record was lost: the time stays, under no stack. */
	ck_assert_uint_eq(of_stack(STACKS_NONE)->ns, 300);
	ck_assert_uint_eq(counters().no_end, 2);
	ck_assert_uint_eq(counters().no_stack, 1);
	ck_assert_uint_eq(counters().by_cause[CAUSE_NO_END], 2);
}
END_TEST

START_TEST(without_a_library_launches_are_only_counted)
{
	setup();
	record(0, 11, 0);
	record(0, 11, 0);
	ck_assert_uint_eq(of_stack(11)->count, 2);
	ck_assert_uint_eq(of_stack(11)->timed, 0);
	ck_assert_uint_eq(of_stack(11)->untimed, 0);
	ck_assert_uint_eq(counters().without_library, 2);
}
END_TEST

START_TEST(a_launch_is_counted_by_the_library_or_by_a_probe)
{
	struct channel_result r = timed(1, 10);

	setup();
	hello();
	record(1, 11, 0);
	record(0, 11, 0);	/* the same one, seen in the driver */
	put_result(&r);
	launches__poll(launches);
	ck_assert_uint_eq(of_stack(11)->count, 1);
	/* Its slots are restored: only the probe is left. */
	segment->reason = REASON_SILENT;
	segment->state = CHANNEL_PASSIVE;
	launches__poll(launches);
	record(0, 12, 0);
	ck_assert_uint_eq(of_stack(12)->count, 1);
	ck_assert_uint_eq(counters().without_library, 1);
}
END_TEST

START_TEST(a_refusal_is_handed_on_once)
{
	setup();
	hello();
	launches__poll(launches);
	ck_assert_uint_eq(refusals, 0);
	segment->reason = REASON_SHAPE;
	segment->detail = 3;
	segment->state = CHANNEL_REFUSED;
	launches__poll(launches);
	launches__exited(launches, &process, UINT64_MAX);
	/* Armed was seen before, so nothing more is expected of its state. */
	ck_assert_uint_eq(refusals, 0);
	process.index++;
	hello();
	segment->reason = REASON_SHAPE;
	segment->detail = 3;
	segment->state = CHANNEL_REFUSED;
	for (int i = 0; i < 3; i++)
		launches__poll(launches);
	ck_assert_uint_eq(refusals, 1);
	ck_assert_uint_eq(refused_for, REASON_SHAPE);
	ck_assert(launches__stopped(launches));
}
END_TEST

START_TEST(a_library_that_took_us_for_dead_is_counted)
{
	setup();
	hello();
	launches__poll(launches);
	ck_assert_uint_eq(counters().gave_up, 0);
	segment->reason = REASON_STOPPED;
	segment->state = CHANNEL_PASSIVE;
	launches__poll(launches);
	ck_assert_uint_eq(counters().gave_up, 0);
	segment->reason = REASON_SILENT;
	launches__poll(launches);
	launches__poll(launches);
	ck_assert_uint_eq(counters().gave_up, 1);
}
END_TEST

/* Others look at its launches from then on: what it tells of itself would count them twice. */
static void expect_unreached(int fd, int why)
{
	setup();
	unreached = 0;
	launches__hello(launches, &process, fd);
	ck_assert_uint_eq(unreached, 1);
	ck_assert_int_eq(unreached_for, why);
	launches__hello(launches, &process, fd);
	launches__poll(launches);
	ck_assert_uint_eq(unreached, 1);
	ck_assert_uint_eq(counters().libraries, 0);
	ck_assert_uint_eq(counters().bad_channels, 1);
	record(1, 12, 0);
	record(0, 11, 0);
	launches__finish(launches);
	ck_assert_uint_eq(of_stack(11)->count, 1);
	ck_assert_ptr_null(of_stack(12));
	launches__free(launches);
	tally__free(tally);
}

START_TEST(a_segment_that_is_none)
{
	int fd;

	expect_unreached(-EMFILE, -EMFILE);
	expect_unreached(INT32_MIN, -EPROTO);
	expect_unreached(9999, -EBADF);			/* no such descriptor */
	fd = memfd(CHANNEL_SIZE, F_SEAL_GROW);		/* may be cut under us */
	expect_unreached(fd, -EINVAL);
	close(fd);
	fd = memfd(4096, SEALS);
	expect_unreached(fd, -EINVAL);
	close(fd);
}
END_TEST

START_TEST(a_ring_that_holds_nonsense)
{
	struct channel_head bad = { .size = 0xfffffff8, .type = CHANNEL_RESULT };
	struct channel_result r = timed(1, 10);

	setup();
	hello();
	put_result(&r);
	record(1, 11, 0);
	memcpy(segment->ring + segment->head, &bad, sizeof(bad));
	segment->head += 4096;
	launches__poll(launches);
	launches__poll(launches);
	ck_assert_uint_eq(counters().bad_channels, 1);
	ck_assert_uint_eq(of_stack(11)->timed, 1);
	ck_assert(launches__stopped(launches));		/* nobody waits for it */
	record(2, 12, 0);
	launches__finish(launches);
	ck_assert_uint_eq(of_stack(12)->count, 1);
}
END_TEST

/* A target must not fill our memory with halves: past a bound they are counted alone at once. */
START_TEST(launches_without_end_are_bounded)
{
	uint64_t id;

	setup();
	hello();
	for (id = 1; id <= 600000; id++)
		record(id, 11, 0x100);
	ck_assert_uint_ge(of_stack(11)->count, 300000);
	launches__finish(launches);
	ck_assert_uint_eq(of_stack(11)->count, 600000);
	ck_assert_uint_eq(counters().no_end, 600000);
	launches__free(launches);
	tally__free(tally);
}
END_TEST

START_TEST(names_are_bounded)
{
	struct launches_counters c;
	uint32_t i;

	setup();
	hello();
	for (i = 1; i <= 1200000; i++) {
		put_name(i, i, "", NAME_KNOWN);
		if (i % 1000 == 0)
			launches__poll(launches);
	}
	c = counters();
	ck_assert_uint_ge(c.lost_names, 100000);
	launches__free(launches);
	tally__free(tally);
}
END_TEST

START_TEST(a_weight_may_be_anything)
{
	static const uint32_t weights[][2] = {
		{ 0, 1 }, { 1, 1 }, { 7, 7 }, { CHANNEL_MAX_STANDS_FOR, CHANNEL_MAX_STANDS_FOR },
		{ CHANNEL_MAX_STANDS_FOR + 1, 1 }, { UINT32_MAX, 1 },
	};

	for (size_t i = 0; i < sizeof(weights) / sizeof(weights[0]); i++) {
		const struct rec_launch rec = { .weight = weights[i][0] };

		ck_assert_uint_eq(account__weight(&rec), weights[i][1]);
	}
}
END_TEST

UNIT_MAIN("launches",
	  halves_meet_whichever_comes_first,
	  the_collectors_page_is_written, copies_are_kept_apart_from_launches,
	  a_launch_has_the_name_that_held_for_it,
	  empty_absent_and_unknown_names_are_three_things, kernels_of_one_name_differ_in_size,
	  what_did_not_run_is_not_counted,
	  shares_that_are_timed_by_chance,
	  a_half_that_stays_alone,
	  without_a_library_launches_are_only_counted,
	  a_launch_is_counted_by_the_library_or_by_a_probe,
	  a_refusal_is_handed_on_once,
	  a_library_that_took_us_for_dead_is_counted,
	  a_segment_that_is_none,
	  a_ring_that_holds_nonsense,
	  launches_without_end_are_bounded,
	  names_are_bounded,
	  a_weight_may_be_anything)
