// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/output/shorten.h"

#include <string.h>

#define ELLIPSIS "\xe2\x80\xa6"

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       (unsigned char)c >= 0x80;
}

/* Length of "operator<<" and the like at s, or 0: its signs aren't those of templates. */
static size_t operator_length(const char *name, const char *s)
{
	static const char *const signs[] = {
		"<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<", ">",
	};
	size_t i;

	if (strncmp(s, "operator", 8) || (s > name && is_word(s[-1])))
		return 0;
	for (i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (!strncmp(s + 8, signs[i], strlen(signs[i])))
			return 8 + strlen(signs[i]);
	return 8 + strspn(s + 8, "+-*/%^&|~!=,()[]");
}

/* Behind the bracket that closes the one at s, or NULL. */
static const char *closing(const char *name, const char *s)
{
	size_t depth = 0, n;

	for (; *s; s++) {
		n = operator_length(name, s);
		if (n) {
			s += n - 1;
			continue;
		}
		if (s[0] == '-' && s[1] == '>')
			s++;
		else if (*s == '<')
			depth++;
		else if (*s == '>' && !--depth)
			return s + 1;
	}
	return NULL;
}

/* With "<…>" for the arguments of each template; false where brackets don't match. */
static bool add_stripped(struct text *t, const char *name)
{
	const char *s = name, *end, *arguments = NULL;
	size_t n;

	while (*s) {
		n = operator_length(name, s);
		if (n) {
			n += s[n] == ' ';	/* "operator<< <int>" */
			text__add(t, s, n);
			s += n;
			arguments = s;
			continue;
		}
		/* "<lambda>" and Rust's "<T as Trait>" name something, they are no arguments. */
		if (*s == '<' && s > name && (is_word(s[-1]) || s[-1] == '>' || s == arguments)) {
			end = closing(name, s);
			if (!end)
				return false;
			text__add_string(t, "<" ELLIPSIS ">");
			s = end;
			continue;
		}
		text__add(t, s++, 1);
	}
	return true;
}

bool shorten__add(struct text *t, const char *name, size_t max)
{
	size_t start = t->len, len = strlen(name), room = max - strlen(ELLIPSIS);

	if (len <= max) {
		text__add(t, name, len);
		return false;
	}
	if (add_stripped(t, name) && t->len - start <= max)
		return true;
	if (t->failed)
		return true;
	/* A name that can't be stripped is cut as it is. */
	if (t->len - start <= max) {
		text__truncate(t, start);
		text__add(t, name, len);
		if (t->failed)
			return true;
	}
	text__truncate(t, start + text__cut(t->data + start, t->len - start, room));
	text__add_string(t, ELLIPSIS);
	return true;
}
