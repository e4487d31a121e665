// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/base/text.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/unit.h"

START_TEST(utf8_is_what_rfc_3629_says)
{
	static const struct {
		const char *s;
		size_t n;
	} rows[] = {
		{ "a", 1 },
		{ "\x7f", 1 },
		{ "\xc2\x80", 2 },
		{ "\xdf\xbf", 2 },
		{ "\xe0\xa0\x80", 3 },
		{ "\xed\x9f\xbf", 3 },
		{ "\xee\x80\x80", 3 },
		{ "\xef\xbf\xbf", 3 },
		{ "\xf0\x90\x80\x80", 4 },
		{ "\xf4\x8f\xbf\xbf", 4 },
		{ "", 0 },
		{ "\x80", 0 },			/* a tail alone */
		{ "\xbf", 0 },
		{ "\xc0\x80", 0 },		/* overlong NUL */
		{ "\xc1\xbf", 0 },
		{ "\xe0\x9f\xbf", 0 },		/* overlong */
		{ "\xf0\x8f\xbf\xbf", 0 },
		{ "\xed\xa0\x80", 0 },		/* surrogates */
		{ "\xed\xbf\xbf", 0 },
		{ "\xf4\x90\x80\x80", 0 },	/* past U+10FFFF */
		{ "\xf5\x80\x80\x80", 0 },
		{ "\xff", 0 },
		{ "\xc2", 0 },			/* cut off */
		{ "\xe2\x82", 0 },
		{ "\xf0\x9f\x98", 0 },
		{ "\xc2" "a", 0 },
		{ "\xe2\x82" "a", 0 },
		{ "\xf0\x9f\x98" "a", 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert_msg(text__utf8(rows[i].s, strlen(rows[i].s)) == rows[i].n, "row %zu", i);
	ck_assert_uint_eq(text__utf8("\0", 1), 1);
}
END_TEST

/* Of every code point: exactly those that end a line, steer a terminal, turn or hide what is written. */
START_TEST(controls_are_replaced_and_nothing_else)
{
	for (uint32_t c = 0; c <= 0x10ffff; c++) {
		char in[4], out[4];
		size_t n = 0, len;
		int control = c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x61c || c == 0x180e ||
			      c == 0x200b || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
			      (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb);

		if (c >= 0xd800 && c <= 0xdfff)
			continue;
		if (c < 0x80) {
			in[n++] = (char)c;
		} else if (c < 0x800) {
			in[n++] = (char)(0xc0 | c >> 6);
		} else if (c < 0x10000) {
			in[n++] = (char)(0xe0 | c >> 12);
			in[n++] = (char)(0x80 | (c >> 6 & 0x3f));
		} else {
			in[n++] = (char)(0xf0 | c >> 18);
			in[n++] = (char)(0x80 | (c >> 12 & 0x3f));
			in[n++] = (char)(0x80 | (c >> 6 & 0x3f));
		}
		if (c >= 0x80)
			in[n++] = (char)(0x80 | (c & 0x3f));
		len = text__clean(out, in, n);
		/* Not one assertion a character: each costs a microsecond. */
		if (control ? len != 1 || out[0] != '?' : len != n || memcmp(in, out, n))
			ck_abort_msg("U+%04X", c);
	}
}
END_TEST

START_TEST(cleaning_works_in_place_and_on_rubbish)
{
	char s[] = "a\x1b[31m\xff\xc2\x9b" "b\xe2\x82\xac\xe2\x82";
	char bidi[] = "x\xe2\x80\xaey";
	size_t len;

	len = text__clean(s, s, strlen(s));
	ck_assert_uint_eq(len, 14);
	ck_assert(!memcmp(s, "a?[31m??b\xe2\x82\xac??", 14));
	len = text__clean(s, bidi, strlen(bidi));
	ck_assert_uint_eq(len, 3);
	ck_assert(!memcmp(s, "x?y", 3));
}
END_TEST

START_TEST(cuts_do_not_split_characters)
{
	static const char euro[] = "ab\xe2\x82\xac" "c";	/* a b € c */

	ck_assert_uint_eq(text__cut(euro, 6, 6), 6);
	ck_assert_uint_eq(text__cut(euro, 6, 100), 6);
	ck_assert_uint_eq(text__cut(euro, 6, 5), 5);
	ck_assert_uint_eq(text__cut(euro, 6, 4), 2);
	ck_assert_uint_eq(text__cut(euro, 6, 3), 2);
	ck_assert_uint_eq(text__cut(euro, 6, 2), 2);
	ck_assert_uint_eq(text__cut(euro, 6, 1), 1);
	ck_assert_uint_eq(text__cut(euro, 6, 0), 0);
	/* rubbish: anywhere */
	ck_assert_uint_eq(text__cut("\x80\x80\x80\x80\x80\x80", 6, 5), 5);
}
END_TEST

START_TEST(strings_grow)
{
	struct text t = { 0 };
	char *s;

	for (int i = 0; i < 1000; i++)
		text__printf(&t, "%d,", i);
	ck_assert_uint_eq(t.len, 10 * 2 + 90 * 3 + 900 * 4);
	text__truncate(&t, 6);
	text__truncate(&t, 600);
	text__add_string(&t, "x");
	text__add_clean(&t, "\n\xff", 2);
	s = text__take(&t);
	ck_assert_str_eq(s, "0,1,2,x??");
	free(s);
	ck_assert_ptr_null(t.data);
	s = text__take(&t);
	ck_assert_str_eq(s, "");
	free(s);
	text__add(&t, "a", SIZE_MAX / 2);
	ck_assert(t.failed);
	text__add_string(&t, "b");
	ck_assert_ptr_null(text__take(&t));
}
END_TEST

START_TEST(figures_have_three_digits)
{
	char b[TEXT_FIGURE];

	ck_assert_str_eq(text__duration(b, 0), "0 ns");
	ck_assert_str_eq(text__duration(b, 999), "999 ns");
	ck_assert_str_eq(text__duration(b, 1000), "1.00 us");
	ck_assert_str_eq(text__duration(b, 999499), "999 us");
	ck_assert_str_eq(text__duration(b, 999500), "1.00 ms");
	ck_assert_str_eq(text__duration(b, 12345678), "12.3 ms");
	ck_assert_str_eq(text__duration(b, 999499999), "999 ms");
	ck_assert_str_eq(text__duration(b, 1500000000), "1.50 s");
	ck_assert_str_eq(text__duration(b, UINT64_MAX), "18446744074 s");
	ck_assert_str_eq(text__bytes(b, 1023), "1023 B");
	ck_assert_str_eq(text__bytes(b, 1536), "1.50 KiB");
	ck_assert_str_eq(text__bytes(b, 60ull << 20), "60.0 MiB");
	ck_assert_str_eq(text__bytes(b, (1ull << 20) - 1), "1.00 MiB");
	ck_assert_str_eq(text__bytes(b, UINT64_MAX), "16.0 EiB");
	ck_assert_str_eq(text__count(b, 0), "0");
	ck_assert_str_eq(text__count(b, 999), "999");
	ck_assert_str_eq(text__count(b, 1000), "1,000");
	ck_assert_str_eq(text__count(b, 1234567), "1,234,567");
	ck_assert_str_eq(text__count(b, UINT64_MAX), "18,446,744,073,709,551,615");
}
END_TEST

START_TEST(shares_neither_hide_nor_complete)
{
	char b[TEXT_FIGURE];

	ck_assert_str_eq(text__share(b, 1, 0), "-");
	ck_assert_str_eq(text__share(b, 0, 10), "0 %");
	ck_assert_str_eq(text__share(b, 1, 1000000), "<0.01 %");
	ck_assert_str_eq(text__share(b, 999999, 1000000), ">99.99 %");
	ck_assert_str_eq(text__share(b, 9996, 10000), "99.96 %");
	ck_assert_str_eq(text__share(b, 1, 8), "12.5 %");
	ck_assert_str_eq(text__share(b, 5, 1000), "0.50 %");
	ck_assert_str_eq(text__share(b, 8, 8), "100.0 %");
}
END_TEST

START_TEST(reasons_go_with_their_errno)
{
	char *why = NULL;

	ck_assert_int_eq(text__why(&why, -ENOENT, "no %s below %d", "group", 7), -ENOENT);
	ck_assert_str_eq(why, "no group below 7");
	free(why);
	errno = EACCES;
	ck_assert_int_eq(text__why(&why, -EPERM, "%m"), -EPERM);
	ck_assert_str_eq(why, strerror(EACCES));
	free(why);
}
END_TEST

/* Lengths around the limit; what is cut is never the half of a character. */
START_TEST(names_in_messages_are_short_and_harmless)
{
	char buf[TEXT_NAME], name[3 * TEXT_NAME + 1];

	ck_assert_str_eq(text__name(buf, ""), "");
	ck_assert_str_eq(text__name(buf, "a/b"), "a/b");
	ck_assert_str_eq(text__name(buf, "a\nb\x1b[31m\xff\xe2\x80\xae"), "a?b?[31m??");
	for (size_t len = TEXT_NAME - 8; len < TEXT_NAME + 8; len++) {
		memset(name, 'x', len);
		name[len] = '\0';
		text__name(buf, name);
		if (len < TEXT_NAME) {
			ck_assert_str_eq(buf, name);
			continue;
		}
		ck_assert_uint_eq(strlen(buf), TEXT_NAME - 1);
		ck_assert_str_eq(buf + TEXT_NAME - 5, "x\xe2\x80\xa6");
	}
	for (size_t from = 0; from < 3; from++) {
		memset(name, 'x', from);
		for (size_t at = from; at < sizeof(name) - 3; at += 3)
			memcpy(name + at, "\xe2\x82\xac", 4);
		text__name(buf, name);
		ck_assert(!strchr(buf, '?'));
		ck_assert_uint_ge(strlen(buf), TEXT_NAME - 3);
		ck_assert(!strcmp(buf + strlen(buf) - 6, "\xe2\x82\xac\xe2\x80\xa6"));
	}
}
END_TEST

START_TEST(columns_are_characters)
{
	ck_assert_uint_eq(text__columns("ab\xe2\x82\xac", 5), 3);
	ck_assert_uint_eq(text__columns("\xff\xff", 2), 2);
}
END_TEST

UNIT_MAIN("text", utf8_is_what_rfc_3629_says, controls_are_replaced_and_nothing_else,
	  cleaning_works_in_place_and_on_rubbish, cuts_do_not_split_characters, strings_grow,
	  figures_have_three_digits, shares_neither_hide_nor_complete,
	  reasons_go_with_their_errno, names_in_messages_are_short_and_harmless,
	  columns_are_characters)
