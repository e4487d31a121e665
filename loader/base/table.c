// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/base/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define TABLE_MIN 16
#define HASH_FACTOR 0xd6e8feb86659fd93ull

enum { SLOT_FREE, SLOT_USED, SLOT_GONE };

struct table {
	uint64_t *keys;
	uint64_t *values;
	uint8_t *state;
	size_t size;		/* a power of two */
	size_t used;
	size_t gone;		/* removed, still in the way of probing */
	uint64_t seed;
	uint64_t factor;	/* odd */
};

uint64_t hash__seed(void)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = (uintptr_t)&seed;	/* collisions cost time, nothing else */
	return seed;
}

uint64_t hash__mix(uint64_t x)
{
	x ^= x >> 32;
	x *= HASH_FACTOR;
	x ^= x >> 32;
	x *= HASH_FACTOR;
	x ^= x >> 32;
	return x;
}

uint64_t hash__bytes(const void *data, size_t len, uint64_t seed)
{
	const uint8_t *p = data;
	uint64_t h = hash__mix(seed + len), w;

	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&w, p, 8);
		h = hash__mix(h ^ w);
	}
	if (len) {
		w = 0;
		memcpy(&w, p, len);
		h = hash__mix(h ^ w);
	}
	return h;
}

static int table__alloc(struct table *t, size_t size)
{
	t->keys = malloc(size * sizeof(*t->keys));
	t->values = malloc(size * sizeof(*t->values));
	t->state = calloc(size, 1);
	t->size = size;
	t->used = 0;
	t->gone = 0;
	if (t->keys && t->values && t->state)
		return 0;
	free(t->keys);
	free(t->values);
	free(t->state);
	return -ENOMEM;
}

struct table *table__new(void)
{
	struct table *t = malloc(sizeof(*t));

	if (!t)
		return NULL;
	t->seed = hash__seed();
	t->factor = hash__seed() | 1;
	if (!table__alloc(t, TABLE_MIN))
		return t;
	free(t);
	return NULL;
}

void table__free(struct table *t)
{
	if (!t)
		return;
	free(t->keys);
	free(t->values);
	free(t->state);
	free(t);
}

/*
 * As hash__mix, with one of its factors secret: multiplication by a random odd number spreads any given
 * keys, whoever chose them.
 */
static uint64_t table__hash(const struct table *t, uint64_t key)
{
	key ^= t->seed;
	key ^= key >> 32;
	key *= t->factor;
	key ^= key >> 32;
	key *= HASH_FACTOR;
	return key ^ key >> 32;
}

/* The slot of `key`, or the one where it would go. */
static size_t table__find(const struct table *t, uint64_t key)
{
	size_t i = table__hash(t, key) & (t->size - 1), reuse = SIZE_MAX;

	while (t->state[i] != SLOT_FREE) {
		if (t->state[i] == SLOT_USED && t->keys[i] == key)
			return i;
		if (t->state[i] == SLOT_GONE && reuse == SIZE_MAX)
			reuse = i;
		i = (i + 1) & (t->size - 1);
	}
	return reuse == SIZE_MAX ? i : reuse;
}

static int table__grow(struct table *t)
{
	struct table old = *t;
	size_t i;
	int err;

	err = table__alloc(t, old.used * 4 < old.size ? old.size : old.size * 2);
	if (err) {
		*t = old;
		return err;
	}
	for (i = 0; i < old.size; i++)
		if (old.state[i] == SLOT_USED)
			table__set(t, old.keys[i], old.values[i]);
	free(old.keys);
	free(old.values);
	free(old.state);
	return 0;
}

int table__set(struct table *t, uint64_t key, uint64_t value)
{
	size_t i;

	if ((t->used + t->gone + 1) * 4 > t->size * 3) {
		int err = table__grow(t);

		if (err)
			return err;
	}
	i = table__find(t, key);
	if (t->state[i] != SLOT_USED) {
		if (t->state[i] == SLOT_GONE)
			t->gone--;
		t->state[i] = SLOT_USED;
		t->keys[i] = key;
		t->used++;
	}
	t->values[i] = value;
	return 0;
}

bool table__get(const struct table *t, uint64_t key, uint64_t *value)
{
	size_t i = table__find(t, key);

	if (t->state[i] != SLOT_USED)
		return false;
	*value = t->values[i];
	return true;
}

bool table__remove(struct table *t, uint64_t key)
{
	size_t i = table__find(t, key);

	if (t->state[i] != SLOT_USED)
		return false;
	t->state[i] = SLOT_GONE;
	t->used--;
	t->gone++;
	return true;
}

size_t table__count(const struct table *t)
{
	return t->used;
}

bool table__next(const struct table *t, size_t *pos, uint64_t *key, uint64_t *value)
{
	for (; *pos < t->size; (*pos)++) {
		if (t->state[*pos] != SLOT_USED)
			continue;
		*key = t->keys[*pos];
		*value = t->values[*pos];
		(*pos)++;
		return true;
	}
	return false;
}
