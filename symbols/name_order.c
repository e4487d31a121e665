// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols/name_order.h"

#include <stdint.h>
#include <string.h>

static size_t oddness(const char *name)
{
	size_t underscores = strspn(name, "_");

	if (name[0] == '$' || (name[0] == '.' && name[1] == 'L'))
		return SIZE_MAX;
	if (underscores == 1 && (name[1] == 'Z' || name[1] == 'R'))
		return 0;
	return underscores;
}

bool name__better(const char *a, const char *b)
{
	size_t odd_a = oddness(a), odd_b = oddness(b);

	return odd_a != odd_b ? odd_a < odd_b : strcmp(a, b) < 0;
}
