// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/widths.h"

#include <errno.h>
#include <stdlib.h>

#include "loader/base/table.h"
#include "loader/estimate.h"

#define MOST_NS 9007199254740992.0	/* 2^53: 104 days */

struct widths {
	const struct tally *tally;
	struct strata *strata;
	struct profile *profile;
	uint64_t period_ns;
	struct table *means;		/* hash of process and work -> index in mean */
	struct estimate_times *mean;
	struct estimate_times *shares;	/* of runs, by entry of the tally */
	double variance;		/* of all GPU time */
};

static uint64_t mean_key(const struct tally_key *key)
{
	uint64_t form = (uint64_t)key->kind << 32 | (key->flags & TALLY_GRAPH);

	return hash__mix((uint64_t)key->process << 32 | key->work) ^ form;
}

static const struct estimate_times *share_of(const struct widths *w, const struct tally_value *v)
{
	return &w->shares[v - tally__at(w->tally, 0)];
}

/* All that is known of the entry's launches, by themselves and in runs. */
static struct estimate_times times_of(const struct widths *w, const struct tally_value *v)
{
	struct estimate_times times = { v->timed, v->ns, v->chanced, v->others, v->others_ns, v->seen_timed };

	estimate__merge(&times, share_of(w, v));
	return times;
}

static int find_means(struct widths *w)
{
	size_t i, nr = tally__count(w->tally);
	uint64_t at;

	for (i = 0; i < nr; i++) {
		const struct tally_value *v = tally__at(w->tally, i);
		const struct estimate_times times = times_of(w, v);

		/* What has no name isn't known to be alike; nor is a graph of which nothing is known. */
		if (!times.timed || !v->key.work)
			continue;
		if (!table__get(w->means, mean_key(&v->key), &at)) {
			at = table__count(w->means);
			if (table__set(w->means, mean_key(&v->key), at))
				return -ENOMEM;
		}
		estimate__merge(&w->mean[at], &times);
	}
	return 0;
}

int widths__new(const struct tally *tally, struct strata *strata, const struct runs *runs,
		struct profile *profile, uint64_t period_ns, struct widths **widths)
{
	struct widths *w = calloc(1, sizeof(*w));

	*widths = w;
	if (!w)
		return -ENOMEM;
	w->tally = tally;
	w->strata = strata;
	w->profile = profile;
	w->period_ns = period_ns;
	w->means = table__new();
	w->mean = calloc(tally__count(tally) + 1, sizeof(*w->mean));
	w->shares = calloc(tally__count(tally) + 1, sizeof(*w->shares));
	if (!w->means || !w->mean || !w->shares || (runs && runs__split(runs, tally, mean_key, w->shares)) ||
	    find_means(w))
		return -ENOMEM;
	if (strata)
		strata__start_rounding(strata);
	return 0;
}

void widths__free(struct widths *w)
{
	if (!w)
		return;
	table__free(w->means);
	free(w->mean);
	free(w->shares);
	free(w);
}

/* Times and weights are the target's: made up ones must not overflow. */
static uint64_t whole(double value)
{
	return value > 0 ? value < MOST_NS ? (uint64_t)(value + 0.5) : (uint64_t)MOST_NS : 0;
}

static const struct estimate_times *mean_of(const struct widths *w, const struct tally_value *v)
{
	uint64_t at;

	return table__get(w->means, mean_key(&v->key), &at) ? &w->mean[at] : NULL;
}

bool widths__mean(const struct widths *w, uint32_t process, uint32_t work, double *ns)
{
	const struct tally_key key = { .kind = TALLY_LAUNCH, .process = process, .work = work };
	const struct estimate_times none = { 0 };
	uint64_t at;

	return work && table__get(w->means, mean_key(&key), &at) &&
	       estimate__mean(&none, &w->mean[at], false, ns);
}

static int add_unknown(struct widths *w, const struct tally_value *v)
{
	if (v->key.kind == TALLY_COPY)
		return profile__count(w->profile, PROFILE_INFO_GPU,
				      "copies without a time, none of the kind was timed", v->untimed);
	return profile__count(w->profile, PROFILE_UNTIMED, "no launch of the kernel was timed", v->untimed);
}

