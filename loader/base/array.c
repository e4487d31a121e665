// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/base/array.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#define ARRAY_MIN 64

int array__reserve(void **data, size_t *size, size_t nr, size_t element)
{
	size_t more = *size ? *size * 2 : ARRAY_MIN;
	void *grown;

	if (nr < *size)
		return 0;
	if (nr >= UINT32_MAX)
		return -ENOMEM;
	while (more <= nr)
		more *= 2;
	grown = reallocarray(*data, more, element);
	if (!grown)
		return -ENOMEM;
	*data = grown;
	*size = more;
	return 0;
}
