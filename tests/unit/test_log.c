// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static int reader;

static void catch_stderr(void)
{
	int fds[2];

	ck_assert_int_eq(pipe2(fds, O_NONBLOCK), 0);
	ck_assert_int_eq(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
	close(fds[1]);
	reader = fds[0];
}

static const char *caught(void)
{
	static char buf[65536];
	ssize_t n;

	n = read(reader, buf, sizeof(buf) - 1);
	buf[n > 0 ? n : 0] = '\0';
	return buf;
}

/* The same from a terminal, which hands on what it was given when it pleases. */
static const char *caught_on_terminal(size_t len)
{
	struct pollfd fd = { .fd = reader, .events = POLLIN };
	static char buf[65536];
	size_t have = 0;
	ssize_t n;

	while (have < len && poll(&fd, 1, 10000) == 1) {
		n = read(reader, buf + have, sizeof(buf) - 1 - have);
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	buf[have] = '\0';
	return buf;
}

START_TEST(levels_have_prefixes_and_limits)
{
	catch_stderr();
	log_error("one %d", 1);
	log_warn("two");
	log_info("three");
	log_debug("four");
	ck_assert_str_eq(caught(), "gpucollect: error: one 1\ngpucollect: warning: two\n"
				   "gpucollect: three\n");
	log__set_level(LOG_DEBUG);
	log_debug("four");
	ck_assert_str_eq(caught(), "gpucollect: debug: four\n");
	log__set_level(LOG_ERROR);
	log_warn("five");
	log_error("six");
	ck_assert_str_eq(caught(), "gpucollect: error: six\n");
}
END_TEST

START_TEST(scripts_get_objects)
{
	char big[10000];

	catch_stderr();
	log__set_json(true);
	log_error("can't write \"%s\"", "\x1b[m\n");
	log_warn("two");
	log_info("three");
	log_debug("four");
	ck_assert_str_eq(caught(),
			 "{\"gpucollect\":\"error\",\"text\":\"can't write \\\"\\u001b[m\\n\\\"\"}\n"
			 "{\"gpucollect\":\"warning\",\"text\":\"two\"}\n"
			 "{\"gpucollect\":\"info\",\"text\":\"three\"}\n");
	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	log_info("%s", big);
	ck_assert_ptr_nonnull(strstr(caught(), "xxx…\"}\n"));
}
END_TEST

START_TEST(errno_survives)
{
	catch_stderr();
	close(STDERR_FILENO);
	errno = ENOTTY;
	log_error("x");
	ck_assert_int_eq(errno, ENOTTY);
	log__progress("x");
	ck_assert_int_eq(errno, ENOTTY);
}
END_TEST

START_TEST(hostile_names_do_not_reach_the_terminal)
{
	catch_stderr();
	log_info("comm \"%s\"", "\x1b]0;x\x07\r\xff\xc2\x9b");
	ck_assert_str_eq(caught(), "gpucollect: comm \"?]0;x????\"\n");
	log_info("a\nb");
	ck_assert_str_eq(caught(), "gpucollect: a\nb\n");
}
END_TEST

START_TEST(what_may_come_a_million_times_is_told_ten_times)
{
	catch_stderr();
	for (int i = 0; i < 1000000; i++)
		log_warn_some("%d", i);
	ck_assert_str_eq(caught(), "gpucollect: warning: 0\ngpucollect: warning: 1\n"
				   "gpucollect: warning: 2\ngpucollect: warning: 3\n"
				   "gpucollect: warning: 4\ngpucollect: warning: 5\n"
				   "gpucollect: warning: 6\ngpucollect: warning: 7\n"
				   "gpucollect: warning: 8\ngpucollect: warning: 9\n"
				   "gpucollect: warning: there are more like the last one; "
				   "they are not shown\n");
}
END_TEST

START_TEST(long_messages_are_cut_with_a_mark)
{
	char big[10000];
	const char *out;
	size_t len;

	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	catch_stderr();
	log_info("%s", big);
	out = caught();
	len = strlen(out);
	ck_assert_uint_lt(len, 5000);
	ck_assert_str_eq(out + len - 5, "x…\n");
	for (size_t i = 0; i + 2 < sizeof(big); i += 2)
		memcpy(big + i, "\xc3\xa4", 2);		/* ä: the cut must not fall inside */
	log_info("%s", big);
	ck_assert_ptr_null(strchr(caught(), '?'));
}
END_TEST

START_TEST(progress_is_for_terminals_only)
{
	catch_stderr();
	setenv("TERM", "xterm", 1);
	log__progress("1 of 2");
	log__progress_end();
	ck_assert_str_eq(caught(), "");
}
END_TEST

static void open_terminal(int *master, int *slave)
{
	setenv("TERM", "xterm", 1);
	ck_assert_int_eq(openpty(master, slave, NULL, NULL, NULL), 0);
	fcntl(*master, F_SETFL, O_NONBLOCK);
	reader = *master;
}

START_TEST(progress_fits_the_terminal)
{
	static const char want[] = "\r\033[Kgpucollect: \xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
				   "\r\033[K";
	struct winsize w = { .ws_row = 5, .ws_col = 19 };
	int master, slave;

	open_terminal(&master, &slave);
	ck_assert_int_eq(ioctl(slave, TIOCSWINSZ, &w), 0);
	dup2(slave, STDERR_FILENO);
	log__progress("%s", "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4");
	log__progress_end();
	ck_assert_str_eq(caught_on_terminal(sizeof(want) - 1), want);
}
END_TEST

/* In a session of its own with that terminal; in the foreground or not. */
static void show_progress(int slave, bool foreground)
{
	pid_t other;

	if (setsid() < 0 || ioctl(slave, TIOCSCTTY, 0))
		_exit(1);
	dup2(slave, STDERR_FILENO);
	other = foreground ? getpid() : fork();
	if (!other) {
		pause();
		_exit(0);
	}
	signal(SIGTTOU, SIG_IGN);
	if (setpgid(other, other) && !foreground)
		_exit(2);
	if (tcsetpgrp(slave, other))
		_exit(3);
	log__progress("1 of 2");
	log_info("end");
	if (!foreground)
		kill(other, SIGKILL);
	_exit(0);
}

/* A job in the background keeps its fingers off the line that the user is typing in. */
START_TEST(progress_is_for_the_foreground)
{
	static const char with[] = "\r\033[Kgpucollect: 1 of 2\r\033[Kgpucollect: end\r\n";
	static const char without[] = "gpucollect: end\r\n";

	for (int foreground = 0; foreground < 2; foreground++) {
		const char *want = foreground ? with : without;
		int master, slave, status;
		pid_t child;

		open_terminal(&master, &slave);
		child = fork();
		ck_assert_int_ge(child, 0);
		if (!child)
			show_progress(slave, foreground);
		ck_assert_str_eq(caught_on_terminal(strlen(want)), want);
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert_int_eq(status, 0);
		close(master);
		close(slave);
	}
}
END_TEST

START_TEST(a_message_takes_the_place_of_progress)
{
	static const char want[] = "\r\033[Kgpucollect: 1 of 2\r\033[Kgpucollect: done\r\n";
	int master, slave;

	open_terminal(&master, &slave);
	dup2(slave, STDERR_FILENO);
	log__progress("1 of 2");
	log__progress("2 of 2\n");		/* too early: not shown */
	log_info("done");
	log__progress_end();
	ck_assert_str_eq(caught_on_terminal(sizeof(want) - 1), want);
	setenv("TERM", "dumb", 1);
	usleep(600000);
	log__progress("3 of 3");	/* not shown: the next thing that comes is the message */
	log_info("end");
	ck_assert_str_eq(caught_on_terminal(17), "gpucollect: end\r\n");
}
END_TEST

/* "^C" stands where the next line would begin; where there is progress that is erased, and this with it. */
START_TEST(a_key_that_is_shown_gets_a_line)
{
	static const char want[] = "\r\ngpucollect: one\r\ngpucollect: two\r\n"
				   "\r\n"	/* and a table on stdout */
				   "\r\033[Kgpucollect: 1 of 2\r\033[K"
				   "\r\033[Kgpucollect: 2 of 2\r\033[K";
	int master, slave;

	open_terminal(&master, &slave);
	dup2(slave, STDERR_FILENO);
	log__key_shown();
	log_info("one");
	log_info("two");
	log__set_level(LOG_ERROR);
	log__key_shown();
	log__progress_end();
	log__progress_end();
	log__set_level(LOG_INFO);
	log__progress("1 of 2");
	log__key_shown();
	log__progress_end();
	usleep(600000);
	log__key_shown();
	log__progress("2 of 2");
	log__progress_end();
	ck_assert_str_eq(caught_on_terminal(sizeof(want) - 1), want);
	catch_stderr();
	log__key_shown();
	log_info("no terminal");
	log__progress_end();
	ck_assert_str_eq(caught(), "gpucollect: no terminal\n");
}
END_TEST

UNIT_MAIN("log", levels_have_prefixes_and_limits, scripts_get_objects, errno_survives,
	  hostile_names_do_not_reach_the_terminal,
	  what_may_come_a_million_times_is_told_ten_times, long_messages_are_cut_with_a_mark,
	  progress_is_for_terminals_only, progress_fits_the_terminal,
	  progress_is_for_the_foreground, a_message_takes_the_place_of_progress,
	  a_key_that_is_shown_gets_a_line)
