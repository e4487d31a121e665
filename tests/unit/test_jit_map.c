// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Perf maps and jitdump files: what is told, when, and by whom it isn't believed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "symbols/jit_map.h"
#include "tests/unit/unit.h"

static struct jit_budget budget;

static struct jit_map *new_map(void)
{
	budget = (struct jit_budget){ .bytes = JIT_MAX_BYTES };
	return jit_map__new(&budget);
}

static int file_of(const char *text, size_t len)
{
	int fd = memfd_create("jit", MFD_CLOEXEC);

	ck_assert_int_eq(write(fd, text, len), (ssize_t)len);
	return fd;
}

#define EXPECT(m, address, name) ck_assert_pstr_eq(jit_map__find(m, address, UINT64_MAX), name)

START_TEST(a_perf_map)
{
	static const char text[] =
		"7f0000001000 100 plain\n"
		"0x7f0000002000 0x10 with prefix, blanks and ; in it\r\n"
		"7F0000003000 8 _ZN1A3fooEv\n"
		"7f0000001000 zz bad\n\nrubbish\n7f0000004000 10\n7f0000005000 0 no_size\n"
		"ffffffffffffffff 10 wraps\n11112222333344445 10 too_long\n"
		"7f0000006000 10 \xff\xfe\n"
		"7f0000007000 10 half";
	struct jit_map *m = new_map();
	int fd = file_of(text, sizeof(text) - 1);
	uint64_t at = 0;

	ck_assert_int_eq(perf_map__read(fd, &at, UINT64_MAX, 0, m), 1);
	ck_assert_uint_eq(jit_map__count(m), 4);
	EXPECT(m, 0x7f0000000fff, NULL);
	EXPECT(m, 0x7f0000001000, "plain");
	EXPECT(m, 0x7f00000010ff, "plain");
	EXPECT(m, 0x7f0000001100, NULL);
	EXPECT(m, 0x7f000000200f, "with prefix, blanks and ; in it");
	EXPECT(m, 0x7f0000003000, "_ZN1A3fooEv");
	EXPECT(m, 0x7f0000006001, "\xff\xfe");
	EXPECT(m, 0x7f0000007000, NULL);
	/* the line is finished, and a later one covers part of an earlier one */
	ck_assert_int_eq(write(fd, "way\n7f0000001080 10 later\n", 26), 26);
	ck_assert_int_eq(perf_map__read(fd, &at, UINT64_MAX, 0, m), 1);
	EXPECT(m, 0x7f0000007000, "halfway");
	EXPECT(m, 0x7f000000107f, "plain");
	EXPECT(m, 0x7f0000001080, "later");
	EXPECT(m, 0x7f0000001090, "plain");
	/* written anew */
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	ck_assert_int_eq(pwrite(fd, "7f0000001000 100 anew\n", 22, 0), 22);
	ck_assert_int_eq(perf_map__read(fd, &at, UINT64_MAX, 0, m), 1);
	EXPECT(m, 0x7f0000001000, "anew");
	EXPECT(m, 0x7f000000200f, "with prefix, blanks and ; in it");
	jit_map__free(m);
	ck_assert_uint_eq(budget.bytes, JIT_MAX_BYTES);
	close(fd);
}
END_TEST

/* By pieces, with lines longer than what is read at once. */
START_TEST(a_long_perf_map)
{
	enum { LINES = 40000, LONG = 300000 };
	struct jit_map *m = new_map();
	char *text = malloc(LINES * 32 + LONG), *end = text, name[32];
	uint64_t at = 0;
	int fd, ret, turns = 0;

	for (int i = 0; i < LINES; i++) {
		end += sprintf(end, "%x 10 f%d\n", 0x10000 + i * 16, i);
		if (i == LINES / 2) {
			end += sprintf(end, "1 1 ");
			memset(end, 'x', LONG / 2);
			end += LONG / 2;
			*end++ = '\n';
		}
	}
	fd = file_of(text, (size_t)(end - text));
	while (!(ret = perf_map__read(fd, &at, 65536, 0, m)))
		turns++;
	ck_assert_int_eq(ret, 1);
	ck_assert_int_ge(turns, 2);
	for (int i = 0; i < LINES; i += 97) {
		snprintf(name, sizeof(name), "f%d", i);
		EXPECT(m, 0x10000 + (uint64_t)i * 16 + 15, name);
	}
	ck_assert_uint_eq(strlen(jit_map__find(m, 1, 0)), JIT_MAX_NAME);
	jit_map__free(m);
	close(fd);
	free(text);
}
END_TEST

