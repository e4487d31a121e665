// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* timeout: 600 */
/*
 * What is made of launches of which only some are looked at, in simulated time, from the library's choice to
 * the model: right on average, and as far from right as is said. A thousand programs of each kind, with fixed
 * seeds; the checks must find a bias of 2 %.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_timing/library/sampler.c"
#include "loader/widths.h"
#include "tests/unit/unit.h"

#define KERNELS 3
#define PATHS 3
#define LEAVES (KERNELS * PATHS)
#define STRATA (KERNELS * 2)	/* the first two paths have the same stack pointer */
#define RUNS 1000
#define COST_NS 7000		/* of one that is looked at */

static uint64_t random_state;

static uint64_t random_word(void)
{
	uint64_t x = random_state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	random_state = x;
	return x * 0x2545f4914f6cdd1dull;
}

static double uniform(void)
{
	return (double)(random_word() >> 11) / 9007199254740992.0;
}

/* --- a program ------------------------------------------------------------------------------ */

struct kind {
	struct sampling how;
	uint32_t launches;
	bool loop;		/* always the same sequence of launches, else at random */
	bool bursts;		/* stretches of one path, in which all takes thrice as long */
	bool rates;		/* stretches that launch a thousand times as often as others */
	bool dry;		/* stretches in which most of those that are looked at have no time */
};

struct program {
	const struct kind *kind;
	uint64_t now;
	uint32_t i, stretch;	/* launches; those left of the stretch */
	uint32_t path, rate;	/* of the stretch */
	bool burst, dry;
};

struct event {
	uint32_t kernel, path, stratum;
	uint64_t ns;
};

static const uint32_t loop[7] = { 0, 4, 8, 1, 0, 5, 7 };

static struct event program__next(struct program *p)
{
	uint32_t leaf = p->kind->loop ? loop[p->i % 7] : (uint32_t)(uniform() * LEAVES);
	struct event e = { leaf / PATHS, leaf % PATHS, 0, 0 };
	double ns;

	if (!p->stretch--) {
		p->stretch = 200 + (uint32_t)(uniform() * 3000);
		p->path = (uint32_t)(uniform() * PATHS);
		p->burst = p->kind->bursts && uniform() < 0.4;
		p->dry = p->kind->dry && uniform() < 0.5;
		p->rate = p->kind->rates && uniform() < 0.5 ? 1000 : 1;
	}
	if (p->burst)
		e.path = p->path;
	ns = (1000 << 2 * e.kernel) * (1 + e.path) * (0.6 + 0.8 * uniform()) * (p->burst ? 3 : 1);
	e.ns = (uint64_t)ns;
	e.stratum = e.kernel * 2 + (e.path == 2);
	p->now += (uint64_t)(5000 * (0.5 + uniform())) * (p->kind->rates ? p->rate == 1 ? 400 : 1 : 1);
	p->i++;
	return e;
}

/* --- one run of it ---------------------------------------------------------------------------- */

struct run {
	double ns[LEAVES], launches[LEAVES];		/* as it was */
	double said_ns[LEAVES], said_launches[LEAVES], variance[LEAVES];
	double sum_variance;	/* of all GPU time */
	uint64_t records;
	uint64_t end;
	double spent_most;	/* more than the budget had allowed by then, ns */
};

static void look_at(struct tally *tally, struct strata *strata, const struct program *p,
		    const struct event *e, uint32_t weight, uint32_t block)
{
	const struct tally_key key = {
		.kind = TALLY_LAUNCH, .user = 1 + e->path, .work = 1 + e->kernel, .stratum = 1 + e->stratum,
	};
	struct tally_add add = { .weight = weight, .block = block, .count = 1, .timed = 1, .ns = e->ns };

	if (p->dry && uniform() > 0.25)
		add = (struct tally_add){
			.weight = weight, .block = block, .count = 1, .untimed = 1, .left_out = 1,
		};
	else if (p->dry)
		add.others = 3;
	strata__saw(strata, key.stratum, weight, true);
	ck_assert_int_eq(tally__add(tally, &key, &add), 0);
}

