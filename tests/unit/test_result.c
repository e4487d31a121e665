// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A result whose place does not take it is saved elsewhere; where that fails, too, it is said. */
#include "loader/result.h"

#include <pty.h>
#include <sys/resource.h>

#include "loader/base/log.h"
#include "loader/exit_codes.h"
#include "loader/inherited.h"
#include "tests/unit/output_file.h"

static struct caller self;
static char *command[] = { (char *)(uintptr_t)"/bin/train", NULL };
static int messages[2];

static struct profile *some_profile(size_t functions)
{
	struct profile *p = profile__new();
	struct profile_labels labels = { .pid = 42, .tid = 42, .device = PROFILE_NO_LABEL };
	uint32_t root, node, frame, label;
	char name[32];

	ck_assert_int_eq(profile__process(p, 42, "train", &root), 0);
	ck_assert_int_eq(profile__node(p, PROFILE_ROOT, root, &root), 0);
	ck_assert_int_eq(profile__labels(p, &labels, &label), 0);
	for (size_t i = 0; i < functions; i++) {
		struct profile_frame f = { .kind = PROFILE_NATIVE, .name = name };

		snprintf(name, sizeof(name), "function_%zu", i);
		ck_assert_int_eq(profile__frame(p, &f, &frame), 0);
		ck_assert_int_eq(profile__node(p, root, frame, &node), 0);
		ck_assert_int_eq(profile__add(p, node, label, PROFILE_CPU_NS, 0, 50000000, 1), 0);
	}
	profile__run(p)->metrics = 1u << PROFILE_CPU_NS;
	return p;
}

/* All that was said on stderr since the last call. */
static const char *said(void)
{
	static char buf[65536];
	ssize_t n = read(messages[0], buf, sizeof(buf) - 1);

	buf[n > 0 ? n : 0] = '\0';
	return buf;
}

static void setup(void)
{
	fresh_directory();
	inherited__ignore(false);
	self = (struct caller){ .uid = geteuid(), .gid = getegid() };
	ck_assert_int_eq(pipe2(messages, O_NONBLOCK), 0);
	ck_assert_int_eq(dup2(messages[1], STDERR_FILENO), STDERR_FILENO);
}

static struct result *open_result(const struct options *o)
{
	struct result *r = NULL;
	char *why = NULL;

	ck_assert_int_eq(result__new(o, &self, -1, o->command ? 42 : 0, &r, &why), 0);
	return r;
}

static int write_result(const struct options *o, size_t functions)
{
	struct profile *p = some_profile(functions);
	struct result *r = open_result(o);
	int code = result__write(r, p);

	result__free(r);
	profile__free(p);
	return code;
}

static size_t times(const char *text, const char *part)
{
	size_t n = 0;

	while ((text = strstr(text, part))) {
		text += strlen(part);
		n++;
	}
	return n;
}

static void has(const char *text, const char *part)
{
	ck_assert_msg(strstr(text, part) != NULL, "'%s' is not in:\n%s", part, text);
}

START_TEST(what_its_place_does_not_take_is_saved)
{
	struct options o = { .metric = METRIC_CPU, .output = "/dev/full", .command = command };
	const char *text;

	setup();
	ck_assert_int_eq(write_result(&o, 3), EXIT_OWN_FAILURE);
	text = said();
	has(text, "error: can't write /dev/full: no space left");
	has(text, "; saved to gpucollect-train-42.folded\n");
	has(text, "wrote gpucollect-train-42.folded: 3 stacks");
	ck_assert_uint_eq(times(text, "error: "), 1);
	ck_assert_uint_eq(times(content("gpucollect-train-42.folded"), "\n"), 3);
	/* There is no other status that 1 could be taken for. */
	o = (struct options){ .metric = METRIC_CPU, .output = "/dev/full" };
	ck_assert_int_eq(write_result(&o, 3), EXIT_PARTIAL);
	said();
}
END_TEST

