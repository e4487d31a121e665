/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which of two names of one address is shown. */
#ifndef SYMBOLS_NAME_ORDER_H
#define SYMBOLS_NAME_ORDER_H

#include <stdbool.h>

/*
 * A total order: fewer leading underscores (those of a mangled name don't count), no '$' or ".L" in
 * front, then the alphabet.
 */
bool name__better(const char *a, const char *b);

#endif
