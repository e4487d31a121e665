// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/shapes.h"

#include <errno.h>
#include <stdlib.h>

#include "loader/base/array.h"
#include "loader/base/table.h"

#define MAX_SHAPES (1u << 18)	/* 14 MiB; of later ones nothing is known by shape */

struct times {
	double ns, weight;
};

struct shapes {
	struct table *by_hash;	/* 64 bits of what it is -> index in times */
	struct times *times;
	size_t nr, room;
	uint64_t seed;
};

struct shapes *shapes__new(void)
{
	struct shapes *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->seed = hash__seed();
	s->by_hash = table__new();
	if (s->by_hash)
		return s;
	free(s);
	return NULL;
}

void shapes__free(struct shapes *s)
{
	if (!s)
		return;
	table__free(s->by_hash);
	free(s->times);
	free(s);
}

static uint64_t hash_of(const struct shapes *s, uint32_t process, uint32_t work, const struct shape *shape)
{
	const struct {
		uint32_t process, work;
		struct shape shape;
	} key = { process, work, *shape };

	return hash__bytes(&key, sizeof(key), s->seed);
}

int shapes__add(struct shapes *s, uint32_t process, uint32_t work, const struct shape *shape, uint64_t ns,
		uint32_t weight)
{
	uint64_t hash = hash_of(s, process, work, shape), i;

	if (!table__get(s->by_hash, hash, &i)) {
		if (s->nr == MAX_SHAPES)
			return 0;
		i = s->nr;
		if (array__reserve((void **)&s->times, &s->room, s->nr, sizeof(*s->times)) ||
		    table__set(s->by_hash, hash, i))
			return -ENOMEM;
		s->times[s->nr++] = (struct times){ 0 };
	}
	s->times[i].ns += (double)ns * weight;
	s->times[i].weight += weight;
	return 0;
}

bool shapes__mean(const struct shapes *s, uint32_t process, uint32_t work, const struct shape *shape,
		  double *ns)
{
	uint64_t i;

	if (!table__get(s->by_hash, hash_of(s, process, work, shape), &i) || !(s->times[i].weight > 0))
		return false;
	*ns = s->times[i].ns / s->times[i].weight;
	return true;
}