static void take(const struct kind *kind, struct run *run, struct tally *tally, struct strata *strata)
{
	struct program p = { .kind = kind, .now = 1000000000 };
	struct stratum stratum[STRATA] = { 0 };
	struct pace pace = { 0 };
	uint64_t began = p.now, spent = 0, i;

	for (i = 0; i < kind->launches; i++) {
		struct event e = program__next(&p);
		struct stratum *s = &stratum[e.stratum];
		uint32_t weight;
		double over;

		run->ns[e.kernel * PATHS + e.path] += (double)e.ns;
		run->launches[e.kernel * PATHS + e.path]++;
		if (!s->left)
			stratum__begin(s, pace__weight(&pace, s, kind->how, false, p.now), random_word(),
				       p.now);
		weight = stratum__launch(s);
		if (!weight)
			continue;
		look_at(tally, strata, &p, &e, weight, s->blocks);
		pace__spend(&pace, COST_NS);
		run->records++;
		spent += COST_NS;
		over = (double)spent - (double)(p.now - began) * kind->how.budget_ppm / 1e6;
		if (over > run->spent_most)
			run->spent_most = over;
	}
	run->end = p.now - began;
	for (i = 0; i < STRATA; i++)
		strata__set_launches(strata, 1 + (uint32_t)i, stratum[i].launches);
}

static uint32_t leaf_node(struct profile *p, const struct tally_key *key)
{
	const struct profile_frame path = { .kind = PROFILE_NATIVE, .name = "path", .line = key->user };
	const struct profile_frame kernel = { .kind = PROFILE_GPU, .name = "kernel", .line = key->work };
	uint32_t frame, node;

	ck_assert_int_eq(profile__frame(p, &path, &frame), 0);
	ck_assert_int_eq(profile__node(p, PROFILE_ROOT, frame, &node), 0);
	ck_assert_int_eq(profile__frame(p, &kernel, &frame), 0);
	ck_assert_int_eq(profile__node(p, node, frame, &node), 0);
	return node;
}

static uint32_t leaf_of(const struct profile *p, uint32_t node)
{
	const struct profile_frame *kernel = profile__frame_at(p, profile__node_frame(p, node));
	const struct profile_frame *path =
		profile__frame_at(p, profile__node_frame(p, profile__node_parent(p, node)));

	return (kernel->line - 1) * PATHS + path->line - 1;
}

/* Through the model, as a capture does. */
static void sum_up(struct run *run, struct tally *tally, struct strata *strata)
{
	struct profile *p = profile__new();
	const struct profile_labels none = { 0 };
	struct profile_value v;
	struct widths *w;
	uint32_t labels;
	size_t pos = 0;

	ck_assert_int_eq(profile__labels(p, &none, &labels), 0);
	ck_assert_int_eq(widths__new(tally, strata, NULL, p, 1, &w), 0);
	for (size_t i = 0; i < tally__count(tally); i++) {
		const struct tally_value *value = tally__at(tally, i);

		ck_assert_int_eq(widths__add(w, value, leaf_node(p, &value->key), labels), 0);
	}
	widths__finish(w);
	widths__free(w);
	run->sum_variance = profile__run(p)->gpu_variance;
	while (profile__next(p, &pos, &v)) {
		if (v.metric == PROFILE_GPU_NS) {
			run->said_ns[leaf_of(p, v.node)] += (double)v.value;
			run->variance[leaf_of(p, v.node)] += v.variance;
		} else if (v.metric == PROFILE_LAUNCHES) {
			run->said_launches[leaf_of(p, v.node)] += (double)v.value;
		}
	}
	profile__free(p);
}

static struct run run_once(const struct kind *kind, uint64_t seed)
{
	struct tally *tally = tally__new();
	struct strata *strata = strata__new();
	struct run run = { 0 };

	random_state = 0x9e3779b97f4a7c15ull * (seed + 1);
	for (int i = 0; i < STRATA; i++)
		ck_assert_uint_eq(strata__add(strata), 1 + i);
	take(kind, &run, tally, strata);
	tally__settle(tally);
	sum_up(&run, tally, strata);
	tally__free(tally);
	strata__free(strata);
	return run;
}

/* --- many runs ---------------------------------------------------------------------------------- */

