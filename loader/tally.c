// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/array.h"
#include "loader/base/index.h"
#include "loader/base/table.h"

#define MAX_HALVES 65536	/* that wait at a time */
#define WAITS 0x80000000u	/* beside a block's number */

/* A record that the other one of its block is still to follow: results come stream by stream. */
struct half {
	uint32_t of;		/* number of its entry */
	uint32_t next_free;	/* index + 1 */
	double weight, ns;
};

struct tally {
	struct tally_value *value;
	struct table *waiting;	/* stratum << 32 | WAITS | block -> index in half */
	struct half *half;
	size_t nr_halves, room_halves;
	uint32_t free_half;	/* index + 1; 0: none */
	double *covariance;	/* by stratum */
	size_t nr_strata, room_strata;
	size_t nr, room;
	struct index by_key;
	uint64_t seed;
};

struct tally *tally__new(void)
{
	struct tally *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->seed = hash__seed();
	t->waiting = table__new();
	if (t->waiting)
		return t;
	free(t);
	return NULL;
}

void tally__free(struct tally *t)
{
	if (!t)
		return;
	index__free(&t->by_key);
	free(t->value);
	free(t->half);
	free(t->covariance);
	table__free(t->waiting);
	free(t);
}

/* The entry of `key`, made if there is none; NULL: out of memory. */
static struct tally_value *tally__entry(struct tally *t, const struct tally_key *key)
{
	uint32_t hash = (uint32_t)hash__bytes(key, sizeof(*key), t->seed), id;
	struct tally_value *v;
	size_t pos = 0;

	while (index__next(&t->by_key, hash, &pos, &id))
		if (!memcmp(&t->value[id].key, key, sizeof(*key)))
			return &t->value[id];
	if (index__reserve(&t->by_key) ||
	    array__reserve((void **)&t->value, &t->room, t->nr, sizeof(*t->value)))
		return NULL;
	index__add(&t->by_key, hash, (uint32_t)t->nr);
	v = &t->value[t->nr++];
	memset(v, 0, sizeof(*v));
	v->key = *key;
	return v;
}

/* Made up values must not overflow. */
static void sum(uint64_t *to, uint64_t value, uint64_t weight)
{
	uint64_t product;

	if (__builtin_mul_overflow(value, weight, &product) || __builtin_add_overflow(*to, product, to))
		*to = UINT64_MAX;
}

/* Cochran, Sampling Techniques, 2.5 and 5.6: two of 2 w, chosen without replacement, stand for all. */
static void add_alone(struct tally *t, const struct half *h)
{
	double factor = h->weight * (h->weight - 1);

	t->value[h->of].count_variance += factor;
	t->value[h->of].ns_variance += factor * h->ns * h->ns;
}

static void add_pair(struct tally *t, const struct half *a, const struct half *b)
{
	if (a->of == b->of) {
		t->value[a->of].ns_variance +=
			a->weight * (a->weight - 1) * (a->ns - b->ns) * (a->ns - b->ns);
		return;
	}
	add_alone(t, a);
	add_alone(t, b);
	/* The sum of the stratum has the variance of a pair of one entry; waits are in no sum of launches. */
	if (t->value[a->of].key.kind != TALLY_WAIT)
		t->covariance[t->value[a->of].key.stratum] -= 2 * a->weight * (a->weight - 1) * a->ns * b->ns;
}

static int tally__reserve_stratum(struct tally *t, uint32_t stratum)
{
	int err;

	for (; t->nr_strata <= stratum; t->nr_strata++) {
		err = array__reserve((void **)&t->covariance, &t->room_strata, t->nr_strata,
				     sizeof(*t->covariance));
		if (err)
			return err;
		t->covariance[t->nr_strata] = 0;
	}
	return 0;
}

static void tally__forget(struct tally *t, uint64_t key, uint32_t i)
{
	table__remove(t->waiting, key);
	t->half[i].next_free = t->free_half;
	t->free_half = i + 1;
}

