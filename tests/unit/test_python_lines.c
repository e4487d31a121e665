// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Hand-made tables; tests/system/91-python-lines.py compares with what interpreters say of real ones. */
#include "unwind/python_lines.h"

#include <limits.h>
#include <string.h>

#include "tests/unit/unit.h"

#define AT(kind, table, first, offset) python_lines__at(kind, table, sizeof(table), first, offset)
#define FIRST 10
#define NO_LINE 0

struct row {
	uint32_t offset, line;
};

static void check_rows(enum python_lines_kind kind, const uint8_t *table, size_t len,
		       const struct row *rows, size_t n)
{
	/* In memory of its own, so that a sanitizer sees what lies past it. */
	uint8_t *copy = malloc(len ? len : 1);

	memcpy(copy, table, len);
	for (size_t i = 0; i < n; i++)
		ck_assert_msg(python_lines__at(kind, copy, len, FIRST, rows[i].offset) == rows[i].line,
			      "at %u: %u, should be %u", rows[i].offset,
			      python_lines__at(kind, copy, len, FIRST, rows[i].offset), rows[i].line);
	free(copy);
}

#define CHECK_ROWS(kind, table, ...) do { \
	const struct row rows_[] = { __VA_ARGS__ }; \
	check_rows(kind, table, sizeof(table), rows_, sizeof(rows_) / sizeof(rows_[0])); \
} while (0)

START_TEST(lnotab_steps_at_an_address)
{
	static const uint8_t table[] = { 0, 1, 6, 1, 8, (uint8_t)-2, 255, 0, 45, 2, 2, 127, 0, 73 };

	CHECK_ROWS(PYTHON_LINES_LNOTAB, table, { 0, 11 }, { 4, 11 }, { 6, 12 }, { 12, 12 }, { 14, 10 },
		   { 269, 10 }, { 312, 10 }, { 314, 12 }, { 316, 212 }, { 100000, 212 });
}
END_TEST

START_TEST(lnotab_of_one_line_is_empty)
{
	static const uint8_t half[] = { 0 };

	ck_assert_uint_eq(python_lines__at(PYTHON_LINES_LNOTAB, half, 0, FIRST, 0), FIRST);
	ck_assert_uint_eq(python_lines__at(PYTHON_LINES_LNOTAB, half, 1, FIRST, 40), FIRST);
}
END_TEST

START_TEST(lnotab_goes_below_the_first_line_and_back)
{
	static const uint8_t table[] = { 2, (uint8_t)-100, 2, 100, 2, (uint8_t)-10, 2, (uint8_t)-128 };

	CHECK_ROWS(PYTHON_LINES_LNOTAB, table, { 0, 10 }, { 2, NO_LINE }, { 4, 10 }, { 6, NO_LINE },
		   { 8, NO_LINE });
}
END_TEST

/* A step belongs to the bytes of its own pair; -128 is no step but says that they have no line. */
START_TEST(lines_310_step_before_their_bytes)
{
	static const uint8_t table[] = { 4, 1, 2, (uint8_t)-128, 2, 0, 6, (uint8_t)-3, 2, (uint8_t)-127,
					 2, 127, 2, (uint8_t)-128 };

	CHECK_ROWS(PYTHON_LINES_310, table, { 0, 11 }, { 3, 11 }, { 4, NO_LINE }, { 5, NO_LINE },
		   { 6, 11 }, { 8, 8 }, { 13, 8 }, { 14, NO_LINE }, { 16, 8 }, { 18, NO_LINE },
		   { 20, NO_LINE });
}
END_TEST

START_TEST(lines_310_pairs_without_bytes_count)
{
	static const uint8_t table[] = { 0, 100, 0, 100, 2, 5, 0, (uint8_t)-128, 0, (uint8_t)-100, 254, 0,
					 46, 0 };

	CHECK_ROWS(PYTHON_LINES_310, table, { 0, 215 }, { 2, 115 }, { 255, 115 }, { 256, 115 },
		   { 301, 115 }, { 302, NO_LINE });
}
END_TEST