START_TEST(files_may_have_a_limit)
{
	struct rlimit r = { 4096, RLIM_INFINITY }, none = { RLIM_INFINITY, RLIM_INFINITY };
	struct options o = { .metric = METRIC_CPU, .output = "x.folded", .force = true };
	struct profile *large = some_profile(1000);
	struct result *result;
	const char *text;
	int code;

	setup();
	ck_assert_int_eq(write_result(&o, 3), EXIT_COMPLETE);
	said();
	result = open_result(&o);
	/* The unit tests' own file has passed the limit long since: no assertion in between. */
	setrlimit(RLIMIT_FSIZE, &r);
	code = result__write(result, large);
	setrlimit(RLIMIT_FSIZE, &none);
	ck_assert_int_eq(code, EXIT_OWN_FAILURE);
	text = said();
	has(text, "error: can't write x.folded: ");
	has(text, "ulimit -f; and it can't be saved: can't write gpucollect-capture-");
	has(text, "; can't write /tmp/gpucollect-capture-");
	ck_assert_ptr_null(strstr(text, "wrote"));
	ck_assert_uint_eq(times(text, "error: "), 1);
	/* What was there stays, nothing half lies about. */
	ck_assert_uint_eq(times(content("x.folded"), "\n"), 3);
	ck_assert_int_eq(count_files(), 1);
	result__free(result);
	profile__free(large);
}
END_TEST

START_TEST(terminals_may_be_gone)
{
	struct options o = { .metric = METRIC_CPU };
	char name[64];
	int master, slave;
	struct result *r;
	struct profile *p = some_profile(3);

	setup();
	ck_assert_int_eq(openpty(&master, &slave, NULL, NULL, NULL), 0);
	ck_assert_int_eq(dup2(slave, STDOUT_FILENO), STDOUT_FILENO);
	r = open_result(&o);
	close(master);
	ck_assert_int_eq(result__write(r, p), EXIT_PARTIAL);
	snprintf(name, sizeof(name), "gpucollect-capture-%d.folded", (int)getpid());
	has(said(), name);
	/* Not the short table that the terminal would have shown. */
	ck_assert_uint_eq(times(content(name), "train (pid 42);function_"), 3);
	result__free(r);
	profile__free(p);
}
END_TEST

START_TEST(directories_may_be_removed)
{
	struct options o = { .metric = METRIC_CPU, .output = "dir/x.folded" };
	struct profile *p = some_profile(3);
	char name[64], cwd[4096], far[128];
	struct result *r;

	setup();
	ck_assert_ptr_nonnull(getcwd(cwd, sizeof(cwd)));
	snprintf(name, sizeof(name), "gpucollect-capture-%d.folded", (int)getpid());
	snprintf(far, sizeof(far), "/tmp/%s", name);
	ck_assert_int_eq(mkdir("dir", 0755), 0);
	r = open_result(&o);
	ck_assert_int_eq(rmdir("dir"), 0);
	ck_assert_int_eq(result__write(r, p), EXIT_PARTIAL);
	ck_assert_uint_eq(times(content(name), "\n"), 3);
	/* The current one, too. */
	unlink(name);
	ck_assert_int_eq(rmdir(cwd), 0);
	ck_assert_int_eq(result__write(r, p), EXIT_PARTIAL);
	has(said(), far);
	ck_assert_uint_eq(times(content(far), "\n"), 3);
	unlink(far);
	result__free(r);
	profile__free(p);
}
END_TEST

START_TEST(in_between_nothing_is_saved_elsewhere)
{
	struct options o = { .metric = METRIC_CPU, .output = "dir/x.folded" };
	struct profile *p = some_profile(3), *empty = profile__new();
	struct result *r;

	setup();
	ck_assert_int_eq(mkdir("dir", 0755), 0);
	r = open_result(&o);
	result__write_now(r, empty);
	ck_assert_str_eq(said(), "gpucollect: nothing to write yet; recording goes on\n");
	result__write_now(r, p);
	ck_assert_str_eq(said(), "gpucollect: wrote dir/x.folded; recording goes on\n");
	ck_assert_uint_eq(times(content("dir/x.folded"), "\n"), 3);
	ck_assert_int_eq(unlink("dir/x.folded") || rmdir("dir"), 0);
	result__write_now(r, p);
	has(said(), "error: can't write dir/x.folded: ");
	ck_assert_int_eq(count_files(), 0);
	/* At the end it is. */
	ck_assert_int_eq(result__write(r, p), EXIT_PARTIAL);
	ck_assert_int_eq(count_files(), 1);
	result__free(r);
	profile__free(empty);
	profile__free(p);
}
END_TEST

UNIT_MAIN("result", what_its_place_does_not_take_is_saved, files_may_have_a_limit,
	  terminals_may_be_gone, directories_may_be_removed, in_between_nothing_is_saved_elsewhere)
