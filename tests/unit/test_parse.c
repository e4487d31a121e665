// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/base/parse.h"

#include <errno.h>

#include "tests/unit/unit.h"

START_TEST(numbers_are_taken_whole_or_not_at_all)
{
	static const struct {
		const char *s;
		int err;
		uint64_t value;
	} rows[] = {
		{ "1", 0, 1 },
		{ "007", 0, 7 },
		{ "100", 0, 100 },
		{ "0", -ERANGE, 0 },
		{ "101", -ERANGE, 0 },
		{ "18446744073709551616", -ERANGE, 0 },	/* 2^64 */
		{ "99999999999999999999999999", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "+1", -EINVAL, 0 },
		{ " 1", -EINVAL, 0 },
		{ "1 ", -EINVAL, 0 },
		{ "12abc", -EINVAL, 0 },
		{ "0x10", -EINVAL, 0 },
		{ "abc", -EINVAL, 0 },
		{ "1\n", -EINVAL, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t v = 4242;

		ck_assert_msg(parse__u64(rows[i].s, 1, 100, &v) == rows[i].err, "'%s'", rows[i].s);
		ck_assert_uint_eq(v, rows[i].err ? 4242 : rows[i].value);
	}
}
END_TEST

START_TEST(the_whole_range_of_64_bits_fits)
{
	uint64_t v;

	ck_assert_int_eq(parse__u64("18446744073709551615", 0, UINT64_MAX, &v), 0);
	ck_assert_uint_eq(v, UINT64_MAX);
}
END_TEST

START_TEST(durations_have_units)
{
	static const struct {
		const char *s;
		int err;
		uint64_t ns;
	} rows[] = {
		{ "10", 0, 10000000000 },
		{ "10s", 0, 10000000000 },
		{ "500ms", 0, 500000000 },
		{ "2m", 0, 120000000000 },
		{ "1h", 0, 3600000000000 },
		{ "7us", 0, 7000 },
		{ "9ns", 0, 9 },
		{ "0", 0, 0 },
		{ "1.5", 0, 1500000000 },
		{ "0.25ms", 0, 250000 },
		{ "1.5h", 0, 5400000000000 },
		{ "0.999999999h", 0, 3599999996400 },
		{ "1.000000001", 0, 1000000001 },
		{ "1.0000000001", -EINVAL, 0 },
		{ "5124095h", 0, 18446742000000000000u },
		{ "5124096h", -ERANGE, 0 },
		{ "99999999999999999999s", -ERANGE, 0 },
		{ "18446744073.709551616", -ERANGE, 0 },
		{ "18446744073.709551615", 0, UINT64_MAX },
		{ "", -EINVAL, 0 },
		{ "s", -EINVAL, 0 },
		{ ".5", -EINVAL, 0 },
		{ "1.", -EINVAL, 0 },
		{ "1.s", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "10 s", -EINVAL, 0 },
		{ "10S", -EINVAL, 0 },
		{ "10sec", -EINVAL, 0 },
		{ "1m30s", -EINVAL, 0 },
		{ "1e3", -EINVAL, 0 },
		{ "1,5", -EINVAL, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t v = 4242;

		ck_assert_msg(parse__duration(rows[i].s, &v) == rows[i].err, "'%s'", rows[i].s);
		ck_assert_msg(v == (rows[i].err ? 4242 : rows[i].ns), "'%s': %llu", rows[i].s,
			      (unsigned long long)v);
	}
}
END_TEST

UNIT_MAIN("parse", numbers_are_taken_whole_or_not_at_all, the_whole_range_of_64_bits_fits,
	  durations_have_units)
