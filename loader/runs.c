// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/runs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/array.h"
#include "loader/base/index.h"
#include "loader/base/table.h"

/* Compositions that are kept, and their parts: what comes after is split evenly at once. */
#define MAX_KINDS (1u << 17)
#define MAX_MEMBERS (1u << 20)

/* One whose launches are not all known yet. */
struct open_run {
	uint32_t launches, nr;	/* launches 0: free */
	uint32_t weight;
	uint32_t next_free;	/* number of another one; 0: none */
	uint64_t ns;
	uint32_t *entry;
};

/* Launches of one entry in a run. */
struct member {
	uint32_t entry;		/* of the tally */
	uint32_t launches;
};

struct kind {
	size_t first;		/* in `member`: in the order of the entries */
	uint32_t nr;
	struct estimate_times times;	/* of the runs, as if each were a launch */
};

struct runs {
	struct open_run *open;	/* by number - 1 */
	size_t nr_open, open_size;
	uint32_t free;
	struct kind *kind;
	size_t nr_kinds, kinds_size;
	struct member *member;
	size_t nr_members, members_size;
	struct index by_members;
	struct estimate_times *evenly;	/* by entry: what was split at once */
	size_t nr_evenly, evenly_size;
	uint64_t seed;
};

struct runs *runs__new(void)
{
	struct runs *r = calloc(1, sizeof(*r));

	if (r)
		r->seed = hash__seed();
	return r;
}

void runs__free(struct runs *r)
{
	size_t i;

	if (!r)
		return;
	for (i = 0; i < r->nr_open; i++)
		free(r->open[i].entry);
	free(r->open);
	free(r->kind);
	free(r->member);
	free(r->evenly);
	index__free(&r->by_members);
	free(r);
}

uint32_t runs__begin(struct runs *r, uint32_t launches, uint64_t ns, uint32_t weight)
{
	uint32_t number = r->free, *entry = malloc(launches * sizeof(*entry));
	struct open_run *o;

	if (!entry)
		return 0;
	if (!number) {
		if (array__reserve((void **)&r->open, &r->open_size, r->nr_open, sizeof(*r->open))) {
			free(entry);
			return 0;
		}
		number = (uint32_t)++r->nr_open;
		r->open[number - 1].next_free = 0;
	}
	o = &r->open[number - 1];
	r->free = o->next_free;
	*o = (struct open_run){ .launches = launches, .weight = weight, .ns = ns, .entry = entry };
	return number;
}

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static struct estimate_times times_of(const struct open_run *o)
{
	uint64_t others = o->weight - 1;

	return (struct estimate_times){ 1, o->ns, others != 0, others, times(others, o->ns), 1 };
}

/* From the launches before some to those with them, the part of a sum that these have. Parts add up to it. */
static uint64_t part(uint64_t sum, double from, double to, double all)
{
	double a = (double)sum * (from / all), b = (double)sum * (to / all);
	uint64_t low = a < (double)sum ? (uint64_t)a : sum, high = b < (double)sum ? (uint64_t)b : sum;

	return high > low ? high - low : 0;
}

/* How runs are shared out, member by member. */
struct share {
	const struct estimate_times *times;	/* of the runs, as if each were a launch */
	double before, all;			/* the means of the launches so far, and of all */
};

/* What so many launches get, of that mean each. */
static void share__next(struct share *s, uint32_t launches, double mean, bool last, struct estimate_times *to)
{
	double with = last ? s->all : s->before + mean * launches;
	const struct estimate_times *t = s->times;
	const struct estimate_times own = {
		times(t->timed, launches), part(t->ns, s->before, with, s->all), times(t->chanced, launches),
		times(t->others, launches), part(t->others_ns, s->before, with, s->all),
		times(t->seen, launches),
	};

	s->before = with;
	if (to)
		estimate__merge(to, &own);
}

static int split_evenly(struct runs *r, const struct member *member, uint32_t nr, uint32_t launches,
			const struct estimate_times *times)
{
	struct share share = { .times = times, .all = launches };
	uint32_t i, e;

	for (i = 0; i < nr; i++) {
		e = member[i].entry;
		if (e != RUNS_NO_ENTRY &&
		    array__reserve((void **)&r->evenly, &r->evenly_size, e, sizeof(*r->evenly)))
			return -ENOMEM;
		while (e != RUNS_NO_ENTRY && r->nr_evenly <= e)
			r->evenly[r->nr_evenly++] = (struct estimate_times){ 0 };
		share__next(&share, member[i].launches, 1, i + 1 == nr,
			    e != RUNS_NO_ENTRY ? &r->evenly[e] : NULL);
	}
	return 0;
}

