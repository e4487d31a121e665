// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* When a process is looked at for Python, how often, and what is said: the process is this one. */
#include <fcntl.h>
#include <stdio.h>

#include "loader/base/clock.h"
#include "loader/base/log.h"
#include "tests/unit/python_self.h"

#define MS 1000000ull
#define SECOND (1000 * MS)

static int said_fd;

static void catch_stderr(void)
{
	int fds[2];

	ck_assert_int_eq(pipe2(fds, O_NONBLOCK), 0);
	ck_assert_int_eq(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
	close(fds[1]);
	said_fd = fds[0];
	log__set_level(LOG_DEBUG);
}

/* What was said while the collector ticked `ms` long. */
static const char *said(unsigned int ms)
{
	static char buf[65536];
	uint64_t end = clock__now_ns() + ms * MS;
	ssize_t n;

	for (; clock__now_ns() < end; usleep(1000))
		python__tick(self_python);
	n = read(said_fd, buf, sizeof(buf) - 1);
	buf[n > 0 ? n : 0] = '\0';
	return buf;
}

static unsigned int count(const char *in, const char *text)
{
	unsigned int nr = 0;

	while ((in = strstr(in, text))) {
		in++;
		nr++;
	}
	return nr;
}

START_TEST(one_that_is_ready_is_known_at_once)
{
	struct process *p = self__begin();

	self__start();
	python__mapped(self_python, p);
	ck_assert_uint_eq(p->python.layout, 1);
	ck_assert_uint_eq(p->python.code, (uintptr_t)PyCode_Type);
	ck_assert_uint_eq(p->python.runtime, (uintptr_t)_PyRuntime);
	ck_assert_uint_eq(python__offsets(self_python, 1)->minor, 11);
	self__end();
}
END_TEST

/* Asked again 5, 15, 35, 75, 155, 315, 635 ms after the first look. */
START_TEST(one_that_starts_late_is_found_soon)
{
	struct process *p = self__begin();

	catch_stderr();
	python__mapped(self_python, p);
	ck_assert_uint_ge(count(said(400), "Resource temporarily unavailable"), 5);
	ck_assert_uint_eq(p->python.layout, 0);
	self__start();
	said(1200);
	ck_assert_uint_eq(p->python.layout, 1);
	self__end();
}
END_TEST

#define LOOK "CPython 3.11: Operation not supported: the list"
#define WARNING \
	"the list of threads or interpreters of CPython 3.11.7 has no end; its Python frames are not shown\n"

/* Threads come and go while they are looked at, so one look doesn't tell; seven at some distance do. */
static void check_refused(struct process *p)
{
	const char *text;

	catch_stderr();
	self__start();
	python__mapped(self_python, p);
	text = said(3000);
	ck_assert_uint_eq(count(text, LOOK), 7);
	ck_assert_uint_eq(count(text, WARNING), 1);
	ck_assert_str_eq(said(1000), "");
	/* It may have become another by what it maps now, but mapping much doesn't make us look as often. */
	for (int i = 0; i < 1000; i++)
		python__mapped(self_python, p);
	text = said(100);
	ck_assert_uint_le(count(text, LOOK), 1);
	ck_assert_uint_eq(count(text, WARNING), 0);
	for (int i = 0; i < 1000; i++) {
		python__mapped(self_python, p);
		python__tick(self_python);
	}
	ck_assert_str_eq(said(0), "");
	ck_assert_uint_eq(p->python.layout, 0);
}

START_TEST(threads_without_end_are_refused)
{
	struct process *p = self__begin();

	self__set(self_state, self_offsets.thread_next, (uintptr_t)self_state);
	self__set(self_state, self_offsets.layout.thread_id, 0);
	check_refused(p);
	self__set(self_state, self_offsets.thread_next, 0);
	self__set(self_state, self_offsets.layout.thread_id, (uint64_t)pthread_self());
	said(2000);
	ck_assert_uint_eq(p->python.layout, 1);
	self__end();
}
END_TEST

START_TEST(interpreters_without_end_are_refused)
{
	struct process *p = self__begin();

	self__set(self_interpreter, self_offsets.interpreter_next, (uintptr_t)self_interpreter);
	check_refused(p);
	self__end();
}
END_TEST

/* All looks together take a hundredth of the time in the end, whatever a process makes of them. */
START_TEST(looks_take_little_time)
{
	static const struct {
		uint64_t took, nr, last;
	} cases[] = {
		{ 20000, 1, SECOND },		/* nothing is there yet */
		{ 10 * MS, 1, SECOND },
		{ 20 * MS, 1, 2 * SECOND },
		{ 150 * MS, 1, 15 * SECOND },
		{ 20 * MS, 50, 100 * SECOND },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t delay = 5 * MS, sum = 0;

		while (delay < cases[i].last) {
			uint64_t next = python__delay(delay, cases[i].took, cases[i].nr);

			ck_assert_uint_eq(next, 2 * delay < cases[i].last ? 2 * delay : cases[i].last);
			sum += delay;
			delay = next;
		}
		ck_assert_uint_lt(sum, 2 * cases[i].last);
		ck_assert_uint_eq(python__delay(delay, cases[i].took, cases[i].nr), cases[i].last);
	}
	/* It was slow once. */
	ck_assert_uint_eq(python__delay(64 * SECOND, 20000, 1), SECOND);
}
END_TEST

UNIT_MAIN("python", one_that_is_ready_is_known_at_once, one_that_starts_late_is_found_soon,
	  threads_without_end_are_refused, interpreters_without_end_are_refused, looks_take_little_time)
