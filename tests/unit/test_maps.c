// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/maps.h"
#include "tests/unit/unit.h"

static int parse(const char *text, struct maps_line *out)
{
	static char line[8192];	/* out->path points into it */

	snprintf(line, sizeof(line), "%s", text);
	return maps__parse(line, out);
}

START_TEST(fields_of_a_line)
{
	struct maps_line m;

	ck_assert_int_eq(parse("7f5b0c000000-7f5b0c021000 r-xp 0001f000 fe:0a 1234567890      "
			       "             /usr/lib/libfoo.so\n", &m), 0);
	ck_assert_uint_eq(m.start, 0x7f5b0c000000);
	ck_assert_uint_eq(m.end, 0x7f5b0c021000);
	ck_assert_uint_eq(m.offset, 0x1f000);
	ck_assert_uint_eq(m.dev_major, 0xfe);
	ck_assert_uint_eq(m.dev_minor, 0x0a);
	ck_assert_uint_eq(m.inode, 1234567890);
	ck_assert(m.executable);
	ck_assert_str_eq(m.path, "/usr/lib/libfoo.so");
}
END_TEST

START_TEST(anonymous_and_special_ones)
{
	struct maps_line m;

	ck_assert_int_eq(parse("00400000-00401000 rwxp 00000000 00:00 0 \n", &m), 0);
	ck_assert(m.executable);
	ck_assert_uint_eq(m.inode, 0);
	ck_assert_str_eq(m.path, "");
	ck_assert_int_eq(parse("00400000-00401000 rw-p 00000000 00:00 0", &m), 0);
	ck_assert(!m.executable);
	ck_assert_str_eq(m.path, "");
	ck_assert_int_eq(parse("7ffd1000-7ffd3000 r-xp 00000000 00:00 0                          "
			       "[vdso]\n", &m), 0);
	ck_assert_str_eq(m.path, "[vdso]");
	/* The last page there is, and a shared mapping. */
	ck_assert_int_eq(parse("ffffffffff600000-ffffffffff601000 --xs 00000000 00:00 0 "
			       "[vsyscall]\n", &m), 0);
	ck_assert_uint_eq(m.start, 0xffffffffff600000);
	ck_assert(m.executable);
}
END_TEST

START_TEST(names_that_mislead)
{
	static const char *const names[][2] = {
		{ "/a b  c", "/a b  c" },
		{ "/x (deleted)", "/x (deleted)" },
		{ "/ends in 12", "/ends in 12" },
		{ "/two\\012lines", "/two\nlines" },
		{ "/ends\\012", "/ends\n" },
		{ "/\\012\\012", "/\n\n" },
		{ "/\\01", "/\\01" },
		{ "/back\\slash\\0123", "/back\\slash\n3" },
		{ "/7f00-8f00 r-xp 0 0:0 0", "/7f00-8f00 r-xp 0 0:0 0" },
	};
	char line[256];
	struct maps_line m;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(line, sizeof(line), "1000-2000 r-xp 00000000 08:01 5       %s\n", names[i][0]);
		ck_assert_int_eq(parse(line, &m), 0);
		ck_assert_str_eq(m.path, names[i][1]);
		ck_assert_uint_eq(m.inode, 5);
	}
}
END_TEST

START_TEST(what_is_no_line)
{
	static const char *const bad[] = {
		"", "\n", "garbage", "1000-2000", "1000-2000 r-xp", "1000-2000 r-xp 0 08:01",
		"1000-2000 r-xp 0 0801 5 /x", "2000-1000 r-xp 0 08:01 5 /x",
		"1000-1000 r-xp 0 08:01 5 /x", "zzzz-2000 r-xp 0 08:01 5 /x",
		"1000 2000 r-xp 0 08:01 5 /x",
	};
	struct maps_line m;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(parse(bad[i], &m), -EINVAL);
}
END_TEST

START_TEST(long_path)
{
	char line[8000], path[6000];
	struct maps_line m;

	memset(path, 'p', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	snprintf(line, sizeof(line), "1000-2000 r-xp 00000000 08:01 5 %s\n", path);
	ck_assert_int_eq(parse(line, &m), 0);
	ck_assert_str_eq(m.path, path);
}
END_TEST

struct seen {
	unsigned int nr;
	uint64_t last_end;
	uint64_t wanted;	/* an address */
	bool found;
	int stop_after;		/* -1: never */
};

static int see(const struct maps_line *line, void *arg)
{
	struct seen *s = arg;

	ck_assert(line->executable);
	ck_assert_uint_ge(line->start, s->last_end);
	s->last_end = line->end;
	s->nr++;
	if (s->wanted >= line->start && s->wanted < line->end)
		s->found = true;
	return s->stop_after >= 0 && s->nr > (unsigned int)s->stop_after ? 77 : 0;
}

START_TEST(own_mappings)
{
	struct seen s = { .wanted = (uint64_t)(uintptr_t)&see, .stop_after = -1 };

	ck_assert_int_eq(maps__read(getpid(), see, &s), 0);
	ck_assert(s.found);
	ck_assert_uint_gt(s.nr, 2);	/* the program, libc, ld.so, the vDSO */
}
END_TEST

static int see_all(const struct maps_line *line, void *arg)
{
	struct seen *s = arg;

	s->nr += !line->executable;
	if (s->wanted >= line->start && s->wanted < line->end)
		s->found = true;
	return 0;
}

START_TEST(data_and_stacks_too)
{
	struct seen s = { .wanted = (uint64_t)(uintptr_t)&s };

	ck_assert_int_eq(maps__read_all(getpid(), see_all, &s), 0);
	ck_assert(s.found);
	ck_assert_uint_gt(s.nr, 2);
}
END_TEST

START_TEST(callers_error_ends_it)
{
	struct seen s = { .stop_after = 1 };

	ck_assert_int_eq(maps__read(getpid(), see, &s), 77);
	ck_assert_uint_eq(s.nr, 2);
}
END_TEST

START_TEST(nobody)
{
	struct seen s = { .stop_after = -1 };
	pid_t child = fork();

	if (!child)
		_exit(0);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	ck_assert_int_lt(maps__read(child, see, &s), 0);
	ck_assert_uint_eq(s.nr, 0);
}
END_TEST

static void *linger(void *arg)
{
	pause();
	return arg;
}

/* Its own maps are empty then, those of the other threads are not. */
START_TEST(first_thread_gone)
{
	struct seen s = { .wanted = (uint64_t)(uintptr_t)&see, .stop_after = -1 };
	char path[64], state = 0;
	pthread_t t;
	pid_t child = fork();

	if (!child) {
		pthread_create(&t, NULL, linger, NULL);
		pthread_exit(NULL);
	}
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)child);
	for (int i = 0; i < 1000 && state != 'Z'; i++) {
		FILE *f = fopen(path, "r");

		usleep(10000);
		ck_assert_ptr_nonnull(f);
		if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
			state = 0;
		fclose(f);
	}
	ck_assert_int_eq(state, 'Z');
	ck_assert_int_eq(maps__read(child, see, &s), 0);
	ck_assert(s.found);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}
END_TEST

UNIT_MAIN("maps", fields_of_a_line, anonymous_and_special_ones, names_that_mislead, what_is_no_line,
	  long_path, own_mappings, data_and_stacks_too, callers_error_ends_it, nobody,
	  first_thread_gone)
