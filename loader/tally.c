// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/table.h"

struct tally {
	struct tally_value *value;
	uint32_t *next;		/* of the same hash, index + 1; 0: none */
	size_t nr, room;
	struct table *by_key;	/* hash -> index + 1 of the first */
};

struct tally *tally__new(void)
{
	struct tally *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->by_key = table__new();
	if (t->by_key)
		return t;
	free(t);
	return NULL;
}

void tally__free(struct tally *t)
{
	if (!t)
		return;
	table__free(t->by_key);
	free(t->value);
	free(t->next);
	free(t);
}

static int tally__grow(struct tally *t)
{
	size_t room = t->room ? t->room * 2 : 1024;
	struct tally_value *value = realloc(t->value, room * sizeof(*value));
	uint32_t *next;

	if (!value)
		return -ENOMEM;
	t->value = value;
	next = realloc(t->next, room * sizeof(*next));
	if (!next)
		return -ENOMEM;
	t->next = next;
	t->room = room;
	return 0;
}

/* The entry of `key`, made if there is none; NULL: out of memory. */
static struct tally_value *tally__entry(struct tally *t, const struct tally_key *key)
{
	uint64_t hash = hash__bytes(key, sizeof(*key), 0), first = 0;
	struct tally_value *v;
	uint64_t i;

	if (table__get(t->by_key, hash, &first))
		for (i = first; i; i = t->next[i - 1])
			if (!memcmp(&t->value[i - 1].key, key, sizeof(*key)))
				return &t->value[i - 1];
	if (t->nr == t->room && tally__grow(t))
		return NULL;
	if (table__set(t->by_key, hash, t->nr + 1))
		return NULL;
	v = &t->value[t->nr];
	memset(v, 0, sizeof(*v));
	v->key = *key;
	t->next[t->nr++] = (uint32_t)first;
	return v;
}

int tally__add(struct tally *t, const struct tally_key *key, const struct tally_add *add)
{
	struct tally_value *v = tally__entry(t, key);

	if (!v)
		return -ENOMEM;
	v->count += add->count;
	v->timed += add->timed;
	v->ns += add->ns;
	v->untimed += add->untimed;
	v->weight += add->weight;
	v->weighted_ns += add->weight * add->ns;
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
