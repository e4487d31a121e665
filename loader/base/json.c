// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/base/json.h"

#include <inttypes.h>
#include <string.h>

static void add_escaped(struct text *t, const char *s)
{
	size_t len = strlen(s), i, n;

	text__add_string(t, "\"");
	for (i = 0; i < len; i += n ? n : 1) {
		uint32_t c;

		n = text__utf8(s + i, len - i);
		c = n ? text__character(s + i, n) : 0;
		if (!n)
			text__add_string(t, "?");
		else if (c == '"' || c == '\\')
			text__printf(t, "\\%c", (char)c);
		else if (c == '\n')
			text__add_string(t, "\\n");
		else if (text__is_control(c))
			text__printf(t, "\\u%04" PRIx32, c);
		else
			text__add(t, s + i, n);
	}
	text__add_string(t, "\"");
}

/* The comma, if something stands before, and the key. */
static void begin(struct text *t, const char *key)
{
	if (t->len && !strchr("{[", t->data[t->len - 1]))
		text__add_string(t, ",");
	if (!key)
		return;
	add_escaped(t, key);
	text__add_string(t, ":");
}

void json__open(struct text *t, const char *key, char bracket)
{
	begin(t, key);
	text__add(t, &bracket, 1);
}

void json__close(struct text *t, char bracket)
{
	text__add(t, &bracket, 1);
}

void json__string(struct text *t, const char *key, const char *value)
{
	begin(t, key);
	if (value)
		add_escaped(t, value);
	else
		text__add_string(t, "null");
}

void json__number(struct text *t, const char *key, uint64_t value)
{
	begin(t, key);
	text__printf(t, "%" PRIu64, value);
}

void json__signed(struct text *t, const char *key, int64_t value)
{
	begin(t, key);
	text__printf(t, "%" PRId64, value);
}

void json__share(struct text *t, const char *key, double value)
{
	begin(t, key);
	text__printf(t, "%.6f", value);
}

void json__bool(struct text *t, const char *key, bool value)
{
	begin(t, key);
	text__add_string(t, value ? "true" : "false");
}

void json__null(struct text *t, const char *key)
{
	json__string(t, key, NULL);
}
