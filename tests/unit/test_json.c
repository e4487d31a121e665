// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/base/json.h"

#include <stdlib.h>

#include "tests/unit/unit.h"

static char *of_string(const char *s)
{
	struct text t = { 0 };

	json__string(&t, NULL, s);
	return text__take(&t);
}

START_TEST(strings_are_valid_and_harmless)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "", "\"\"" },
		{ "a b", "\"a b\"" },
		{ "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"" },
		{ "\"\\/", "\"\\\"\\\\/\"" },
		{ "\x1b[31m\n\t\x7f", "\"\\u001b[31m\\n\\u0009\\u007f\"" },
		{ "\xc2\x9b\xc2\xa0", "\"\\u009b\xc2\xa0\"" },	/* C1, and the first that isn't */
		{ "\xd8\x9c\xe2\x80\xa8\xe2\x80\xae\xef\xbb\xbf",
		  "\"\\u061c\\u2028\\u202e\\ufeff\"" },
		{ "\xff\xc3 \xed\xa0\x80", "\"?? ???\"" },
		{ "\xc2", "\"?\"" },
		{ "\xe2\x82", "\"??\"" },
		{ NULL, "null" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *got = of_string(rows[i].in);

		ck_assert_msg(!strcmp(got, rows[i].out), "row %zu: %s", i, got);
		free(got);
	}
}
END_TEST

START_TEST(members_are_separated)
{
	struct text t = { 0 };
	char *got;

	json__open(&t, NULL, '{');
	json__string(&t, "a{", "{[");
	json__number(&t, "b", UINT64_MAX);
	json__open(&t, "c", '[');
	json__open(&t, NULL, '{');
	json__close(&t, '}');
	json__open(&t, NULL, '[');
	json__close(&t, ']');
	json__null(&t, NULL);
	json__close(&t, ']');
	json__share(&t, "d", 1.0 / 3);
	json__bool(&t, "e", true);
	json__bool(&t, "f", false);
	json__close(&t, '}');
	got = text__take(&t);
	ck_assert_str_eq(got, "{\"a{\":\"{[\",\"b\":18446744073709551615,\"c\":[{},[],null],"
			      "\"d\":0.333333,\"e\":true,\"f\":false}");
	free(got);
}
END_TEST

UNIT_MAIN("json", strings_are_valid_and_harmless, members_are_separated)