/* The first byte of an entry: its code, and how many units of two bytes it covers. */
#define E(code, units) (uint8_t)(0x80 | (code) << 3 | ((units) - 1))

START_TEST(lines_311_know_all_forms)
{
	static const uint8_t table[] = {
		E(0, 1), 0x12, E(9, 2), 0x34, E(10, 1), 1, 2, E(11, 1), 1, 2, E(12, 8), 1, 2,
		E(13, 1), 9 << 1 | 1,		/* 9 back */
		E(14, 3), 20 << 1, 1, 2, 3,	/* 20 on; the rest is columns */
		E(13, 1), 0x40 | (100 << 1 & 63), 100 << 1 >> 6,
	};

	CHECK_ROWS(PYTHON_LINES_311, table, { 0, 10 }, { 2, 10 }, { 5, 10 }, { 6, 10 }, { 8, 11 },
		   { 10, 13 }, { 25, 13 }, { 26, 4 }, { 28, 24 }, { 33, 24 }, { 34, 124 }, { 36, NO_LINE });
}
END_TEST

/* The line after such code is reckoned from the one before it. */
START_TEST(lines_311_without_a_line_leave_it)
{
	static const uint8_t table[] = { E(15, 1), E(11, 1), 1, 2, E(15, 8), E(15, 2), E(0, 1), 7,
					 E(11, 1), 1, 2 };

	CHECK_ROWS(PYTHON_LINES_311, table, { 0, NO_LINE }, { 2, 11 }, { 4, NO_LINE }, { 19, NO_LINE },
		   { 20, NO_LINE }, { 24, 11 }, { 26, 12 }, { 28, NO_LINE });
}
END_TEST

START_TEST(lines_311_columns_are_passed_over)
{
	static const uint8_t table[] = { E(14, 1), 2, 0x41, 0x42, 0x43, 1, 0x44, 1, E(0, 1), 0x7f,
					 E(12, 1), 0x7f, 0x7f };

	CHECK_ROWS(PYTHON_LINES_311, table, { 0, 11 }, { 2, 11 }, { 4, 13 }, { 6, NO_LINE });
}
END_TEST

START_TEST(lines_311_that_make_no_sense)
{
	static const uint8_t headless[] = { 0x12, E(0, 1), 0 };
	static const uint8_t cut[] = { E(0, 1), 0, E(13, 1) };
	static const uint8_t more[] = { E(0, 1), 0, E(13, 1), 0x40 };
	static const uint8_t next[] = { E(0, 1), 0, E(13, 1), 0x42, E(0, 1), 0 };
	static const uint8_t long_one[] = { E(13, 1), 0x40, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40, 1 };
	static const uint8_t wide[] = { E(13, 1), 0x7e, 0x7f, 0x7f, 0x7f, 0x7f, 0x3f };

	ck_assert_uint_eq(AT(PYTHON_LINES_311, headless, FIRST, 0), 0);
	CHECK_ROWS(PYTHON_LINES_311, cut, { 0, 10 }, { 2, NO_LINE });
	CHECK_ROWS(PYTHON_LINES_311, more, { 0, 10 }, { 2, NO_LINE });
	CHECK_ROWS(PYTHON_LINES_311, next, { 0, 10 }, { 2, NO_LINE }, { 4, NO_LINE });
	ck_assert_uint_eq(AT(PYTHON_LINES_311, long_one, FIRST, 0), 0);
	ck_assert_uint_eq(AT(PYTHON_LINES_311, wide, FIRST, 0), 0);
	ck_assert_uint_eq(python_lines__at(PYTHON_LINES_311, cut, 0, FIRST, 0), 0);
	ck_assert_uint_eq(python_lines__at(PYTHON_LINES_310, cut, 0, FIRST, 0), 0);
	ck_assert_uint_eq(python_lines__at(PYTHON_LINES_310, cut, 1, FIRST, 0), 0);
	ck_assert_uint_eq(python_lines__at((enum python_lines_kind)3, cut, 2, FIRST, 0), 0);
}
END_TEST

