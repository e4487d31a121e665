// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/base/index.h"

#include <errno.h>
#include <stdlib.h>

#define INDEX_MIN 64

struct index_slot {
	uint32_t hash;
	uint32_t used;
	uint32_t id;
};

static void insert(struct index_slot *slots, size_t size, uint32_t hash, uint32_t id)
{
	size_t i = hash & (size - 1);

	while (slots[i].used)
		i = (i + 1) & (size - 1);
	slots[i] = (struct index_slot){ .hash = hash, .used = 1, .id = id };
}

int index__reserve(struct index *x)
{
	struct index_slot *slots;
	size_t size, i;

	if ((x->used + 1) * 3 <= x->size * 2)
		return 0;
	size = x->size ? x->size * 2 : INDEX_MIN;
	slots = calloc(size, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (i = 0; i < x->size; i++)
		if (x->slots[i].used)
			insert(slots, size, x->slots[i].hash, x->slots[i].id);
	free(x->slots);
	x->slots = slots;
	x->size = size;
	return 0;
}

void index__add(struct index *x, uint32_t hash, uint32_t id)
{
	insert(x->slots, x->size, hash, id);
	x->used++;
}

void index__free(struct index *x)
{
	free(x->slots);
	*x = (struct index){ 0 };
}

bool index__next(const struct index *x, uint32_t hash, size_t *pos, uint32_t *id)
{
	const struct index_slot *slot;

	if (!x->size)
		return false;
	for (;;) {
		slot = &x->slots[(hash + *pos) & (x->size - 1)];
		(*pos)++;
		if (!slot->used)
			return false;
		if (slot->hash == hash) {
			*id = slot->id;
			return true;
		}
	}
}
