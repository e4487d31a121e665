// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/join.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/array.h"
#include "loader/base/table.h"

struct half {
	bool is_launch;
	uint32_t next_free;
	union {
		struct join_launch launch;
		struct channel_result result;
	};
};

struct join {
	uint32_t most;
	join_done done;
	struct table *waiting;		/* launch id -> index */
	struct half *half;
	size_t room;
	uint32_t free;			/* index + 1 of the first; 0: none */
};

struct join *join__new(uint32_t most, join_done done)
{
	struct join *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->most = most;
	j->done = done;
	j->waiting = table__new();
	if (j->waiting)
		return j;
	free(j);
	return NULL;
}

void join__free(struct join *j)
{
	if (!j)
		return;
	table__free(j->waiting);
	free(j->half);
	free(j);
}

static int join__grow(struct join *j)
{
	size_t old = j->room, i;

	if (array__reserve((void **)&j->half, &j->room, old, sizeof(*j->half)))
		return -ENOMEM;
	for (i = old; i < j->room; i++)
		j->half[i].next_free = i + 1 < j->room ? (uint32_t)i + 2 : 0;
	j->free = (uint32_t)old + 1;
	return 0;
}

static int join__alone(struct join *j, const struct half *h, void *ctx)
{
	return h->is_launch ? j->done(ctx, &h->launch, NULL) : j->done(ctx, NULL, &h->result);
}

static void join__remove(struct join *j, uint64_t id, uint32_t i)
{
	table__remove(j->waiting, id);
	j->half[i].next_free = j->free;
	j->free = i + 1;
}

static int join__wait(struct join *j, uint64_t id, const struct half *h, void *ctx)
{
	uint32_t i;

	if (table__count(j->waiting) >= j->most)
		return join__alone(j, h, ctx);
	if (!j->free && join__grow(j))
		return -ENOMEM;
	i = j->free - 1;
	if (table__set(j->waiting, id, i))
		return -ENOMEM;
	j->free = j->half[i].next_free;
	j->half[i] = *h;
	return 0;
}

/* Puts a half to the one that waits for it; one of its own kind goes on alone. */
static int join__add(struct join *j, uint64_t id, const struct half *h, void *ctx)
{
	const struct half *other;
	uint64_t i;
	int err;

	if (!table__get(j->waiting, id, &i))
		return join__wait(j, id, h, ctx);
	other = &j->half[i];
	if (other->is_launch == h->is_launch) {
		err = join__alone(j, other, ctx);
		j->half[i] = *h;
		return err;
	}
	err = h->is_launch ? j->done(ctx, &h->launch, &other->result) :
			     j->done(ctx, &other->launch, &h->result);
	join__remove(j, id, (uint32_t)i);
	return err;
}

int join__launch(struct join *j, uint64_t id, const struct join_launch *launch, void *ctx)
{
	const struct half h = { .is_launch = true, .launch = *launch };

	return join__add(j, id, &h, ctx);
}

int join__result(struct join *j, const struct channel_result *result, void *ctx)
{
	const struct half h = { .result = *result };

	return join__add(j, result->launch, &h, ctx);
}

int join__finish(struct join *j, void *ctx)
{
	uint64_t id, i;
	size_t pos = 0;
	int err, first = 0;

	while (table__next(j->waiting, &pos, &id, &i)) {
		err = join__alone(j, &j->half[i], ctx);
		first = first ? first : err;
		join__remove(j, id, (uint32_t)i);
	}
	return first;
}
