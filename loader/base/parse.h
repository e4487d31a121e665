/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers from the command line and from files of the system: the whole text or an error. */
#ifndef BASE_PARSE_H
#define BASE_PARSE_H

#include <stdint.h>

/*
 * Decimal digits alone: no sign, no blanks, nothing behind. 0, -EINVAL (not a number) or -ERANGE
 * (a number outside min to max). *value is set only on success.
 */
int parse__u64(const char *s, uint64_t min, uint64_t max, uint64_t *value);

/*
 * "10", "1.5s", "500ms", "2m", "1h", also us and ns: nanoseconds; without a unit, seconds. At
 * most nine decimals. 0, -EINVAL, or -ERANGE where it exceeds 64 bits.
 */
int parse__duration(const char *s, uint64_t *ns);

#endif
