// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/table.h"

struct stack {
	size_t first;		/* in words */
	uint32_t nr;
	uint32_t next;		/* of the same content hash; 0: none */
	uint64_t owner;
};

struct stacks {
	struct stack *stack;	/* [0] is not used */
	uint32_t nr, room;
	uint64_t *words;
	size_t nr_words, room_words;
	struct table *by_content;
	struct table *by_hash;
};

struct stacks *stacks__new(void)
{
	struct stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->by_content = table__new();
	s->by_hash = table__new();
	if (s->by_content && s->by_hash)
		return s;
	stacks__free(s);
	return NULL;
}

void stacks__free(struct stacks *s)
{
	if (!s)
		return;
	table__free(s->by_content);
	table__free(s->by_hash);
	free(s->stack);
	free(s->words);
	free(s);
}

/* Room for one more stack of `nr` words. */
static int stacks__reserve(struct stacks *s, uint32_t nr)
{
	if (s->nr + 1 >= s->room) {
		uint32_t room = s->room ? s->room * 2 : 256;
		struct stack *grown = realloc(s->stack, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		s->stack = grown;
		s->room = room;
	}
	if (s->nr_words + nr > s->room_words) {
		size_t room = s->room_words ? s->room_words * 2 : 16384;
		uint64_t *grown;

		while (room < s->nr_words + nr)
			room *= 2;
		grown = realloc(s->words, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		s->words = grown;
		s->room_words = room;
	}
	return 0;
}

uint32_t stacks__add(struct stacks *s, const uint64_t *words, uint32_t nr, uint64_t owner)
{
	uint64_t key, first = 0;
	struct stack *new;
	uint32_t i;

	if (!nr)
		return STACKS_NONE;
	key = hash__bytes(words, nr * sizeof(*words), owner);
	if (table__get(s->by_content, key, &first)) {
		for (i = (uint32_t)first; i; i = s->stack[i].next) {
			const struct stack *old = &s->stack[i];

			if (old->nr == nr && old->owner == owner &&
			    !memcmp(s->words + old->first, words, nr * sizeof(*words)))
				return i;
		}
	}
	if (stacks__reserve(s, nr) || table__set(s->by_content, key, s->nr + 1))
		return STACKS_NONE;
	new = &s->stack[++s->nr];
	new->first = s->nr_words;
	new->nr = nr;
	new->owner = owner;
	new->next = (uint32_t)first;
	memcpy(s->words + s->nr_words, words, nr * sizeof(*words));
	s->nr_words += nr;
	return s->nr;
}

int stacks__alias(struct stacks *s, uint64_t hash, uint32_t stack)
{
	return table__set(s->by_hash, hash, stack);
}

uint32_t stacks__by_hash(const struct stacks *s, uint64_t hash)
{
	uint64_t stack;

	return hash && table__get(s->by_hash, hash, &stack) ? (uint32_t)stack : STACKS_NONE;
}

const uint64_t *stacks__words(const struct stacks *s, uint32_t stack, uint32_t *nr)
{
	*nr = stack && stack <= s->nr ? s->stack[stack].nr : 0;
	return *nr ? s->words + s->stack[stack].first : NULL;
}

uint32_t stacks__count(const struct stacks *s)
{
	return s->nr;
}