void tally__settle(struct tally *t)
{
	struct table *none = table__new();
	uint64_t key, i;
	size_t pos = 0;

	if (!none)
		return;		/* variances of a few records come out too small */
	while (table__next(t->waiting, &pos, &key, &i))
		add_alone(t, &t->half[i]);
	table__free(t->waiting);
	t->waiting = none;
	t->nr_halves = t->free_half = 0;
}

static int tally__wait(struct tally *t, uint64_t key, const struct half *h)
{
	uint32_t i;

	if (table__count(t->waiting) >= MAX_HALVES)
		tally__settle(t);
	if (t->free_half) {
		i = t->free_half - 1;
		t->free_half = t->half[i].next_free;
	} else if (array__reserve((void **)&t->half, &t->room_halves, t->nr_halves, sizeof(*t->half))) {
		return -ENOMEM;
	} else {
		i = (uint32_t)t->nr_halves++;
	}
	t->half[i] = *h;
	return table__set(t->waiting, key, i);
}

static int tally__pair(struct tally *t, const struct tally_value *v, const struct tally_add *add,
		       double weight)
{
	/* A copy and the wait for it are of one block, each with a pair of its own. */
	uint64_t kind = v->key.kind == TALLY_WAIT ? WAITS : 0, i;
	uint64_t key = (uint64_t)v->key.stratum << 32 | kind | add->block;
	/* One that has no time is taken for what its entry's others are. */
	const struct half new = {
		.of = (uint32_t)(v - t->value), .weight = weight,
		.ns = add->timed ? (double)add->ns : v->timed ? (double)v->ns / (double)v->timed : 0,
	};

	if (weight <= 1)
		return 0;
	if (tally__reserve_stratum(t, v->key.stratum))
		return -ENOMEM;
	if (!table__get(t->waiting, key, &i))
		return tally__wait(t, key, &new);
	add_pair(t, &t->half[i], &new);
	tally__forget(t, key, (uint32_t)i);
	return 0;
}

static void add_time(struct tally_value *v, const struct tally_add *add, double weight)
{
	double others = (double)add->others;

	v->seen_timed++;
	sum(&v->seen_ns, add->ns, 1);
	v->squares += weight * (double)add->ns * (double)add->ns;
	v->others_squares += weight * others * (double)add->ns * (double)add->ns;
	v->weights2 += weight * weight;
	v->weights2_others += weight * weight * others;
	v->weights2_others2 += weight * weight * others * others;
}

int tally__add(struct tally *t, const struct tally_key *key, const struct tally_add *add)
{
	struct tally_value *v = tally__entry(t, key);
	uint64_t weight = add->weight ? add->weight : 1;

	if (!v)
		return -ENOMEM;
	v->records++;
	sum(&v->count, add->count, weight);
	sum(&v->bytes, add->bytes, weight);
	sum(&v->timed, add->timed, weight);
	sum(&v->ns, add->ns, weight);
	if (add->timed)
		add_time(v, add, (double)weight);
	sum(&v->untimed, add->untimed, weight);
	sum(&v->left_out, add->left_out, weight);
	v->chanced += add->others != 0;
	sum(&v->others, add->others, weight);
	sum(&v->others_ns, add->ns, add->others * weight);
	return key->stratum ? tally__pair(t, v, add, (double)weight) : 0;
}

size_t tally__nr_strata(const struct tally *t)
{
	return t->nr_strata;
}

double tally__covariance(const struct tally *t, uint32_t stratum)
{
	return stratum < t->nr_strata ? t->covariance[stratum] : 0;
}

int tally__index(struct tally *t, const struct tally_key *key, uint32_t *i)
{
	const struct tally_value *v = tally__entry(t, key);

	if (!v)
		return -ENOMEM;
	*i = (uint32_t)(v - t->value);
	return 0;
}

size_t tally__count(const struct tally *t)
{
	return t->nr;
}

const struct tally_value *tally__at(const struct tally *t, size_t i)
{
	return &t->value[i];
}
