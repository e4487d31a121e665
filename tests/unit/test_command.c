// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command: held until it is released, then the caller's own, and its end. */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/command.h"
#include "tests/unit/unit.h"

static struct inherited inherited;
static struct caller caller;
static char folder[] = "/tmp/command-XXXXXX";
static char made[64];		/* a file that the command makes */

static void setup(void)
{
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(made, sizeof(made), "%s/made", folder);
	ck_assert_int_eq(inherited__save(&inherited), 0);
	caller.uid = geteuid();
	caller.gid = getegid();
}

static void teardown(void)
{
	unlink(made);
	rmdir(folder);
}

static struct command *start(char **argv, char **environment)
{
	const struct command_request request = {
		.argv = argv, .environment = environment ? environment : environ,
		.caller = &caller, .inherited = &inherited,
	};
	struct command *c = NULL;

	ck_assert_int_eq(command__new(&request, &c), 0);
	ck_assert_ptr_nonnull(c);
	return c;
}

static struct command *shell(char *script, char **environment)
{
	char sh[] = "sh", option[] = "-c";
	char *argv[] = { sh, option, script, NULL };

	return start(argv, environment);
}

static int end_of(struct command *c)
{
	struct pollfd p = { .fd = command__pidfd(c), .events = POLLIN };
	int status = -1;

	ck_assert_int_eq(poll(&p, 1, 20000), 1);
	ck_assert(command__ended(c, &status));
	/* And again: the status stays. */
	ck_assert(command__ended(c, &status));
	return status;
}

START_TEST(it_is_held_until_it_is_released)
{
	struct command *c;
	struct stat st;
	char script[128];
	int status;

	setup();
	snprintf(script, sizeof(script), "echo x >%s; exit 7", made);
	c = shell(script, NULL);
	ck_assert_int_gt(command__pid(c), 0);
	usleep(100000);		/* for a child that does not wait */
	ck_assert(!command__ended(c, &status));
	ck_assert_int_eq(stat(made, &st), -1);
	ck_assert_int_eq(command__release(c), 0);
	status = end_of(c);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	ck_assert_int_eq(stat(made, &st), 0);
	command__free(c);
	teardown();
}
END_TEST

START_TEST(never_released_it_runs_nothing_and_leaves_nobody)
{
	struct command *c;
	struct stat st;
	char script[128];

	setup();
	snprintf(script, sizeof(script), "echo x >%s", made);
	c = shell(script, NULL);
	command__free(c);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
	ck_assert_int_eq(stat(made, &st), -1);
	command__free(NULL);
	teardown();
}
END_TEST

START_TEST(a_signal_is_told_from_a_status)
{
	char term[] = "kill -TERM $$", high[] = "exit 143";
	struct command *c;
	int status;

	setup();
	c = shell(term, NULL);
	ck_assert_int_eq(command__release(c), 0);
	status = end_of(c);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	command__free(c);
	c = shell(high, NULL);
	ck_assert_int_eq(command__release(c), 0);
	status = end_of(c);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 143);
	command__free(c);
	teardown();
}
END_TEST

START_TEST(what_cannot_be_executed_says_why)
{
	static const struct {
		const char *name;
		int err, status;
	} cases[] = {
		{ "/none/x", -ENOENT, 127 },
		{ "no-such-command-anywhere", -ENOENT, 127 },
		{ "/", -EACCES, 126 },
		{ "/dev/null", -EACCES, 126 },
	};
	int status;

	setup();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char name[64];
		char *argv[] = { name, NULL };
		struct command *c;

		snprintf(name, sizeof(name), "%s", cases[i].name);
		c = start(argv, NULL);
		ck_assert_int_eq(command__release(c), cases[i].err);
		status = end_of(c);
		ck_assert(WIFEXITED(status));
		ck_assert_int_eq(WEXITSTATUS(status), cases[i].status);
		command__free(c);
	}
	teardown();
}
END_TEST

START_TEST(it_has_its_own_environment)
{
	char script[] = "test \"$HERE\" = '' && test \"$ADDED\" = 'a b'";
	char path[128], added[] = "ADDED=a b", named[] = "our-own-name";
	char *environment[] = { added, path, NULL }, *argv[] = { named, NULL };
	struct command *c;
	int status, fd;

	setup();
	setenv("HERE", "yes", 1);
	snprintf(path, sizeof(path), "PATH=%s:/usr/bin:/bin", folder);
	c = shell(script, environment);
	ck_assert_int_eq(command__release(c), 0);
	status = end_of(c);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	command__free(c);
	/* A program is looked for in its own PATH, not in ours. */
	snprintf(made, sizeof(made), "%s/%s", folder, named);
	fd = open(made, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	ck_assert_int_eq(write(fd, "#!/bin/sh\nexit 9\n", 17), 17);
	close(fd);
	c = start(argv, environment);
	ck_assert_int_eq(command__release(c), 0);
	status = end_of(c);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 9);
	command__free(c);
	teardown();
}
END_TEST

START_TEST(none_of_our_descriptors_is_left_to_it)
{
	char script[] = "ls /proc/self/fd | grep -vx '[0123]' && exit 9; exit 0";
	struct command *c;
	int status;

	setup();
	/* Those that the test itself was given are not meant. */
	ck_assert_int_eq(close_range(3, ~0u, CLOSE_RANGE_CLOEXEC), 0);
	c = shell(script, NULL);
	ck_assert_int_eq(command__release(c), 0);
	status = end_of(c);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
	command__free(c);
	teardown();
}
END_TEST

/* Under sudo: the ids of who called, all of them, and no way back. */
START_TEST(it_runs_as_the_caller)
{
	char script[] = "test \"$(id -u):$(id -ru):$(id -g):$(id -rg)\" = 4242:4242:4343:4343 && "
			"test \"$(id -G)\" = '4343 4444'";
	gid_t groups[] = { 4444 };
	struct command *c;
	int status;

	if (geteuid())
		return;
	setup();
	caller = (struct caller){
		.other = true, .uid = 4242, .gid = 4343, .groups = groups, .nr_groups = 1,
	};
	c = shell(script, NULL);
	ck_assert_int_eq(command__release(c), 0);
	status = end_of(c);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
	ck_assert_uint_eq(geteuid(), 0);
	command__free(c);
	teardown();
}
END_TEST

UNIT_MAIN("command",
	  it_is_held_until_it_is_released,
	  never_released_it_runs_nothing_and_leaves_nobody,
	  a_signal_is_told_from_a_status,
	  what_cannot_be_executed_says_why,
	  it_has_its_own_environment,
	  none_of_our_descriptors_is_left_to_it,
	  it_runs_as_the_caller)