struct judged {
	double error, error_of_error;	/* of relative errors of leaves, pooled: mean, its standard error */
	double covered;			/* intervals of 95 % that hold the truth */
	double sum_covered;		/* the same of the sum of all GPU time */
	double launches_wrong;		/* of all kernels: their numbers should be exact */
	double records;
	double over;			/* the budget: longest debt, s of the time that pays for it */
};

static struct judged judge(const struct kind *kind, double planted)
{
	double sum = 0, squares = 0, inside = 0, leaves = 0, sum_inside = 0;
	struct judged j = { 0 };

	for (uint64_t seed = 0; seed < RUNS; seed++) {
		struct run run = run_once(kind, seed);
		double of_run = 0, nr = 0, launches = 0, said = 0, sum_error = 0;

		for (int i = 0; i < LEAVES; i++) {
			double said_ns = run.said_ns[i] * planted, error = said_ns - run.ns[i];

			sum_error += error;
			launches += run.launches[i];
			said += run.said_launches[i];
			if (run.launches[i] < 500)
				continue;
			of_run += error / run.ns[i];
			nr++;
			inside += fabs(error) < 1.96 * sqrt(run.variance[i]);
		}
		sum_inside += fabs(sum_error) < 1.96 * sqrt(run.sum_variance);
		leaves += nr;
		sum += of_run / nr;
		squares += of_run / nr * of_run / nr;
		j.launches_wrong += fabs(said - launches);
		j.records += (double)run.records / RUNS;
		if (kind->how.budget_ppm && run.spent_most / kind->how.budget_ppm * 1e6 / 1e9 > j.over)
			j.over = run.spent_most / kind->how.budget_ppm * 1e6 / 1e9;
	}
	j.error = sum / RUNS;
	j.error_of_error = sqrt((squares / RUNS - j.error * j.error) / RUNS);
	j.covered = inside / leaves;
	j.sum_covered = sum_inside / RUNS;
	return j;
}

