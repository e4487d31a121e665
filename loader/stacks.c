// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/stacks.h"

#include <linux/types.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/gpucollect.h"
#include "loader/base/array.h"
#include "loader/base/index.h"
#include "loader/base/table.h"

struct stack {
	size_t first;		/* in words */
	uint32_t nr;
	uint64_t owner;
};

struct stacks {
	struct stack *stack;	/* [0] is not used */
	size_t nr, room;
	uint64_t *words;
	size_t nr_words, room_words;
	struct index by_content;
	struct table *by_hash;	/* of the BPF side */
	uint64_t seed;
};

struct stacks *stacks__new(void)
{
	struct stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->seed = hash__seed();
	s->by_hash = table__new();
	if (s->by_hash)
		return s;
	free(s);
	return NULL;
}

void stacks__free(struct stacks *s)
{
	if (!s)
		return;
	index__free(&s->by_content);
	table__free(s->by_hash);
	free(s->stack);
	free(s->words);
	free(s);
}

static bool stack__is(const struct stacks *s, uint32_t id, const uint64_t *words, uint32_t nr,
		      uint64_t owner)
{
	const struct stack *stack = &s->stack[id];

	return stack->nr == nr && stack->owner == owner &&
	       !memcmp(s->words + stack->first, words, nr * sizeof(*words));
}

uint32_t stacks__add(struct stacks *s, const uint64_t *words, uint32_t nr, uint64_t owner)
{
	uint32_t hash, id;
	size_t pos = 0;

	if (!nr)
		return STACKS_NONE;
	hash = (uint32_t)hash__bytes(words, nr * sizeof(*words), s->seed ^ owner);
	while (index__next(&s->by_content, hash, &pos, &id))
		if (stack__is(s, id, words, nr, owner))
			return id;
	if (index__reserve(&s->by_content) ||
	    array__reserve((void **)&s->stack, &s->room, s->nr + 1, sizeof(*s->stack)) ||
	    array__reserve((void **)&s->words, &s->room_words, s->nr_words + nr, sizeof(*s->words)))
		return STACKS_NONE;
	id = (uint32_t)++s->nr;
	s->stack[id] = (struct stack){ .first = s->nr_words, .nr = nr, .owner = owner };
	memcpy(s->words + s->nr_words, words, nr * sizeof(*words));
	s->nr_words += nr;
	index__add(&s->by_content, hash, id);
	return id;
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

bool stacks__have_generated(const uint64_t *words, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		if (FRAME_KIND(words[i]) == FRAME_ANON || FRAME_KIND(words[i]) == FRAME_ANON_GUESS)
			return true;
	return false;
}

bool stacks__are_own(const uint64_t *words, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		if (FRAME_KIND(words[i]) == FRAME_PYTHON)
			return true;
	return stacks__have_generated(words, nr);
}

uint32_t stacks__end(const uint64_t *words, uint32_t nr)
{
	return nr && FRAME_KIND(words[nr - 1]) == FRAME_END ? FRAME_END_WHY(words[nr - 1]) : NR_END;
}

uint32_t stacks__count(const struct stacks *s)
{
	return (uint32_t)s->nr;
}
