// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>

#include "loader/ranges.h"
#include "tests/unit/unit.h"

#define SIZE 4096u

START_TEST(ranges_do_not_overlap)
{
	struct ranges *r = ranges__new(SIZE);
	unsigned char taken[SIZE] = { 0 };
	uint32_t first, nr = 0;

	for (uint32_t want = 1; ranges__get(r, want, 0, &first); want = want % 37 + 1) {
		ck_assert_uint_le(first + want, SIZE);
		for (uint32_t i = first; i < first + want; i++)
			ck_assert_int_eq(taken[i]++, 0);
		nr++;
	}
	ck_assert_uint_gt(nr, SIZE / 64);	/* of powers of two, at most half is wasted */
	ranges__free(r);
}
END_TEST

START_TEST(every_index_can_be_had)
{
	struct ranges *r = ranges__new(SIZE);
	uint32_t first, nr = 0;

	while (ranges__get(r, 1, 0, &first))
		nr++;
	ck_assert_uint_eq(nr, SIZE);
	ranges__free(r);
	r = ranges__new(SIZE);
	ck_assert(ranges__get(r, SIZE, 0, &first));
	ck_assert_uint_eq(first, 0);
	ck_assert(!ranges__get(r, 1, 0, &first));
	ranges__free(r);
}
END_TEST

START_TEST(too_much)
{
	struct ranges *r = ranges__new(SIZE);
	uint32_t first;

	ck_assert(!ranges__get(r, SIZE + 1, 0, &first));
	ck_assert(!ranges__get(r, UINT32_MAX, 0, &first));
	ck_assert(!ranges__get(r, 1u << 31, 0, &first));
	ck_assert(ranges__get(r, SIZE, 0, &first));	/* and nothing was used up by trying */
	ranges__free(r);
}
END_TEST

/* A program may still be reading it: nobody else gets it for a while. */
START_TEST(what_came_back_rests)
{
	struct ranges *r = ranges__new(16);
	uint32_t a, b, again;
	uint64_t now = 1000;

	ck_assert(ranges__get(r, 8, now, &a));
	ck_assert(ranges__get(r, 8, now, &b));
	ck_assert(!ranges__get(r, 8, now, &again));
	ranges__put(r, a, 8, now);
	ck_assert(!ranges__get(r, 8, now, &again));
	ck_assert(!ranges__get(r, 8, now + RANGES_QUARANTINE_NS - 1, &again));
	ck_assert(ranges__get(r, 8, now + RANGES_QUARANTINE_NS, &again));
	ck_assert_uint_eq(again, a);
	ck_assert(!ranges__get(r, 8, now + 10 * RANGES_QUARANTINE_NS, &again));
	ranges__free(r);
}
END_TEST

/* Sizes that round to the same are exchanged, in the order in which they came back. */
START_TEST(classes)
{
	struct ranges *r = ranges__new(64);
	uint32_t a, b, again;

	ck_assert(ranges__get(r, 5, 0, &a));
	ck_assert(ranges__get(r, 8, 0, &b));
	ranges__put(r, b, 8, 0);
	ranges__put(r, a, 5, 10);
	ck_assert(ranges__get(r, 6, RANGES_QUARANTINE_NS, &again));
	ck_assert_uint_eq(again, b);
	/* The next in the queue rests still: a fresh one. */
	ck_assert(ranges__get(r, 7, RANGES_QUARANTINE_NS, &again));
	ck_assert(again != a && again != b);
	ck_assert(ranges__get(r, 5, RANGES_QUARANTINE_NS + 10, &again));
	ck_assert_uint_eq(again, a);
	ranges__free(r);
}
END_TEST

/* Processes come and go for ever in bounded room. */
START_TEST(for_ever)
{
	struct ranges *r = ranges__new(1024);
	uint32_t held[32], sizes[32];
	uint64_t now = 0;

	memset(sizes, 0, sizeof(sizes));
	for (uint32_t i = 0; i < 100000; i++) {
		uint32_t at = i % 32, nr = 1 + i % 16, overlaps = 0;

		now += RANGES_QUARANTINE_NS;
		if (sizes[at])
			ranges__put(r, held[at], sizes[at], now);
		if (!ranges__get(r, nr, now, &held[at]))
			ck_abort_msg("no room at step %u", i);
		sizes[at] = nr;
		for (uint32_t j = 0; j < 32; j++)
			overlaps += j != at && sizes[j] && held[j] < held[at] + nr &&
				    held[at] < held[j] + sizes[j];
		if (overlaps)
			ck_abort_msg("%u ranges overlap at step %u", overlaps, i);
	}
	ranges__free(r);
	ranges__free(NULL);
}
END_TEST

UNIT_MAIN("ranges", ranges_do_not_overlap, every_index_can_be_had, too_much, what_came_back_rests,
	  classes, for_ever)
