/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A set of strings: equal ones are the same pointer, which lives as long as the set. */
#ifndef SYMBOLS_NAMES_H
#define SYMBOLS_NAMES_H

#include <stddef.h>

struct name_set;

struct name_set *name_set__new(void);		/* NULL: out of memory */
void name_set__free(struct name_set *n);	/* NULL is fine */

/* `len` bytes without '\0' inside; NULL: out of memory. */
const char *name_set__intern(struct name_set *n, const char *text, size_t len);

#endif
