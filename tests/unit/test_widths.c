// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What an entry of the tally weighs where its records stand for others. */
#include "loader/widths.h"
#include "tests/unit/unit.h"

#define PATHS 5

static const struct profile_labels none = { 0 };

static uint32_t node_of(struct profile *p, const struct tally_key *key)
{
	const struct profile_frame path = { .kind = PROFILE_NATIVE, .name = "path", .line = key->user };
	uint32_t frame, node;

	ck_assert_int_eq(profile__frame(p, &path, &frame), 0);
	ck_assert_int_eq(profile__node(p, PROFILE_ROOT, frame, &node), 0);
	return node;
}

static void take(struct profile *p, struct tally *tally, struct strata *strata)
{
	struct widths *w;
	uint32_t labels;

	tally__settle(tally);
	ck_assert_int_eq(profile__labels(p, &none, &labels), 0);
	ck_assert_int_eq(widths__new(tally, strata, NULL, p, 1, &w), 0);
	for (size_t i = 0; i < tally__count(tally); i++) {
		const struct tally_value *v = tally__at(tally, i);

		ck_assert_int_eq(widths__add(w, v, node_of(p, &v->key), labels), 0);
	}
	widths__finish(w);
	widths__free(w);
}

/* Five paths, a record each, of 100 ns and for one launch, of a stratum that had three launches in all. */
START_TEST(no_more_have_a_time_than_there_are)
{
	const struct tally_add add = { .weight = 1, .count = 1, .timed = 1, .ns = 100 };
	struct strata *strata = strata__new();
	struct profile *p = profile__new();
	struct tally *tally = tally__new();
	uint32_t id;

	id = strata__add(strata);
	for (uint32_t i = 0; i < PATHS; i++) {
		const struct tally_key key = {
			.kind = TALLY_LAUNCH, .user = 1 + i, .work = 1, .stratum = id,
		};

		ck_assert_int_eq(tally__add(tally, &key, &add), 0);
		strata__saw(strata, id, 1, true);
	}
	strata__set_launches(strata, id, 3);
	take(p, tally, strata);
	ck_assert_uint_eq(profile__total(p, PROFILE_LAUNCHES), 3);
	ck_assert_uint_eq(profile__total_count(p, PROFILE_GPU_NS), 3);
	/* Their time is not rounded with them. */
	ck_assert_uint_eq(profile__total(p, PROFILE_GPU_NS), 300);
	profile__free(p);
	tally__free(tally);
	strata__free(strata);
}
END_TEST

/*
 * A kernel from two paths, ten launches of which are looked at, two of each four. How many are which path's
 * isn't known, but how many there are is: where all are equally long their sum is exact.
 */
START_TEST(what_one_path_has_more_the_other_has_less)
{
	static const uint64_t ns[2][2] = { { 100, 100 }, { 100, 160 } };

	for (int run = 0; run < 2; run++) {
		struct strata *strata = strata__new();
		struct profile *p = profile__new();
		struct tally *tally = tally__new();
		uint32_t id = strata__add(strata);

		for (uint32_t i = 0; i < 10; i++) {
			const struct tally_key key = {
				.kind = TALLY_LAUNCH, .user = 1 + (i & 1), .work = 1, .stratum = id,
			};
			const struct tally_add add = {
				.weight = 2, .block = i / 2, .count = 1, .timed = 1, .ns = ns[run][i & 1],
			};

			ck_assert_int_eq(tally__add(tally, &key, &add), 0);
			strata__saw(strata, id, 2, true);
		}
		/* The last block had two launches alone. */
		strata__set_launches(strata, id, 18);
		take(p, tally, strata);
		ck_assert_uint_eq(profile__total(p, PROFILE_LAUNCHES), 18);
		ck_assert_uint_eq(profile__total(p, PROFILE_GPU_NS), 9 * (ns[run][0] + ns[run][1]));
		/* Five blocks: 2 (2 - 1) (160 - 100)^2 each. */
		ck_assert_double_eq_tol(profile__run(p)->gpu_variance,
					run ? 5 * 2 * 3600 * 0.9 * 0.9 : 0, 1e-6);
		profile__free(p);
		tally__free(tally);
		strata__free(strata);
	}
}
END_TEST

UNIT_MAIN("widths", no_more_have_a_time_than_there_are, what_one_path_has_more_the_other_has_less)
