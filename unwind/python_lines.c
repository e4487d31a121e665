// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Each table is a list of steps in code and in lines, gone through from its start. Lines may leave the
 * range of int on the way and come back; 64 bits hold what a table that fits into memory can add up.
 */
#include "unwind/python_lines.h"

#include <limits.h>
#include <stdbool.h>

static uint32_t line_or_none(int64_t line)
{
	return line >= 1 && line <= INT_MAX ? (uint32_t)line : 0;
}

/* Pairs (bytes of code, lines): a step of lines is taken at the address that the bytes lead to. */
static uint32_t lnotab__at(const uint8_t *table, size_t len, int64_t line, uint32_t offset)
{
	uint64_t at = 0;

	for (size_t i = 0; i + 1 < len; i += 2) {
		at += table[i];
		if (at > offset)
			break;
		line += (int8_t)table[i + 1];
	}
	return line_or_none(line);
}

/* Pairs (bytes of code, lines): a step of lines is taken before the bytes, also where they are none. */
static uint32_t lines_310__at(const uint8_t *table, size_t len, int64_t line, uint32_t offset)
{
	uint64_t end = 0;

	for (size_t i = 0; i + 1 < len; i += 2) {
		int8_t step = (int8_t)table[i + 1];
		bool none = step == -128;

		if (!none)
			line += step;
		end += table[i];
		if (offset < end)
			return none ? 0 : line_or_none(line);
	}
	return 0;
}

/* Of an entry's first byte, which alone has bit 7: what follows, and how many units of 2 bytes it covers. */
#define ENTRY 0x80u
#define ENTRY_CODE(byte) ((byte) >> 3 & 15)
#define ENTRY_UNITS(byte) (((byte) & 7) + 1)

enum entry_code {
	ENTRY_ONE_LINE = 10,	/* this and the next two: 0, 1, 2 lines on; below: the same line */
	ENTRY_NO_COLUMNS = 13,
	ENTRY_LONG = 14,
	ENTRY_NO_LINE = 15,	/* the code has no line, and the next step starts from the line before */
};

/* Six bits a byte, the lowest first; bit 6: there is more. False: cut off, or more than 32 bits. */
static bool read_signed(const uint8_t *p, const uint8_t *end, int64_t *value)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 36; shift += 6) {
		if (p == end || *p & ENTRY)
			return false;
		v |= (uint64_t)(*p & 63) << shift;
		if (!(*p++ & 64)) {
			*value = v & 1 ? -(int64_t)(v >> 1) : (int64_t)(v >> 1);
			return v <= UINT32_MAX;
		}
	}
	return false;
}

static bool entry__step(const uint8_t *entry, const uint8_t *end, int64_t *step)
{
	unsigned int code = ENTRY_CODE(*entry);

	*step = 0;
	if (code == ENTRY_NO_COLUMNS || code == ENTRY_LONG)
		return read_signed(entry + 1, end, step);
	if (code >= ENTRY_ONE_LINE && code < ENTRY_NO_COLUMNS)
		*step = code - ENTRY_ONE_LINE;
	return true;
}

static uint32_t lines_311__at(const uint8_t *table, size_t len, int64_t line, uint32_t offset)
{
	const uint8_t *p = table, *end = table + len;
	uint64_t covered = 0;
	int64_t step;

	while (p < end && *p & ENTRY) {
		if (!entry__step(p, end, &step))
			return 0;
		line += step;
		covered += 2 * ENTRY_UNITS(*p);
		if (offset < covered)
			return ENTRY_CODE(*p) == ENTRY_NO_LINE ? 0 : line_or_none(line);
		do
			p++;
		while (p < end && !(*p & ENTRY));
	}
	return 0;
}

uint32_t python_lines__at(enum python_lines_kind kind, const uint8_t *table, size_t len,
			  uint32_t first_line, uint32_t offset)
{
	int64_t first = (int32_t)first_line;

	if (offset == PYTHON_OFFSET_START)
		return line_or_none(first);
	if (offset >= PYTHON_OFFSET_NONE)
		return 0;
	switch (kind) {
	case PYTHON_LINES_LNOTAB:
		return lnotab__at(table, len, first, offset);
	case PYTHON_LINES_310:
		return lines_310__at(table, len, first, offset);
	case PYTHON_LINES_311:
		return lines_311__at(table, len, first, offset);
	}
	return 0;
}
