// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What belongs to a capture, and whose a library is. */
#include <sys/wait.h>

#include "gpu_timing/reader.h"
#include "loader/strata.h"
#include "tests/unit/launches_setup.h"

static void record_at(uint64_t id, uint64_t time)
{
	const struct rec_launch r = {
		.head.time = time, .tgid = (uint32_t)getpid(), .tid = 77, .id = id,
	};

	ck_assert_int_eq(launches__record(launches, &process, &r, (uint32_t)time), 0);
}

/* By the library and by probes; in time, without a time, and with no result at all. */
START_TEST(only_launches_of_the_capture_count)
{
	struct channel_result r;

	setup();
	hello();
	launches__only(launches, 200, 300);
	for (uint64_t id = 1; id <= 4; id++) {
		r = timed(id, 100);
		put_result(&r);
	}
	record_at(1, 199);
	record_at(2, 200);
	record_at(3, 299);
	record_at(4, 300);
	record_at(5, 150);
	record_at(6, 250);	/* was under way at the end */
	r = timed(7, 0);
	r.cause = CAUSE_NO_END;
	put_result(&r);
	record_at(7, 350);
	launches__poll(launches);
	launches__exited(launches, &process, UINT64_MAX);
	record_at(0, 199);
	record_at(0, 201);
	record_at(0, 301);
	ck_assert_uint_eq(tally__count(tally), 4);
	ck_assert_uint_eq(of_stack(200)->ns, 100);
	ck_assert_uint_eq(of_stack(299)->ns, 100);
	ck_assert_uint_eq(of_stack(250)->timed, 0);
	ck_assert_uint_eq(of_stack(201)->count, 1);
	ck_assert_uint_eq(counters().no_end, 1);
	ck_assert_uint_eq(counters().by_cause[CAUSE_NO_END], 1);
	ck_assert_uint_eq(counters().by_cause[CAUSE_NONE], 2);
	ck_assert_uint_eq(counters().without_library, 1);
}
END_TEST

/*
 * The stratum's records speak of 25 launches where there were 20: of its last block there was less.
 * Those before the capture, and those that did not run, are in no total.
 */
START_TEST(totals_are_of_the_capture)
{
	static const struct {
		uint64_t time;
		uint32_t weight;
		enum launch_cause cause;
	} made[] = {
		{ 150, 10, CAUSE_NONE }, { 210, 5, CAUSE_NONE }, { 220, 3, CAUSE_DISTURBED },
		{ 230, 2, CAUSE_CAPTURED }, { 240, 5, CAUSE_NONE },
	};
	struct strata_totals totals;

	setup();
	hello();
	launches__only(launches, 200, 300);
	segment->strata[7] = 20;
	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
		struct channel_result r = timed(i + 1, made[i].cause ? 0 : 100);

		r.stands_for = made[i].weight;
		r.stratum = 7;
		r.cause = (uint16_t)made[i].cause;
		put_result(&r);
		record_at(i + 1, made[i].time);
	}
	/* Of no stratum, before the capture and in it. */
	for (uint64_t id = 11; id <= 13; id++) {
		struct channel_result r = timed(id, 100);

		put_result(&r);
		record_at(id, 160 + 30 * (id - 11));
	}
	launches__poll(launches);
	launches__finish(launches);
	totals = strata__totals(launches__strata(launches));
	/* 13 of the 25 that the stratum's records speak of, where it has 20: 10.4; and one. */
	ck_assert_uint_eq(totals.records, 3 + 1);
	ck_assert_uint_eq(totals.launches, 10 + 1);
}
END_TEST

START_TEST(armed_is_said_once)
{
	setup();
	hello();
	segment->state = CHANNEL_STARTING;
	launches__poll(launches);
	ck_assert_uint_eq(armed, 0);
	segment->state = CHANNEL_RUNNING;
	launches__poll(launches);
	launches__poll(launches);
	ck_assert_uint_eq(armed, 1);
	ck_assert_uint_eq(refusals + taken, 0);
}
END_TEST

/* A process that holds the segment until it is killed. */
static pid_t other_collector(int fd)
{
	int pipefd[2];
	char byte;
	pid_t pid;

	ck_assert_int_eq(pipe(pipefd), 0);
	pid = fork();
	if (!pid) {
		struct channel *channel;
		pid_t holder;

		if (channel__open(fd, &channel) || channel__claim(channel, &holder) ||
		    write(pipefd[1], "x", 1) != 1)
			_exit(1);
		pause();
	}
	ck_assert_int_eq(read(pipefd[0], &byte, 1), 1);
	return pid;
}

START_TEST(a_library_of_another_collector_is_left_alone)
{
	uint64_t held;
	pid_t other;
	int fd;

	setup();
	fd = make_segment();
	segment->site = SITE_NOP1;
	other = other_collector(fd);
	held = segment->collector;
	ck_assert_uint_ne(held, 0);
	launches__hello(launches, &process, fd);
	launches__poll(launches);
	launches__poll(launches);
	ck_assert_uint_eq(taken, 1);
	ck_assert_int_eq(taken_by, other);
	ck_assert_uint_eq(armed + refusals + counters().libraries, 0);
	launches__stop(launches);
	launches__finish(launches);
	ck_assert_uint_eq(segment->collector, held);
	ck_assert_uint_eq(segment->heartbeat, 0);
	ck_assert_uint_eq(segment->command, CHANNEL_RUN);
	ck_assert_uint_eq(segment->site, SITE_NOP1);
	/* What a dead one held can be had. */
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	launches__free(launches);
	setup();
	launches__hello(launches, &process, fd);
	ck_assert_uint_eq(counters().libraries, 1);
	ck_assert_uint_ne(segment->collector, held);
	launches__finish(launches);
	ck_assert_uint_eq(segment->collector, 0);
}
END_TEST

/* One that begins when all is over is not answered: it ends by itself. */
START_TEST(a_late_hello_is_not_answered)
{
	setup();
	launches__stop(launches);
	hello();
	launches__poll(launches);
	ck_assert_uint_eq(segment->heartbeat, 0);
	ck_assert_uint_eq(segment->collector, 0);
	ck_assert(launches__stopped(launches));
}
END_TEST

UNIT_MAIN("launches_sessions", only_launches_of_the_capture_count, totals_are_of_the_capture,
	  armed_is_said_once, a_library_of_another_collector_is_left_alone, a_late_hello_is_not_answered)