START_TEST(over_time)
{
	struct jit_map *m = new_map();

	ck_assert_ptr_null(jit_map__find(m, 0x1000, 0));
	jit_map__add(m, 0x1000, 0x100, 50, "second", 6);
	jit_map__add(m, 0x1000, 0x100, 10, "first", 5);
	jit_map__add(m, 0x1080, 0x100, 90, "third", 5);
	ck_assert_str_eq(jit_map__find(m, 0x1090, 5), "first");		/* clocks may differ a little */
	ck_assert_str_eq(jit_map__find(m, 0x1090, 10), "first");
	ck_assert_str_eq(jit_map__find(m, 0x1090, 49), "first");
	ck_assert_str_eq(jit_map__find(m, 0x1090, 50), "second");
	ck_assert_str_eq(jit_map__find(m, 0x1090, 90), "third");
	ck_assert_str_eq(jit_map__find(m, 0x1010, 900), "second");
	/* of two at one time the last told */
	jit_map__add(m, 0x1000, 0x10, 50, "corrected", 9);
	ck_assert_str_eq(jit_map__find(m, 0x1000, 60), "corrected");
	jit_map__free(m);
}
END_TEST

/* The inner one isn't found by its start alone: blocks of many short ones lie between. */
START_TEST(one_around_many)
{
	struct jit_map *m = new_map();

	jit_map__add(m, 0x100000, 0x1000000, 0, "around", 6);
	for (uint64_t i = 0; i < 1000; i++)
		jit_map__add(m, 0x100000 + i * 0x100, 0x10, 0, "short", 5);
	EXPECT(m, 0x100000 + 999 * 0x100, "short");
	EXPECT(m, 0x100000 + 999 * 0x100 + 0x10, "around");
	EXPECT(m, 0x10ffffful, "around");
	EXPECT(m, 0x1100000ul, NULL);
	jit_map__free(m);
}
END_TEST

START_TEST(no_more_than_allowed)
{
	struct jit_map *m = new_map(), *other;

	budget.bytes = 1000;
	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(jit_map__add(m, 0x1000, 0x10, 0, "a name", 6), 0);
	ck_assert_uint_lt(jit_map__count(m), 20);
	ck_assert(budget.exhausted);
	ck_assert_uint_lt(budget.bytes, 100);
	other = jit_map__new(&budget);
	jit_map__add(other, 0x1000, 0x10, 0, "another", 7);
	jit_map__add(other, 0x1000, 0x10, 0, "another", 7);
	ck_assert_uint_le(jit_map__count(other), 1);
	jit_map__free(m);
	ck_assert_uint_gt(budget.bytes, 800);
	jit_map__free(other);
	ck_assert_uint_eq(budget.bytes, 1000);
}
END_TEST

/* --- jitdump --- */

static char dump[1 << 16];
static size_t dump_len;

static void put(const void *data, size_t len)
{
	memcpy(dump + dump_len, data, len);
	dump_len += len;
}

static void put_u32(uint32_t v)
{
	put(&v, sizeof(v));
}

static void put_u64(uint64_t v)
{
	put(&v, sizeof(v));
}

/* The file's header: magic, version, size, machine, padding, pid, time, flags. */
static void put_header(uint64_t flags)
{
	dump_len = 0;
	put_u32(0x4a695444);
	put_u32(1);
	put_u32(40);
	put_u32(62);
	put_u32(0);
	put_u32(1234);
	put_u64(5);
	put_u64(flags);
}

static void put_load(uint64_t time, uint64_t address, uint64_t size, uint64_t index, const char *name)
{
	size_t len = strlen(name) + 1;

	put_u32(0);
	put_u32((uint32_t)(16 + 40 + len + size));
	put_u64(time);
	put_u32(1234);
	put_u32(1234);
	put_u64(address);
	put_u64(address);
	put_u64(size);
	put_u64(index);
	put(name, len);
	memset(dump + dump_len, 0xcc, size);
	dump_len += size;
}

static void put_move(uint64_t time, uint64_t from, uint64_t to, uint64_t size, uint64_t index)
{
	put_u32(1);
	put_u32(16 + 48);
	put_u64(time);
	put_u32(1234);
	put_u32(1234);
	put_u64(to);
	put_u64(from);
	put_u64(to);
	put_u64(size);
	put_u64(index);
}

static void put_other(uint32_t id, uint32_t size)
{
	put_u32(id);
	put_u32(size);
	put_u64(1);
	memset(dump + dump_len, 0, size - 16);
	dump_len += size - 16;
}

