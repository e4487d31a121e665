// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/array.h"
#include "loader/base/index.h"
#include "loader/base/table.h"

struct tally {
	struct tally_value *value;
	size_t nr, room;
	struct index by_key;
	uint64_t seed;
};

struct tally *tally__new(void)
{
	struct tally *t = calloc(1, sizeof(*t));

	if (t)
		t->seed = hash__seed();
	return t;
}

void tally__free(struct tally *t)
{
	if (!t)
		return;
	index__free(&t->by_key);
	free(t->value);
	free(t);
}

/* The entry of `key`, made if there is none; NULL: out of memory. */
static struct tally_value *tally__entry(struct tally *t, const struct tally_key *key)
{
	uint32_t hash = (uint32_t)hash__bytes(key, sizeof(*key), t->seed), id;
	struct tally_value *v;
	size_t pos = 0;

	while (index__next(&t->by_key, hash, &pos, &id))
		if (!memcmp(&t->value[id].key, key, sizeof(*key)))
			return &t->value[id];
	if (index__reserve(&t->by_key) ||
	    array__reserve((void **)&t->value, &t->room, t->nr, sizeof(*t->value)))
		return NULL;
	index__add(&t->by_key, hash, (uint32_t)t->nr);
	v = &t->value[t->nr++];
	memset(v, 0, sizeof(*v));
	v->key = *key;
	return v;
}

int tally__add(struct tally *t, const struct tally_key *key, const struct tally_add *add)
{
	struct tally_value *v = tally__entry(t, key);

	if (!v)
		return -ENOMEM;
	v->count += add->count;
	/* Made up ones must not overflow. */
	if (__builtin_add_overflow(v->bytes, add->bytes, &v->bytes))
		v->bytes = UINT64_MAX;
	v->timed += add->timed;
	v->ns += add->ns;
	v->untimed += add->untimed;
	v->left_out += add->left_out;
	v->chanced += add->others != 0;
	v->others += add->others;
	v->others_ns += add->others * add->ns;
	return 0;
}

size_t tally__count(const struct tally *t)
{
	return t->nr;
}

const struct tally_value *tally__at(const struct tally *t, size_t i)
{
	return &t->value[i];
}
