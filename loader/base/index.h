/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From a hash to the ids that have it: what interning needs. The keys stay with the caller. */
#ifndef BASE_INDEX_H
#define BASE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero: empty. */
struct index {
	struct index_slot *slots;
	size_t size;		/* a power of two, or 0 */
	size_t used;
};

/* Makes sure that the next index__add can't fail: 0 or -ENOMEM. */
int index__reserve(struct index *x);
void index__add(struct index *x, uint32_t hash, uint32_t id);
void index__free(struct index *x);

/* Start with *pos = 0: each id added with that hash; false when there are no more. */
bool index__next(const struct index *x, uint32_t hash, size_t *pos, uint32_t *id);

#endif
