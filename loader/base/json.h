/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* JSON (RFC 8259), written into a growing text; what separates members is put where it belongs. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdint.h>

#include "loader/base/text.h"

/* `key` is NULL for an element of an array, and for the outermost value. */
void json__open(struct text *t, const char *key, char bracket);	/* '{' or '[' */
void json__close(struct text *t, char bracket);			/* '}' or ']' */
/*
 * Valid UTF-8 whatever the bytes are ('?' for what isn't); control characters, C1 included, are escaped,
 * so that the text can be shown on a terminal. NULL is null.
 */
void json__string(struct text *t, const char *key, const char *value);
void json__number(struct text *t, const char *key, uint64_t value);
void json__signed(struct text *t, const char *key, int64_t value);
void json__share(struct text *t, const char *key, double value);	/* 0 to 1, six decimals */
void json__bool(struct text *t, const char *key, bool value);
void json__null(struct text *t, const char *key);

#endif
