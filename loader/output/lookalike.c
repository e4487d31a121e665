// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/output/lookalike.h"

#include <stdbool.h>
#include <string.h>

#include "loader/profile/profile.h"

#define DIGITS "0123456789"
#define HASH_DIGITS 8

/* Beside the marks of the profile. With %s, or a blank at the end: only how it begins. */
static const char *const own[] = {
	"[GPU]%s", "[thread ", "[no name]", "[anonymous code]", "[kernel]", "[graph]", "[unknown kernel]",
	"[kernel without a name]", "[kernel with an empty name]",
};

/* Whether s is this text, or begins with it. */
static bool is_like(const char *s, const char *text)
{
	for (; *text && *text != '%'; s++, text++)
		if ((*s == ';' ? ':' : *s) != *text)
			return false;
	return *text || text[-1] == ' ' || !*s;
}

void lookalike__break_start(struct text *t, size_t start)
{
	bool found = false;
	char *s;

	if (t->failed || t->len <= start || t->data[start] != '[')
		return;
	s = t->data + start;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		found |= is_like(s, own[i]);
	for (int i = 0; i < NR_PROFILE_MARKS; i++)
		found |= is_like(s, profile__mark_text((enum profile_mark)i));
	if (found)
		*s = '?';
}

void lookalike__break_copy(struct text *t, size_t start)
{
	char *s = t->data + start;

	if (!t->failed && t->len > start &&
	    (!strcmp(s, "memset") || !strcmp(s, "memcpy") || !strncmp(s, "memcpy ", 7)))
		*s = '?';
}

/* The number of characters of `set` that s, of `len`, ends with. */
static size_t ending(const char *s, size_t len, const char *set)
{
	size_t n = 0;

	while (n < len && strchr(set, s[len - 1 - n]))
		n++;
	return n;
}

static bool ends_in(const char *s, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && !memcmp(s + len - n, end, n);
}

/* "_[k]" and its like; NULL, or the sign that makes it one. */
static char *suffix(char *s, size_t len)
{
	return len >= 4 && s[len - 4] == '_' && s[len - 3] == '[' && strchr("kijG", s[len - 2]) &&
	       s[len - 1] == ']' ? s + len - 3 : NULL;
}

/* " (file:line)" and " (pid N)". */
static char *place(char *s, size_t len)
{
	size_t digits, left;

	if (!len || s[len - 1] != ')')
		return NULL;
	digits = ending(s, len - 1, DIGITS);
	left = len - 1 - digits;
	if (digits && (ends_in(s, left, " (pid ") ||
		       (left && strchr(":;", s[left - 1]) && memmem(s, left, " (", 2))))
		return s + len - 1;
	return NULL;
}

/* "+0x1234", and "#" with the digits of a hash. */
static char *number(char *s, size_t len)
{
	size_t digits = ending(s, len, DIGITS "abcdef"), left = len - digits;

	if (digits && ends_in(s, left, "+0x"))
		return s + left - 3;
	if (digits == HASH_DIGITS && ends_in(s, left, "#"))
		return s + left - 1;
	return NULL;
}

void lookalike__break_end(struct text *t, size_t start)
{
	char *(*const forms[])(char *s, size_t len) = { suffix, place, number };

	for (size_t i = 0; !t->failed && t->len > start && i < sizeof(forms) / sizeof(forms[0]); i++) {
		char *sign = forms[i](t->data + start, t->len - start);

		if (sign)
			*sign = '?';
	}
}
