// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/base/parse.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits from *s on, which moves behind them; *overflow if they exceed 64 bits. */
static uint64_t digits(const char **s, bool *overflow)
{
	uint64_t value = 0;

	for (; is_digit(**s); (*s)++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(**s - '0'), &value))
			*overflow = true;
	return value;
}

int parse__u64(const char *s, uint64_t min, uint64_t max, uint64_t *value)
{
	bool overflow = false;
	uint64_t v;

	if (!is_digit(*s))
		return -EINVAL;
	v = digits(&s, &overflow);
	if (*s)
		return -EINVAL;
	if (overflow || v < min || v > max)
		return -ERANGE;
	*value = v;
	return 0;
}

static const struct {
	const char *name;
	uint64_t ns;
} units[] = {
	{ "", 1000000000 },
	{ "s", 1000000000 },
	{ "ms", 1000000 },
	{ "us", 1000 },
	{ "ns", 1 },
	{ "m", 60000000000 },
	{ "h", 3600000000000 },
};

/* The digits behind the point in billionths; -EINVAL where there are none or too many. */
static int fraction(const char **s, uint64_t *billionths)
{
	uint64_t scale = 100000000;

	*billionths = 0;
	if (**s != '.')
		return 0;
	(*s)++;
	if (!is_digit(**s))
		return -EINVAL;
	for (; is_digit(**s); (*s)++, scale /= 10) {
		if (!scale)
			return -EINVAL;
		*billionths += (uint64_t)(**s - '0') * scale;
	}
	return 0;
}

int parse__duration(const char *s, uint64_t *ns)
{
	uint64_t whole, part, rest, value;
	bool overflow = false;
	size_t i;

	if (!is_digit(*s))
		return -EINVAL;
	whole = digits(&s, &overflow);
	if (fraction(&s, &part))
		return -EINVAL;
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(s, units[i].name))
			break;
	if (i == sizeof(units) / sizeof(units[0]))
		return -EINVAL;
	rest = (uint64_t)((unsigned __int128)part * units[i].ns / 1000000000);
	if (overflow || __builtin_mul_overflow(whole, units[i].ns, &value) ||
	    __builtin_add_overflow(value, rest, &value))
		return -ERANGE;
	*ns = value;
	return 0;
}
