/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Arrays that grow and whose elements have u32 ids. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>

/*
 * Room for an element of index `nr`, and for all before it, in an array that has room for *size: 0 or
 * -ENOMEM, also where the index would no longer fit an id (UINT32_MAX stays free for "none"). *data
 * may move; on failure nothing changes.
 */
int array__reserve(void **data, size_t *size, size_t nr, size_t element);

#endif
