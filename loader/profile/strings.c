// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/profile/strings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/array.h"
#include "loader/base/table.h"

#define BLOCK_BYTES 65536

struct strings_block {
	struct strings_block *next;
	size_t used;
	size_t size;
	char data[];
};

/* len bytes that never move. */
static char *strings__alloc(struct strings *s, size_t len)
{
	struct strings_block *b = s->blocks;
	size_t size = len > BLOCK_BYTES / 4 ? len : BLOCK_BYTES;

	if (!b || b->size - b->used < len) {
		b = malloc(sizeof(*b) + size);
		if (!b)
			return NULL;
		b->used = 0;
		b->size = size;
		if (size != BLOCK_BYTES && s->blocks) {
			/* A block of one long string goes behind, the current one stays in use. */
			b->next = s->blocks->next;
			s->blocks->next = b;
		} else {
			b->next = s->blocks;
			s->blocks = b;
		}
	}
	b->used += len;
	return b->data + b->used - len;
}

int strings__intern(struct strings *s, const char *text, const char **out)
{
	size_t len, pos = 0;
	uint32_t hash, id;
	char *copy;

	if (!text) {
		*out = NULL;
		return 0;
	}
	len = strlen(text) + 1;
	hash = (uint32_t)hash__bytes(text, len, s->seed);
	while (index__next(&s->index, hash, &pos, &id))
		if (!strcmp(s->list[id], text)) {
			*out = s->list[id];
			return 0;
		}
	if (index__reserve(&s->index) ||
	    array__reserve((void **)&s->list, &s->size, s->nr, sizeof(*s->list)))
		return -ENOMEM;
	copy = strings__alloc(s, len);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, text, len);
	index__add(&s->index, hash, (uint32_t)s->nr);
	s->list[s->nr++] = copy;
	*out = copy;
	return 0;
}

void strings__free(struct strings *s)
{
	struct strings_block *b, *next;

	for (b = s->blocks; b; b = next) {
		next = b->next;
		free(b);
	}
	index__free(&s->index);
	free(s->list);
	memset(s, 0, sizeof(*s));
}
