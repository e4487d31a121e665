/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names that are too long to be read: C++ templates above all. */
#ifndef OUTPUT_SHORTEN_H
#define OUTPUT_SHORTEN_H

#include <stdbool.h>
#include <stddef.h>

#include "loader/base/text.h"

/*
 * Appends at most max bytes of `name`: whole if it fits, else with "<…>" for template arguments,
 * else cut and with "…" at the end. Tells whether it isn't whole.
 */
bool shorten__add(struct text *t, const char *name, size_t max);

#endif
