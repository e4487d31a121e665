// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols/names.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/table.h"

#define SLAB (64u << 10)

struct name {
	struct name *same_hash;
	size_t len;
	char text[];
};

struct slab {
	struct slab *next;
	size_t used, size;
	_Alignas(struct name) char bytes[];
};

struct name_set {
	struct table *by_hash;	/* hash -> struct name */
	struct slab *slabs;
};

struct name_set *name_set__new(void)
{
	struct name_set *n = calloc(1, sizeof(*n));

	if (n)
		n->by_hash = table__new();
	if (n && !n->by_hash) {
		free(n);
		return NULL;
	}
	return n;
}

void name_set__free(struct name_set *n)
{
	struct slab *next;

	if (!n)
		return;
	for (struct slab *s = n->slabs; s; s = next) {
		next = s->next;
		free(s);
	}
	table__free(n->by_hash);
	free(n);
}

static struct name *new_name(struct name_set *n, const char *text, size_t len)
{
	size_t align = _Alignof(struct name);
	size_t size = (sizeof(struct name) + len + 1 + align - 1) / align * align;
	struct slab *s = n->slabs;
	struct name *name;

	if (!s || s->size - s->used < size) {
		size_t room = size > SLAB ? size : SLAB;

		s = malloc(sizeof(*s) + room);
		if (!s)
			return NULL;
		*s = (struct slab){ .next = n->slabs, .size = room };
		n->slabs = s;
	}
	name = (struct name *)(s->bytes + s->used);
	s->used += size;
	name->same_hash = NULL;
	name->len = len;
	memcpy(name->text, text, len);
	name->text[len] = '\0';
	return name;
}

const char *name_set__intern(struct name_set *n, const char *text, size_t len)
{
	uint64_t hash = hash__bytes(text, len, 0), value = 0;
	struct name *first, *name;

	if (table__get(n->by_hash, hash, &value))
		for (name = (struct name *)(uintptr_t)value; name; name = name->same_hash)
			if (name->len == len && !memcmp(name->text, text, len))
				return name->text;
	first = (struct name *)(uintptr_t)value;
	name = new_name(n, text, len);
	if (!name)
		return NULL;
	name->same_hash = first;
	if (table__set(n->by_hash, hash, (uintptr_t)name))
		return NULL;
	return name->text;
}
