// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/works.h"

#include <stdlib.h>
#include <string.h>

#include "loader/base/table.h"

struct work {
	char *text;
	uint32_t next;		/* of the same hash; 0: none */
};

struct works {
	struct work *name;	/* [0] is not used */
	uint32_t nr, room;
	struct table *by_text;
};

struct works *works__new(void)
{
	struct works *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->by_text = table__new();
	if (n->by_text)
		return n;
	free(n);
	return NULL;
}

void works__free(struct works *n)
{
	uint32_t i;

	if (!n)
		return;
	for (i = 1; i <= n->nr; i++)
		free(n->name[i].text);
	free(n->name);
	table__free(n->by_text);
	free(n);
}

uint32_t works__add(struct works *n, const char *text, size_t len)
{
	uint64_t key, first = 0;
	uint32_t i;

	len = strnlen(text, len);
	key = hash__bytes(text, len, 0);
	if (table__get(n->by_text, key, &first))
		for (i = (uint32_t)first; i; i = n->name[i].next)
			if (!strncmp(n->name[i].text, text, len) && !n->name[i].text[len])
				return i;
	if (n->nr + 1 >= n->room) {
		uint32_t room = n->room ? n->room * 2 : 64;
		struct work *grown = realloc(n->name, room * sizeof(*grown));

		if (!grown)
			return 0;
		n->name = grown;
		n->room = room;
	}
	i = n->nr + 1;
	n->name[i].text = strndup(text, len);
	n->name[i].next = (uint32_t)first;
	if (!n->name[i].text)
		return 0;
	if (table__set(n->by_text, key, i)) {
		free(n->name[i].text);
		return 0;
	}
	n->nr = i;
	return i;
}

const char *works__get(const struct works *n, uint32_t name)
{
	return name && name <= n->nr ? n->name[name].text : "";
}
