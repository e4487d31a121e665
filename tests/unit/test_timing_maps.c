// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdio.h>
#include <sys/mman.h>

#include "gpu_timing/library/maps.c"
#include "tests/unit/unit.h"

static bool parse(const char *text, struct map *map)
{
	static char line[2000];

	snprintf(line, sizeof(line), "%s", text);
	return own_maps__parse(line, map);
}

START_TEST(lines_of_the_kernel_are_understood)
{
	struct map m;

	ck_assert(parse("7f0a1c000000-7f0a1c021000 rw-p 00000000 00:00 0 ", &m));
	ck_assert_uint_eq(m.start, 0x7f0a1c000000);
	ck_assert_uint_eq(m.end, 0x7f0a1c021000);
	ck_assert_uint_eq(m.prot, PROT_READ | PROT_WRITE);
	ck_assert(m.is_private);
	ck_assert_uint_eq(m.inode, 0);
	ck_assert_str_eq(m.name, "");
	ck_assert(parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0    [vsyscall]", &m));
	ck_assert_uint_eq(m.start, 0xffffffffff600000);
	ck_assert_uint_eq(m.prot, PROT_EXEC);
	ck_assert_str_eq(m.name, "[vsyscall]");
	ck_assert(parse("5650-5660 r-xs 0000a000 fe:10 4294967297        /a b/lib (deleted)", &m));
	ck_assert_uint_eq(m.prot, PROT_READ | PROT_EXEC);
	ck_assert(!m.is_private);
	ck_assert_uint_eq(m.dev, 0xfeull << 32 | 0x10);
	ck_assert_uint_eq(m.inode, 4294967297);
	ck_assert_str_eq(m.name, "/a b/lib (deleted)");
}
END_TEST

START_TEST(other_lines_are_refused)
{
	static const char *const bad[] = {
		"", "x", "-", "10-20", "10-20 ", "10-20 rw", "10-20 rw-p", "10-20 rw-p ",
		"20-10 rw-p 0 0:0 0",
		"10-10 rw-p 0 0:0 0 ", "10 20 rw-p 0 0:0 0 ", "10-20 rw-p 0 00 0 ", "10-20 rw-p z 0:0 0 ",
		"10-20 rw-p 0 0:0 x ", "g-20 rw-p 0 0:0 0 ", "10-20 rw-p 0 0:0",
	};
	struct map m;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(!parse(bad[i], &m), "%s", bad[i]);
}
END_TEST

struct found {
	uint64_t code, stack;
	bool seen_code, seen_stack;
	unsigned int mappings;
	uint64_t last;
};

static bool look(const struct map *map, void *ctx)
{
	struct found *f = ctx;

	ck_assert_uint_ge(map->start, f->last);
	f->last = map->end;
	f->mappings++;
	if (f->code >= map->start && f->code < map->end) {
		f->seen_code = true;
		ck_assert_uint_eq(map->prot, PROT_READ | PROT_EXEC);
		ck_assert_uint_ne(map->inode, 0);
	}
	if (f->stack >= map->start && f->stack < map->end) {
		f->seen_stack = true;
		ck_assert(map->prot & PROT_WRITE);
	}
	return true;
}

static bool stop_at_first(const struct map *map, void *ctx)
{
	(void)map;
	++*(int *)ctx;
	return false;
}

START_TEST(our_own_are_found)
{
	struct found f = { .code = (uint64_t)own_maps__each, .stack = (uint64_t)&f };
	int calls = 0;

	/* enough of them that lines are cut by the end of a read */
	for (int i = 0; i < 500; i++) {
		void *p = mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		ck_assert_ptr_ne(p, MAP_FAILED);
	}
	ck_assert_int_eq(own_maps__each(look, &f), 0);
	ck_assert(f.seen_code && f.seen_stack);
	ck_assert_uint_gt(f.mappings, 500);
	ck_assert_int_eq(own_maps__each(stop_at_first, &calls), 0);
	ck_assert_int_eq(calls, 1);
}
END_TEST

UNIT_MAIN("timing_maps", lines_of_the_kernel_are_understood, other_lines_are_refused,
	  our_own_are_found)