/* Device time of the launches that have none; 0 if nothing is known. */
static double untimed_ns(struct widths *w, const struct tally_value *v)
{
	const struct estimate_times path = times_of(w, v), *kernel = mean_of(w, v);
	uint64_t nr[] = { v->left_out, v->untimed - v->left_out };
	double ns = 0, mean;
	int i;

	for (i = 0; i < 2; i++) {
		if (!nr[i])
			continue;
		if (!estimate__mean(&path, kernel, i == 0, &mean))
			return 0;
		ns += mean * (double)nr[i];
	}
	return ns;
}

/* Where an entry's values go. */
struct place {
	uint32_t node, labels;
	const struct share *shares;	/* of its time; or NULL */
	size_t nr_shares;
};

/* The launches are the graph's, their time is what it runs. */
static int add_shared(struct widths *w, const struct place *at, unsigned int flags, uint64_t ns,
		      uint64_t count)
{
	uint64_t *part = calloc(at->nr_shares, sizeof(*part));
	int err;

	if (!part)
		return -ENOMEM;
	shares__split(at->shares, at->nr_shares, ns, part);
	err = profile__add(w->profile, at->node, at->labels, PROFILE_GPU_NS, flags, 0, count);
	for (size_t i = 0; i < at->nr_shares && !err; i++)
		if (part[i])
			err = profile__add(w->profile, at->shares[i].node, at->labels, PROFILE_GPU_NS,
					   flags | PROFILE_SHARED, part[i], 0);
	free(part);
	return err;
}

static int add_value(struct widths *w, const struct place *at, enum profile_metric metric, unsigned int flags,
		     uint64_t value, uint64_t count)
{
	if (metric == PROFILE_GPU_NS && at->shares)
		return add_shared(w, at, flags, value, count);
	return profile__add(w->profile, at->node, at->labels, metric, flags, value, count);
}

/* A part of it that was measured, one that was estimated, and how sure the second is. */
static int add_parts(struct widths *w, const struct place *at, enum profile_metric metric, unsigned int flags,
		     const uint64_t measured[2], const uint64_t all[2], double variance)
{
	uint64_t rest[2] = { all[0] > measured[0] ? all[0] - measured[0] : 0,
			     all[1] > measured[1] ? all[1] - measured[1] : 0 };
	int err = 0;

	if (all[1] > rest[1] || all[0] > rest[0])
		err = add_value(w, at, metric, flags, all[0] - rest[0], all[1] - rest[1]);
	if (err || (!rest[0] && !rest[1]))
		return err;
	flags |= PROFILE_ESTIMATED;
	err = add_value(w, at, metric, flags, rest[0], rest[1]);
	if (!err && variance > 0)
		err = profile__add_variance(w->profile, at->node, at->labels, metric, flags, variance);
	return err;
}

/* Launches and copies: `all` are they, those of a stratum exact in sum. */
static int add_count(struct widths *w, const struct tally_value *v, const struct place *at, double scale,
		     uint64_t all)
{
	uint32_t id = v->key.stratum;
	bool copy = v->key.kind == TALLY_COPY;
	double each = copy && v->count ? (double)v->bytes / (double)v->count : 1;
	uint64_t values[2] = { id && copy ? whole((double)all * each) : copy ? v->bytes : all, all };
	uint64_t seen[2] = { values[0], values[1] };

	if (id) {
		seen[1] = v->records < all ? v->records : all;
		seen[0] = copy ? whole((double)seen[1] * each) : seen[1];
	}
	return add_parts(w, at, copy ? PROFILE_BYTES : PROFILE_LAUNCHES, 0, seen, values,
			 v->count_variance * scale * scale * each * each);
}

static double variance_of(double squares, double sum, double weights)
{
	double mean = sum / weights, variance = squares / weights - mean * mean;

	return variance > 0 ? variance : 0;
}

/*
 * Of the times that a mean stands for: each launch that has one stands for its part of those that have none.
 * The more uneven these parts are, the less is known of the sum.
 */
