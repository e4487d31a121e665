// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Mappings as the kernel told them, for processes that are gone. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "loader/recent.h"
#include "tests/unit/unit.h"

static struct recent *r;
static uint64_t now;
static char said[4096];

static void map(pid_t tgid, uint64_t start, uint64_t size, uint64_t offset, const char *path)
{
	struct sampling_event event = {
		.tgid = tgid, .time = ++now, .start = start, .size = size, .offset = offset,
		.inode = path[0] == '/' && path[1] != '/' ? 7 : 0, .dev_major = 8, .dev_minor = 1,
		.path = path,
	};

	recent__add(r, &event);
}

static void exec(pid_t tgid)
{
	struct sampling_event event = { .tgid = tgid, .time = ++now, .exec = true, .path = "" };

	recent__add(r, &event);
}

static int write_down(const struct maps_line *line, void *arg)
{
	size_t at = strlen(said);

	ck_assert(line->executable);
	snprintf(said + at, sizeof(said) - at, "%llx-%llx %llx %s\n", (unsigned long long)line->start,
		 (unsigned long long)line->end, (unsigned long long)line->offset, line->path);
	return *(int *)arg;
}

static void held_at(pid_t tgid, uint64_t time, const char *wanted)
{
	int go_on = 0;

	said[0] = '\0';
	ck_assert_int_eq(recent__each(r, tgid, time, write_down, &go_on), wanted[0] ? 0 : -ESRCH);
	ck_assert_str_eq(said, wanted);
}

static void holds(pid_t tgid, const char *wanted)
{
	held_at(tgid, UINT64_MAX, wanted);
}

static void begin(void)
{
	r = recent__new();
	ck_assert_ptr_nonnull(r);
	now = 1000;
}

START_TEST(in_order_of_address)
{
	begin();
	map(5, 0x7000, 0x1000, 0x2000, "/lib");
	map(6, 0x5000, 0x1000, 0, "/other");
	map(5, 0x1000, 0x3000, 0, "/prog");
	map(5, 0x9000, 0x1000, 0, "[vdso]");
	map(5, 0xa000, 0x1000, 0, "//anon");
	holds(5, "1000-4000 0 /prog\n7000-8000 2000 /lib\n9000-a000 0 [vdso]\na000-b000 0 \n");
	holds(6, "5000-6000 0 /other\n");
	holds(7, "");
	recent__free(r);
}
END_TEST

START_TEST(since_the_last_exec)
{
	begin();
	map(5, 0x1000, 0x1000, 0, "/before");
	exec(5);
	map(5, 0x2000, 0x1000, 0, "/after");
	exec(6);
	holds(5, "2000-3000 0 /after\n");
	exec(5);
	holds(5, "");
	recent__free(r);
}
END_TEST

START_TEST(the_program_of_that_time)
{
	uint64_t first, second;

	begin();
	map(5, 0x1000, 0x1000, 0, "/a");
	first = now;
	ck_assert(!recent__replaced(r, 5, first));
	exec(6);
	ck_assert(!recent__replaced(r, 5, first));
	exec(5);
	map(5, 0x2000, 0x1000, 0, "/b");
	second = now;
	exec(5);
	map(5, 0x3000, 0x1000, 0, "/c");
	ck_assert(recent__replaced(r, 5, first));
	ck_assert(recent__replaced(r, 5, second));
	ck_assert(!recent__replaced(r, 5, now));
	held_at(5, first, "1000-2000 0 /a\n");
	held_at(5, second, "2000-3000 0 /b\n");
	held_at(5, now, "3000-4000 0 /c\n");
	recent__free(r);
}
END_TEST

START_TEST(the_newest_lies_on_top)
{
	begin();
	map(5, 0x1000, 0x9000, 0x100000, "/a");
	map(5, 0x3000, 0x2000, 0, "/b");		/* in the middle */
	map(5, 0x0, 0x2000, 0, "/c");			/* over the start */
	map(5, 0x9000, 0x4000, 0, "/d");		/* over the end */
	holds(5, "0-2000 0 /c\n2000-3000 101000 /a\n3000-5000 0 /b\n5000-9000 104000 /a\n"
	      "9000-d000 0 /d\n");
	map(5, 0x2000, 0x7000, 0, "/e");		/* over three, exactly */
	holds(5, "0-2000 0 /c\n2000-9000 0 /e\n9000-d000 0 /d\n");
	map(5, 0, ~0ull, 0, "/all");
	holds(5, "0-ffffffffffffffff 0 /all\n");
	recent__free(r);
}
END_TEST

/* Each CPU's are read at once, so that they come out of order. */
START_TEST(by_time)
{
	begin();
	map(5, 0x1000, 0x1000, 0, "/second");
	now -= 10;
	map(5, 0x1000, 0x1000, 0, "/first");
	exec(5);
	now -= 5;
	map(5, 0x8000, 0x1000, 0, "/before_exec");
	holds(5, "1000-2000 0 /second\n");
	recent__free(r);
}
END_TEST

START_TEST(hostile_ones)
{
	char path[5000];
	int stop = 77;

	begin();
	map(5, 0x2000, 0, 0, "/empty");
	map(5, ~0ull - 10, 100, 0, "/wraps");
	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	map(5, 0x1000, 0x1000, 0, path);
	map(5, 0x3000, 0x1000, 0, "/y");
	said[0] = '\0';
	ck_assert_int_eq(recent__each(r, 5, now, write_down, &stop), 77);
	ck_assert_uint_lt(strlen(said), 300);
	ck_assert_int_eq(strncmp(said, "1000-2000 0 /xxx", 16), 0);
	/* As many as there may be, each cutting another one in two. */
	map(6, 0, 1u << 30, 0, "/a");
	for (uint64_t i = 0; i < 6000; i++)
		map(6, i * 0x2000, 0x1000, 0, "/b");
	stop = 0;
	ck_assert_int_eq(recent__each(r, 6, now, write_down, &stop), 0);
	holds(5, "");		/* pushed out */
	recent__free(r);
	recent__free(NULL);
}
END_TEST

UNIT_MAIN("recent", in_order_of_address, since_the_last_exec, the_program_of_that_time,
	  the_newest_lies_on_top, by_time, hostile_ones)