static int compare_entries(const void *left, const void *right)
{
	const uint32_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* Its launches by entry: `member` has room for all. How many members there are. */
static uint32_t count_members(const struct open_run *o, struct member *member)
{
	uint32_t nr = 0, i;

	qsort(o->entry, o->nr, sizeof(*o->entry), compare_entries);
	for (i = 0; i < o->nr; i++) {
		if (!nr || member[nr - 1].entry != o->entry[i])
			member[nr++] = (struct member){ .entry = o->entry[i] };
		member[nr - 1].launches++;
	}
	return nr;
}

/* The kind of runs of those members, made if there is none; NULL: no room. */
static struct kind *find_kind(struct runs *r, const struct member *member, uint32_t nr)
{
	size_t size = nr * sizeof(*member), pos = 0;
	uint32_t hash = (uint32_t)hash__bytes(member, size, r->seed), id;
	struct kind *k;

	while (index__next(&r->by_members, hash, &pos, &id)) {
		k = &r->kind[id];
		if (k->nr == nr && !memcmp(&r->member[k->first], member, size))
			return k;
	}
	if (r->nr_kinds == MAX_KINDS || r->nr_members + nr > MAX_MEMBERS || index__reserve(&r->by_members) ||
	    array__reserve((void **)&r->kind, &r->kinds_size, r->nr_kinds, sizeof(*r->kind)) ||
	    array__reserve((void **)&r->member, &r->members_size, r->nr_members + nr, sizeof(*r->member)))
		return NULL;
	index__add(&r->by_members, hash, (uint32_t)r->nr_kinds);
	k = &r->kind[r->nr_kinds++];
	*k = (struct kind){ .first = r->nr_members, .nr = nr };
	memcpy(&r->member[k->first], member, size);
	r->nr_members += nr;
	return k;
}

static int runs__close(struct runs *r, const struct open_run *o)
{
	struct member *member = malloc(o->nr * sizeof(*member));
	const struct estimate_times times = times_of(o);
	struct kind *k;
	uint32_t nr;
	int err = 0;

	if (!member)
		return -ENOMEM;
	nr = count_members(o, member);
	k = find_kind(r, member, nr);
	if (k)
		estimate__merge(&k->times, &times);
	else
		err = split_evenly(r, member, nr, o->nr, &times);
	free(member);
	return err;
}

int runs__add(struct runs *r, uint32_t run, uint32_t entry, uint32_t *whole)
{
	struct open_run *o = &r->open[run - 1];
	int err;

	*whole = 0;
	if (!o->launches)
		return 0;
	o->entry[o->nr++] = entry;
	if (o->nr < o->launches)
		return 0;
	*whole = o->nr;
	err = runs__close(r, o);
	free(o->entry);
	*o = (struct open_run){ .next_free = r->free };
	r->free = run;
	return err;
}

/* --- the split -------------------------------------------------------------------------------- */

struct split {
	const struct runs *r;
	const struct tally *t;
	struct estimate_member *member;	/* as those of the runs */
	struct estimate_kernel *kernels;
	size_t nr, size;
};

/* What has no name isn't known to be alike; nor are graphs. */
static uint64_t number_of(const struct split *s, uint32_t entry,
			  uint64_t (*kernel)(const struct tally_key *key))
{
	const struct tally_key *key;

	if (entry == RUNS_NO_ENTRY)
		return entry;
	key = &tally__at(s->t, entry)->key;
	return key->work ? kernel(key) : hash__mix(entry);
}

static int find_kernels(struct split *s, uint64_t (*kernel)(const struct tally_key *key))
{
	struct table *known = table__new();
	int err = known ? 0 : -ENOMEM;
	uint64_t number, at;
	size_t i;

	for (i = 0; i < s->r->nr_members && !err; i++) {
		number = number_of(s, s->r->member[i].entry, kernel);
		if (!table__get(known, number, &at)) {
			at = s->nr;
			err = array__reserve((void **)&s->kernels, &s->size, s->nr, sizeof(*s->kernels));
			if (err)
				break;
			s->kernels[s->nr++] = (struct estimate_kernel){ 0 };
			err = table__set(known, number, at);
		}
		s->member[i] = (struct estimate_member){ (uint32_t)at, s->r->member[i].launches };
	}
	for (i = 0; i < tally__count(s->t) && !err; i++) {
		const struct tally_value *v = tally__at(s->t, i);

		if (!v->timed || v->key.kind == TALLY_SAMPLE ||
		    !table__get(known, number_of(s, (uint32_t)i, kernel), &at))
			continue;
		s->kernels[at].timed += (double)v->timed + (double)v->others;
		s->kernels[at].ns += (double)v->ns + (double)v->others_ns;
	}
	table__free(known);
	return err;
}

static void share_out(const struct split *s, const struct kind *k, struct estimate_times *shares)
{
	const struct estimate_member *m = s->member + k->first;
	struct share share = { .times = &k->times };
	double launches = 0;
	uint32_t i, e;
	bool known;

	for (i = 0; i < k->nr; i++) {
		share.all += s->kernels[m[i].kernel].mean * m[i].launches;
		launches += m[i].launches;
	}
	known = share.all > 0;
	if (!known)
		share.all = launches;
	for (i = 0; i < k->nr; i++) {
		e = s->r->member[k->first + i].entry;
		share__next(&share, m[i].launches, known ? s->kernels[m[i].kernel].mean : 1, i + 1 == k->nr,
			    e != RUNS_NO_ENTRY ? &shares[e] : NULL);
	}
}

int runs__split(const struct runs *r, const struct tally *t, uint64_t (*kernel)(const struct tally_key *key),
		struct estimate_times *shares)
{
	struct split s = { .r = r, .t = t };
	struct estimate_run *run = calloc(r->nr_kinds + 1, sizeof(*run));
	int err = -ENOMEM;
	size_t i;

	s.member = calloc(r->nr_members + 1, sizeof(*s.member));
	if (run && s.member)
		err = find_kernels(&s, kernel);
	if (err)
		goto out;
	for (i = 0; i < r->nr_kinds; i++)
		run[i] = (struct estimate_run){
			.member = s.member + r->kind[i].first, .nr = r->kind[i].nr,
			.runs = r->kind[i].times.timed, .ns = (double)r->kind[i].times.ns,
		};
	estimate__fit(run, r->nr_kinds, s.kernels, s.nr);
	for (i = 0; i < r->nr_kinds; i++)
		share_out(&s, &r->kind[i], shares);
	for (i = 0; i < r->nr_evenly; i++)
		estimate__merge(&shares[i], &r->evenly[i]);
out:
	free(run);
	free(s.member);
	free(s.kernels);
	return err;
}