static double means_variance(const struct tally_value *v)
{
	double u = (double)v->untimed, timed = (double)v->timed, others = (double)v->others, parts;

	if (v->seen_timed < 2)
		return 0;
	if (v->left_out && others > 0) {
		parts = 2 * u * v->weights2_others / others +
			u * u * v->weights2_others2 / (others * others) - u;
		return parts > 0 ? parts * variance_of(v->others_squares, (double)v->others_ns, others) : 0;
	}
	parts = v->weights2 * (2 + u / timed) * u / timed - u;
	return parts > 0 ? parts * variance_of(v->squares, (double)v->ns, timed) : 0;
}

/* `count` launches stand in the result: those that have a time are not more. */
static int add_time(struct widths *w, const struct tally_value *v, const struct place *at, unsigned int flags,
		    double scale, uint64_t count)
{
	double ns = v->untimed ? untimed_ns(w, v) : 0, variance = means_variance(v);
	const struct estimate_times *share = share_of(w, v);
	uint64_t untimed = ns > 0 ? v->untimed : 0;
	uint64_t seen[2] = { v->seen_ns, v->seen_timed };
	uint64_t all[2] = { whole((double)v->ns + ns), v->timed + untimed };
	int err = 0;

	if (v->untimed && !untimed)
		err = add_unknown(w, v);
	if (v->key.stratum) {
		all[0] = whole(((double)v->ns + ns) * scale);
		all[1] = v->count ? whole((double)count * (double)all[1] / (double)v->count) : 0;
		variance = (variance + v->ns_variance) * scale * scale;
	}
	w->variance += variance;
	if (!err && share->timed)
		err = add_value(w, at, PROFILE_GPU_NS, flags | PROFILE_ESTIMATED, share->ns, share->timed);
	if (err || (!all[0] && !all[1]))
		return err;
	return add_parts(w, at, PROFILE_GPU_NS, flags, seen, all, variance);
}

/* Of copies' waits the number of the stratum says nothing: not all of its copies wait. */
static int add_wait(struct widths *w, const struct tally_value *v, const struct place *at, double scale)
{
	const uint64_t seen[2] = { v->seen_ns, v->seen_timed };
	const uint64_t all[2] = { v->key.stratum ? whole((double)v->ns * scale) : v->ns,
				  v->key.stratum ? whole((double)v->timed * scale) : v->timed };

	return add_parts(w, at, PROFILE_WAIT_NS, 0, seen, all, v->ns_variance * scale * scale);
}

static int add_entry(struct widths *w, const struct tally_value *v, const struct place *at)
{
	unsigned int flags = v->key.flags & TALLY_UNCALIBRATED ? PROFILE_UNCALIBRATED : 0;
	uint32_t id = v->key.stratum;
	double scale = id ? strata__scale(w->strata, id) : 1;
	uint64_t all;
	int err;

	if (v->key.kind == TALLY_SAMPLE)
		return profile__add(w->profile, at->node, at->labels, PROFILE_CPU_NS, 0,
				    v->count * w->period_ns, v->count);
	if (v->key.kind == TALLY_WAIT)
		return add_wait(w, v, at, scale);
	all = id ? strata__round(w->strata, id, (double)v->count * scale) : v->count;
	err = add_count(w, v, at, scale, all);
	if (v->key.kind == TALLY_COPY)
		flags |= PROFILE_OF_COPIES;
	return err ? err : add_time(w, v, at, flags, scale, all);
}

int widths__add(struct widths *w, const struct tally_value *v, uint32_t node, uint32_t labels)
{
	const struct place at = { .node = node, .labels = labels };

	return add_entry(w, v, &at);
}

int widths__add_graph(struct widths *w, const struct tally_value *v, uint32_t node, uint32_t labels,
		      const struct share *shares, size_t nr)
{
	const struct place at = { .node = node, .labels = labels, .shares = shares, .nr_shares = nr };

	return add_entry(w, v, &at);
}

void widths__finish(struct widths *w)
{
	struct profile_run *run = profile__run(w->profile);
	struct strata_totals totals;
	double scale;
	uint32_t i;

	if (!w->strata)
		return;
	totals = strata__totals(w->strata);
	if (totals.launches == totals.records)
		return;
	for (i = 1; i < tally__nr_strata(w->tally); i++) {
		scale = strata__scale(w->strata, i);
		w->variance += tally__covariance(w->tally, i) * scale * scale;
	}
	run->looked_at = totals.records;
	run->made = totals.launches;
	run->gpu_variance = w->variance > 0 ? w->variance : 0;
}