START_TEST(a_jitdump)
{
	struct jit_map *m = new_map();
	struct jit_dump d = {};
	size_t whole;
	int fd;

	put_header(0);
	put_load(10, 0x1000, 0x20, 1, "one");
	put_other(2, 64);	/* lines */
	put_load(20, 0x2000, 0x20, 2, "two");
	put_move(30, 0x1000, 0x3000, 0x20, 1);
	put_load(40, 0x1000, 0x20, 3, "in its place");
	put_move(50, 0x3000, 0x4000, 0x20, 1);
	put_move(60, 0x9000, 0xa000, 0x20, 77);	/* of something never told */
	put_other(4, 32);
	put_other(99, 24);
	whole = dump_len;
	put_load(70, 0x5000, 0x20, 4, "half");
	fd = file_of(dump, whole + 50);
	ck_assert_int_eq(jit_dump__read(&d, fd, UINT64_MAX, m), 1);
	ck_assert_ptr_null(jit_map__find(m, 0x5000, 99));
	ck_assert_int_eq(pwrite(fd, dump, dump_len, 0), (ssize_t)dump_len);
	ck_assert_int_eq(jit_dump__read(&d, fd, UINT64_MAX, m), 1);
	ck_assert_str_eq(jit_map__find(m, 0x5000, 99), "half");
	ck_assert_str_eq(jit_map__find(m, 0x1010, 15), "one");
	ck_assert_str_eq(jit_map__find(m, 0x1010, 45), "in its place");
	ck_assert_str_eq(jit_map__find(m, 0x3010, 35), "one");
	ck_assert_str_eq(jit_map__find(m, 0x4010, 55), "one");
	ck_assert_str_eq(jit_map__find(m, 0x2000, 20), "two");
	ck_assert_ptr_null(jit_map__find(m, 0xa000, 99));
	jit_dump__free(&d);
	jit_map__free(m);
	close(fd);
}
END_TEST

/* Times of another clock order nothing: the last told holds. */
START_TEST(a_jitdump_of_another_clock)
{
	struct jit_map *m = new_map();
	struct jit_dump d = {};
	int fd;

	put_header(1);
	put_load(900, 0x1000, 0x20, 1, "early");
	put_load(100, 0x1000, 0x20, 2, "late");
	fd = file_of(dump, dump_len);
	ck_assert_int_eq(jit_dump__read(&d, fd, 1, m), 0);
	ck_assert_str_eq(jit_map__find(m, 0x1000, 50), "early");
	ck_assert_int_eq(jit_dump__read(&d, fd, 9, m), 1);
	ck_assert_str_eq(jit_map__find(m, 0x1000, 50), "late");
	jit_dump__free(&d);
	jit_map__free(m);
	close(fd);
}
END_TEST

START_TEST(damaged_jitdumps)
{
	struct jit_map *m = new_map();
	struct jit_dump d = {};
	int fd;

	/* one byte after the other: whole at last */
	put_header(0);
	put_load(10, 0x1000, 0x20, 1, "one");
	fd = memfd_create("jit", MFD_CLOEXEC);
	for (size_t i = 0; i < dump_len; i++) {
		ck_assert_int_eq(jit_dump__read(&d, fd, UINT64_MAX, m), 1);
		ck_assert_uint_eq(jit_map__count(m), 0);
		ck_assert_int_eq(write(fd, dump + i, 1), 1);
	}
	ck_assert_int_eq(jit_dump__read(&d, fd, UINT64_MAX, m), 1);
	ck_assert_uint_eq(jit_map__count(m), 1);
	jit_dump__free(&d);
	close(fd);
	/* a record of no size would be read for ever; a header of another kind; another byte order */
	put_other(0, 16);
	memset(dump + dump_len - 12, 0, 4);
	fd = file_of(dump, dump_len);
	ck_assert_int_eq(jit_dump__read(&d, fd, UINT64_MAX, m), 1);
	jit_dump__free(&d);
	for (int i = 0; i < 4; i++) {
		char byte = dump[i] ^ 1;

		ck_assert_int_eq(pwrite(fd, &byte, 1, i), 1);
		ck_assert_int_eq(jit_dump__read(&d, fd, UINT64_MAX, m), 1);
		ck_assert(d.bad);
		jit_dump__free(&d);
	}
	close(fd);
	/* a name without an end, in a record shorter than what it should hold */
	put_header(0);
	put_load(10, 0x7000, 0, 1, "endless");
	dump_len--;
	memcpy(dump + 40 + 4, (uint32_t[]){ (uint32_t)(dump_len - 40) }, 4);
	fd = file_of(dump, dump_len);
	ck_assert_int_eq(jit_dump__read(&d, fd, UINT64_MAX, m), 1);
	jit_dump__free(&d);
	close(fd);
	jit_map__free(m);
}
END_TEST

UNIT_MAIN("jit_map", a_perf_map, a_long_perf_map, over_time, one_around_many, no_more_than_allowed,
	  a_jitdump, a_jitdump_of_another_clock, damaged_jitdumps)
