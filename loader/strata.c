// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/strata.h"

#include <stdlib.h>

#include "loader/base/array.h"

struct stratum {
	uint64_t launches;	/* 0: not known */
	double weights;		/* what the records stand for */
	uint64_t counted;	/* records that count, and what they stand for */
	double counted_weights;
	double carry;		/* of rounding */
};

struct strata {
	struct stratum *stratum;
	size_t nr, room;
	uint64_t others;	/* records of no stratum that count */
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

void strata__saw(struct strata *s, uint32_t id, uint32_t weight, bool counts)
{
	struct stratum *t = at(s, id);

	s->others += !id && counts;
	if (!t)
		return;
	t->weights += weight;
	t->counted += counts;
	t->counted_weights += counts ? weight : 0;
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
		double all = t->counted_weights * strata__scale(s, (uint32_t)i + 1) + 0.5;
		uint64_t launches = all < 1e18 ? (uint64_t)all : 0;

		sum.records += t->counted < launches ? t->counted : launches;
		sum.launches += launches;
	}
	return sum;
}