/* 2^31 - 1 on and back, in one step each. */
START_TEST(lines_past_all_files_are_none)
{
	static const uint8_t table[] = {
		E(13, 1), 0x7e, 0x7f, 0x7f, 0x7f, 0x7f, 0x03,
		E(13, 1), 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x03,
	};

	CHECK_ROWS(PYTHON_LINES_311, table, { 0, NO_LINE }, { 2, 10 });
	ck_assert_uint_eq(AT(PYTHON_LINES_311, table, 0, 0), INT_MAX);
	ck_assert_uint_eq(AT(PYTHON_LINES_311, table, 1, 0), 0);
	ck_assert_uint_eq(AT(PYTHON_LINES_311, table, (uint32_t)-1, 0), INT_MAX - 1);
	ck_assert_uint_eq(AT(PYTHON_LINES_311, table, (uint32_t)-1, 2), 0);
}
END_TEST

/* Module code of 3.11 and later starts with an instruction in line 0, which is no line. */
START_TEST(line_0_is_none)
{
	static const uint8_t table[] = { E(13, 1), 1 << 1 | 1, E(11, 1), 0, 0 };

	ck_assert_uint_eq(AT(PYTHON_LINES_311, table, 1, 0), 0);
	ck_assert_uint_eq(AT(PYTHON_LINES_311, table, 1, 2), 1);
}
END_TEST

START_TEST(offsets_that_are_none)
{
	static const uint8_t lnotab[] = { 0, 5 }, later[] = { 250, 5 };

	for (unsigned int kind = PYTHON_LINES_LNOTAB; kind <= PYTHON_LINES_311; kind++) {
		enum python_lines_kind k = (enum python_lines_kind)kind;

		ck_assert_uint_eq(AT(k, lnotab, FIRST, PYTHON_OFFSET_START), FIRST);
		ck_assert_uint_eq(AT(k, lnotab, FIRST, PYTHON_OFFSET_NONE), 0);
		ck_assert_uint_eq(AT(k, later, FIRST, UINT32_MAX), 0);
		ck_assert_uint_eq(AT(k, lnotab, 0, PYTHON_OFFSET_START), 0);
		ck_assert_uint_eq(AT(k, lnotab, INT_MAX, PYTHON_OFFSET_START), INT_MAX);
		ck_assert_uint_eq(AT(k, lnotab, 1u << 31, PYTHON_OFFSET_START), 0);
	}
	ck_assert_uint_eq(AT(PYTHON_LINES_LNOTAB, lnotab, FIRST, PYTHON_OFFSET_START - 1), 15);
}
END_TEST

/* Of the largest tables that are read, each of one byte only. */
START_TEST(long_tables_end)
{
	const size_t len = 4u << 20;
	uint8_t *table = malloc(len);

	for (unsigned int byte = 0; byte < 256; byte += 5)
		for (unsigned int kind = PYTHON_LINES_LNOTAB; kind <= PYTHON_LINES_311; kind++) {
			memset(table, (int)byte, len);
			ck_assert_uint_le(python_lines__at((enum python_lines_kind)kind, table, len, FIRST,
							   PYTHON_OFFSET_START - 1), INT_MAX);
		}
	free(table);
}
END_TEST

UNIT_MAIN("python_lines", lnotab_steps_at_an_address, lnotab_of_one_line_is_empty,
	  lnotab_goes_below_the_first_line_and_back, lines_310_step_before_their_bytes,
	  lines_310_pairs_without_bytes_count, lines_311_know_all_forms, lines_311_without_a_line_leave_it,
	  lines_311_columns_are_passed_over, lines_311_that_make_no_sense, lines_past_all_files_are_none,
	  line_0_is_none, offsets_that_are_none, long_tables_end)
