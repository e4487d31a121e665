/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Text from targets made harmless, a string that grows, and figures for people. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Length of the well-formed UTF-8 sequence at s (1 to 4, RFC 3629), or 0. */
size_t text__utf8(const char *s, size_t len);

/* The length <= max at which s can be cut without breaking a well-formed sequence. */
size_t text__cut(const char *s, size_t len, size_t max);

/* The character of the well-formed sequence of n bytes at s. */
uint32_t text__character(const char *s, size_t n);

/*
 * Whether a character can end a line in some reader, steer a terminal or turn the direction of writing,
 * or has no width, so that a name would look like another. Joiners without which words of some languages
 * can't be written (U+200C, U+200D) are none. All of them have four digits.
 */
bool text__is_control(uint32_t c);

/*
 * Copies with '?' for each byte that isn't part of well-formed UTF-8 and for each control
 * character. Returns the length, never more than len; dst may be src; no NUL is added.
 */
size_t text__clean(char *dst, const char *src, size_t len);

/* A growing string. An allocation that fails sticks: `failed`, further additions do nothing. */
struct text {
	char *data;		/* NUL-terminated once something was added, else NULL */
	size_t len;
	size_t size;
	bool failed;
};

void text__add(struct text *t, const char *s, size_t len);
void text__add_string(struct text *t, const char *s);
void text__add_clean(struct text *t, const char *s, size_t len);
void text__printf(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text__truncate(struct text *t, size_t len);	/* to at most len */
/* The string, for the caller to free ("" if nothing was added); NULL if an allocation failed. */
char *text__take(struct text *t);
void text__free(struct text *t);

/* A reason for the user: *why is malloc'd, NULL where there is no memory. Hands `err` back. */
int text__why(char **why, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/*
 * A name in a message, which is one line and has more to say: harmless, and with "…" where it is too long;
 * into buf of TEXT_NAME bytes, which it returns.
 */
#define TEXT_NAME 256
const char *text__name(char *buf, const char *name);

/* Columns on a terminal, roughly: one for each character of well-formed UTF-8. */
size_t text__columns(const char *s, size_t len);

#define TEXT_FIGURE 32
/* "1.50 s", "12.3 ms", "640 ns": three digits; into buf of TEXT_FIGURE bytes, which they return. */
const char *text__duration(char *buf, uint64_t ns);
/* "512 B", "1.5 KiB", "60 MiB". */
const char *text__bytes(char *buf, uint64_t bytes);
/* "1,234,567". */
const char *text__count(char *buf, uint64_t n);
/* Adds "1 launch" or "1,234 launches". */
void text__add_count(struct text *t, uint64_t n, const char *one, const char *many);
/* part of whole: "12.3 %", "0.04 %", "<0.01 %"; "-" where whole is 0. */
const char *text__share(char *buf, uint64_t part, uint64_t whole);

/* All of it, flushed: 0, -ENOMEM where some of it is missing, or what the stream says. */
int text__write(const struct text *t, FILE *f);

#endif
