// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/strata.h"

#include <stdlib.h>

#include "loader/base/array.h"

struct stratum {
	uint64_t launches;	/* 0: not known */
	uint64_t records;
	double weights;		/* what the records stand for */
	/* Of these, of waits: what finds no room in a table shares a stratum. */
	uint64_t waits;
	double wait_weights;
	double carry;		/* of rounding */
};

struct strata {
	struct stratum *stratum;
	size_t nr, room;
	uint64_t others;	/* records of no stratum */
};

struct strata *strata__new(void)
{
	return calloc(1, sizeof(struct strata));
}

void strata__free(struct strata *s)
{
	if (!s)
		return;
	free(s->stratum);
	free(s);
}

static struct stratum *at(const struct strata *s, uint32_t id)
{
	return id && id <= s->nr ? &s->stratum[id - 1] : NULL;
}

uint32_t strata__add(struct strata *s)
{
	if (s->nr >= UINT32_MAX - 1 ||
	    array__reserve((void **)&s->stratum, &s->room, s->nr, sizeof(*s->stratum)))
		return 0;
	s->stratum[s->nr++] = (struct stratum){ 0 };
	return (uint32_t)s->nr;
}

void strata__saw(struct strata *s, uint32_t id, uint32_t weight)
{
	struct stratum *t = at(s, id);

	s->others += !id;
	if (!t)
		return;
	t->records++;
	t->weights += weight;
}

void strata__saw_wait(struct strata *s, uint32_t id, uint32_t weight)
{
	struct stratum *t = at(s, id);

	if (!t)
		return;
	strata__saw(s, id, weight);
	t->waits++;
	t->wait_weights += weight;
}

void strata__set_launches(struct strata *s, uint32_t id, uint64_t launches)
{
	struct stratum *t = at(s, id);

	if (t)
		t->launches = launches;
}

double strata__scale(const struct strata *s, uint32_t id)
{
	const struct stratum *t = at(s, id);

	if (!t || !t->launches || !(t->weights > 0))
		return 1;
	return (double)t->launches / t->weights;
}

void strata__start_rounding(struct strata *s)
{
	size_t i;

	for (i = 0; i < s->nr; i++)
		s->stratum[i].carry = 0;
}

uint64_t strata__round(struct strata *s, uint32_t id, double part)
{
	struct stratum *t = at(s, id);
	uint64_t whole;

	if (part < 0)
		part = 0;
	if (part > 1e18)
		part = 1e18;
	if (!t)
		return (uint64_t)(part + 0.5);
	part += t->carry;
	whole = part > 0 ? (uint64_t)(part + 0.5) : 0;
	t->carry = part - (double)whole;
	return whole;
}

struct strata_totals strata__totals(const struct strata *s)
{
	struct strata_totals sum = { s->others, s->others };
	size_t i;

	for (i = 0; i < s->nr; i++) {
		const struct stratum *t = &s->stratum[i];
		double all = t->launches ? (double)t->launches : t->weights < 1e18 ? t->weights : 0;

		if (t->waits)	/* as sure as what the others weigh */
			all *= t->weights > 0 ? (t->weights - t->wait_weights) / t->weights : 0;
		sum.records += t->records - t->waits;
		sum.launches += (uint64_t)(all + 0.5);
	}
	return sum;
}
