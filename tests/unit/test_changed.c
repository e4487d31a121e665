// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Words that were made by mappings which were not those of their time any more. */
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "loader/changed.h"
#include "tests/unit/unit.h"

#define AT 0x7000000ull
#define SIZE 0x10000ull

static struct files *files;
static struct process p;
static struct mapping list[1];

static void begin(void)
{
	files = files__new();
	ck_assert_ptr_nonnull(files);
	memset(&p, 0, sizeof(p));
	p.tgid = getpid();
	p.mappings = list;
	p.nr_mappings = 1;
	p.read_at = 1000;
}

static struct sampling_event event(const char *path, uint64_t time)
{
	struct sampling_event e = {
		.tgid = getpid(), .time = time, .start = AT, .size = SIZE, .offset = 0x2000, .path = path,
	};
	struct stat st;

	if (path[0] != '/' || path[1] == '/')
		return e;
	ck_assert_int_eq(stat(path, &st), 0);
	e.dev_major = major(st.st_dev);
	e.dev_minor = minor(st.st_dev);
	e.inode = st.st_ino;
	return e;
}

static uint32_t file_of(const char *path)
{
	struct sampling_event e = event(path, 0);
	struct maps_line line = {
		.start = AT, .end = AT + SIZE, .inode = e.inode, .dev_major = e.dev_major,
		.dev_minor = e.dev_minor, .path = (char *)path,
	};

	return files__of_mapping(files, getpid(), &line);
}

static bool map(const char *path, uint64_t time)
{
	struct sampling_event e = event(path, time);

	return changed__add(&p, files, &e);
}

static uint64_t word(uint32_t file, uint64_t offset)
{
	return FRAME_MAKE_FILE(FRAME_FILE, file, offset);
}

static uint64_t at(uint64_t time, uint64_t w)
{
	uint64_t words[] = { w, FRAME_MAKE_END(END_ROOT, 0) };

	changed__correct(&p, words, 2, time);
	ck_assert_uint_eq(words[1], FRAME_MAKE_END(END_ROOT, 0));
	return words[0];
}

START_TEST(by_the_time_of_the_stack)
{
	uint32_t a, b;

	begin();
	a = file_of("/bin/sh");
	b = file_of("/usr/bin/env");
	ck_assert(a && b && a != b);
	list[0] = (struct mapping){ AT, AT + SIZE, 0x5000, a, MAPPING_FILE };
	ck_assert(!changed__recently(&p, 1500));
	ck_assert(map("/usr/bin/env", 2000));
	/* Told out of order, by another CPU. */
	ck_assert(map("/usr/bin/env", 4000));
	ck_assert(map("/bin/sh", 3000));
	ck_assert(changed__recently(&p, 4500));
	ck_assert(!changed__recently(&p, 4000 + 10000000000ull));
	/* As the list from the beginning says it, and as each later one would. */
	ck_assert_uint_eq(at(1500, word(a, 0x5010)), word(a, 0x5010));
	ck_assert_uint_eq(at(1500, word(b, 0x2010)), word(a, 0x5010));
	ck_assert_uint_eq(at(2500, word(a, 0x5010)), word(b, 0x2010));
	ck_assert_uint_eq(at(2500, word(b, 0x2010)), word(b, 0x2010));
	ck_assert_uint_eq(at(3500, word(b, 0x2010)), word(a, 0x2010));
	ck_assert_uint_eq(at(4500, word(a, 0x5010)), word(b, 0x2010));
	/* What lies elsewhere is left alone. */
	ck_assert_uint_eq(at(2500, word(a, 0x90000)), word(a, 0x90000));
	ck_assert_uint_eq(at(2500, word(77, 0x5010)), word(77, 0x5010));
	ck_assert_uint_eq(at(2500, FRAME_MAKE_ADDRESS(FRAME_ANON, AT)), FRAME_MAKE_ADDRESS(FRAME_ANON, AT));
}
END_TEST

START_TEST(memory_in_the_place_of_a_file)
{
	uint32_t a;

	begin();
	a = file_of("/bin/sh");
	list[0] = (struct mapping){ AT, AT + SIZE, 0, a, MAPPING_FILE };
	ck_assert(map("//anon", 2000));
	ck_assert_uint_eq(at(2500, word(a, 0x10)), FRAME_MAKE_ADDRESS(FRAME_ANON, AT + 0x10));
	ck_assert_uint_eq(at(1500, word(a, 0x10)), word(a, 0x10));
}
END_TEST

START_TEST(nothing_has_changed)
{
	begin();
	list[0] = (struct mapping){ AT + SIZE, AT + 2 * SIZE, 0, 5, MAPPING_FILE };
	ck_assert(!map("/bin/sh", 2000));	/* where nothing was */
	list[0] = (struct mapping){ AT, AT + SIZE, 0, 5, MAPPING_FILE };
	ck_assert(!map("/bin/sh", 500));	/* the list knows of it */
	list[0].kind = MAPPING_ANON;
	ck_assert(!map("/bin/sh", 2000));
	ck_assert(!changed__recently(&p, 2000));
	list[0].kind = MAPPING_FILE;
	for (uint64_t i = 0; i < 1000; i++)	/* not without end */
		ck_assert(map("/bin/sh", 2000 + i));
	ck_assert_uint_le(p.nr_changes, 64);
}
END_TEST

UNIT_MAIN("changed", by_the_time_of_the_stack, memory_in_the_place_of_a_file, nothing_has_changed)
