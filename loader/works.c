// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/works.h"

#include <stdlib.h>
#include <string.h>

#include "loader/base/array.h"
#include "loader/base/index.h"
#include "loader/base/table.h"

struct works {
	char **name;		/* [0] is not used */
	size_t nr, room;
	struct index by_text;
	uint64_t seed;
};

struct works *works__new(void)
{
	struct works *n = calloc(1, sizeof(*n));

	if (n)
		n->seed = hash__seed();
	return n;
}

void works__free(struct works *n)
{
	size_t i;

	if (!n)
		return;
	for (i = 1; i <= n->nr; i++)
		free(n->name[i]);
	free(n->name);
	index__free(&n->by_text);
	free(n);
}

uint32_t works__add(struct works *n, const char *text, size_t len)
{
	uint32_t hash, id;
	size_t pos = 0;

	len = strnlen(text, len);
	hash = (uint32_t)hash__bytes(text, len, n->seed);
	while (index__next(&n->by_text, hash, &pos, &id))
		if (!strncmp(n->name[id], text, len) && !n->name[id][len])
			return id;
	if (index__reserve(&n->by_text) ||
	    array__reserve((void **)&n->name, &n->room, n->nr + 1, sizeof(*n->name)))
		return 0;
	id = (uint32_t)n->nr + 1;
	n->name[id] = strndup(text, len);
	if (!n->name[id])
		return 0;
	index__add(&n->by_text, hash, id);
	n->nr++;
	return id;
}

const char *works__get(const struct works *n, uint32_t name)
{
	return name && name <= n->nr ? n->name[name] : "";
}