static const struct kind kinds[] = {
	{ .how = { .every = 20 }, .launches = 60000 },
	{ .how = { .every = 20 }, .launches = 60000, .loop = true },
	{ .how = { .every = 20 }, .launches = 60000, .bursts = true },
	{ .how = { .every = 20 }, .launches = 60000, .dry = true },
	{ .how = { .every = 7 }, .launches = 20000, .bursts = true, .dry = true },
	{ .how = { .budget_ppm = 20000 }, .launches = 120000 },
	{ .how = { .budget_ppm = 20000 }, .launches = 200000, .loop = true, .bursts = true },
	{ .how = { .budget_ppm = 20000 }, .launches = 200000, .rates = true },
	{ .how = { .budget_ppm = 20000 }, .launches = 120000, .dry = true },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

START_TEST(sums_are_right_on_average)
{
	const struct kind *kind = &kinds[_i];
	struct judged j = judge(kind, 1);

	printf("kind %d: %.0f records, error %.4f %% +- %.4f, covered %.2f %%, sums %.1f %%, debt %.2f s\n",
	       _i, j.records, 100 * j.error, 100 * j.error_of_error, 100 * j.covered, 100 * j.sum_covered,
	       j.over);
	ck_assert_double_lt(fabs(j.error), 3 * j.error_of_error);
	ck_assert_double_ge(j.covered, 0.94);
	ck_assert_double_le(j.covered, 0.96);
	/* Three standard errors of a thousand. */
	ck_assert_double_ge(j.sum_covered, 0.93);
	ck_assert_double_le(j.sum_covered, 0.97);
	ck_assert_double_eq(j.launches_wrong, 0);
	if (!kind->rates)
		ck_assert_double_lt(j.records, 0.2 * kind->launches);
	ck_assert_double_lt(j.over, 2);
}
END_TEST

START_TEST(a_bias_of_two_percent_would_be_found)
{
	struct judged j = judge(&kinds[_i], 1.02);

	ck_assert_double_gt(fabs(j.error), 3 * j.error_of_error);
}
END_TEST

/* A program that has another shape at almost each launch can't be looked at whole; nothing is forgotten. */
START_TEST(ever_new_shapes)
{
	enum { SHAPES = 16000 };
	const struct sampling how = { .budget_ppm = 10000 };
	static struct stratum shape[SHAPES];
	struct stratum rest = { 0 };
	struct pace pace = { 0 };
	struct strata *strata = strata__new();
	struct tally *tally = tally__new();
	struct profile *p = profile__new();
	const struct profile_labels none = { 0 };
	uint64_t now = 1000000000, records = 0, made = 0;
	uint32_t id[SHAPES + 1] = { 0 }, labels;
	double error;
	struct widths *w;

	memset(shape, 0, sizeof(shape));
	random_state = 88172645463325252ull;
	for (int i = 0; i < SHAPES * 3; i++, now += 30000, made++) {
		struct stratum *s = &shape[i / 3];
		uint32_t weight, number = (uint32_t)i / 3;
		struct tally_key key = { .kind = TALLY_LAUNCH, .work = 1 };
		struct tally_add add = { .count = 1, .timed = 1, .ns = 1000 + (uint64_t)i % 7 * 300 };

		/* As strata__choose does. */
		if (!s->left && !s->launches && pace__is_broke(&pace, how, now))
			s = &rest;
		if (s == &rest)
			number = SHAPES;
		if (!s->left)
			stratum__begin(s, pace__weight(&pace, s, how, s == &rest, now), random_word(), now);
		weight = stratum__launch(s);
		if (!weight)
			continue;
		pace__spend(&pace, COST_NS);
		records++;
		if (!id[number])
			id[number] = strata__add(strata);
		strata__saw(strata, id[number], weight, true);
		key.stratum = id[number];
		add.weight = weight;
		add.block = s->blocks;
		ck_assert_int_eq(tally__add(tally, &key, &add), 0);
	}
	for (int i = 0; i < SHAPES; i++)
		strata__set_launches(strata, id[i], shape[i].launches);
	strata__set_launches(strata, id[SHAPES], rest.launches);
	tally__settle(tally);
	ck_assert_int_eq(profile__labels(p, &none, &labels), 0);
	ck_assert_int_eq(widths__new(tally, strata, NULL, p, 1, &w), 0);
	for (size_t i = 0; i < tally__count(tally); i++) {
		const struct tally_value *v = tally__at(tally, i);

		ck_assert_int_eq(widths__add(w, v, leaf_node(p, &v->key), labels), 0);
	}
	widths__finish(w);
	widths__free(w);
	/* All are there: those of each shape that was begun, and the rest. */
	ck_assert_uint_eq(profile__total(p, PROFILE_LAUNCHES), made);
	error = sqrt(profile__run(p)->gpu_variance);
	ck_assert_double_eq_tol((double)profile__total(p, PROFILE_GPU_NS), 1900.0 * (double)made, 4 * error);
	ck_assert_double_lt(error, 0.05 * 1900.0 * (double)made);
	/* 1 % of the time, the second's worth that it may spend at first, and one that it may owe. */
	ck_assert_double_lt((double)records * COST_NS, 0.011 * 30000 * (double)made + 2.2 * 1e7);
	profile__free(p);
	tally__free(tally);
	strata__free(strata);
}
END_TEST

/* At 1 % a second's worth is 10 ms: so much is there at first, and may be owed. */
START_TEST(what_is_owed_is_paid_back)
{
	const struct sampling how = { .budget_ppm = 10000 };
	struct pace pace = { 0 };
	uint64_t now = 1000000000;

	ck_assert(!pace__is_broke(&pace, how, now));
	pace__owe(&pace, 25000000);
	ck_assert(pace__is_broke(&pace, how, now));
	ck_assert(pace__is_broke(&pace, how, now + 400000000));
	ck_assert(!pace__is_broke(&pace, how, now + 600000000));
	ck_assert_uint_eq(pace.records, 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("sampling");
	TCase *t = tcase_create("sampling");

	tcase_set_timeout(t, 500);
	tcase_add_loop_test(t, sums_are_right_on_average, 0, KINDS);
	tcase_add_loop_test(t, a_bias_of_two_percent_would_be_found, 0, 1);
	tcase_add_test(t, ever_new_shapes);
	tcase_add_test(t, what_is_owed_is_paid_back);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	SRunner *r = srunner_create(suite());
	int failed;

	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? 1 : 0;
}
