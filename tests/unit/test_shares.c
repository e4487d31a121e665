// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What each process has launched on each device, and where it is told. */
#include <errno.h>

#include "loader/output/shares.h"
#include "tests/unit/refuse.h"
#include "tests/unit/summary_maker.h"

#define NONE PROFILE_NO_LABEL

static void put(struct profile *p, uint32_t pid, uint32_t rank, uint32_t device, uint64_t stream,
		enum profile_metric metric, uint64_t value, uint64_t count)
{
	const struct profile_labels labels = { .pid = pid, .tid = pid, .device = device, .rank = rank,
					       .stream = stream };
	const struct profile_frame leaf = { .kind = PROFILE_GPU, .name = "k" };
	uint32_t frame, node, label;

	ck_assert_int_eq(profile__process(p, pid, "train", &frame), 0);
	ck_assert_int_eq(profile__node(p, PROFILE_ROOT, frame, &node), 0);
	ck_assert_int_eq(profile__frame(p, &leaf, &frame), 0);
	ck_assert_int_eq(profile__node(p, node, frame, &node), 0);
	ck_assert_int_eq(profile__labels(p, &labels, &label), 0);
	ck_assert_int_eq(profile__add(p, node, label, metric, 0, value, count), 0);
}

static struct profile *model(void)
{
	struct profile *p = profile__new();

	/* Rank 1 on two devices, on one of them in two streams; rank 0 later; one without. */
	put(p, 41, 1, 0, 7, PROFILE_LAUNCHES, 3, 3);
	put(p, 41, 1, 0, 7, PROFILE_GPU_NS, 3000, 3);
	put(p, 41, 1, 0, 8, PROFILE_LAUNCHES, 2, 2);
	put(p, 41, 1, 0, 8, PROFILE_GPU_NS, 2000, 2);
	put(p, 41, 1, 0, 8, PROFILE_BYTES, 4096, 4);
	put(p, 41, 1, 1, 0, PROFILE_LAUNCHES, 1, 1);
	put(p, 41, 1, 1, 0, PROFILE_GPU_NS, 500, 1);
	put(p, 40, NONE, 0, 7, PROFILE_LAUNCHES, 1, 1);
	put(p, 40, NONE, 0, 7, PROFILE_GPU_NS, 9000, 1);
	put(p, 42, 0, NONE, 0, PROFILE_LAUNCHES, 6, 6);
	put(p, 42, 0, NONE, 0, PROFILE_CPU_NS, 1000000, 1);
	profile__run(p)->metrics = 1u << PROFILE_GPU_NS | 1u << PROFILE_LAUNCHES | 1u << PROFILE_BYTES;
	return p;
}

static void check_share(const struct share *s, uint32_t pid, uint32_t rank, uint32_t device,
			uint32_t streams, uint64_t launches, uint64_t copies, uint64_t ns)
{
	ck_assert_uint_eq(s->pid, pid);
	ck_assert_uint_eq(s->rank, rank);
	ck_assert_uint_eq(s->device, device);
	ck_assert_uint_eq(s->streams, streams);
	ck_assert_uint_eq(s->launches, launches);
	ck_assert_uint_eq(s->copies, copies);
	ck_assert_uint_eq(s->ns, ns);
}

START_TEST(by_rank_process_and_device)
{
	struct profile *p = model();
	struct shares s;
	int err = -ENOMEM;
	long n;

	ck_assert_int_eq(shares__new(p, &s), 0);
	ck_assert_uint_eq(s.nr, 4);
	check_share(&s.list[0], 42, 0, NONE, 0, 6, 0, 0);
	check_share(&s.list[1], 41, 1, 0, 2, 5, 4, 5000);
	check_share(&s.list[2], 41, 1, 1, 1, 1, 0, 500);
	check_share(&s.list[3], 40, NONE, 0, 1, 1, 0, 9000);
	shares__free(&s);
	for (n = 0; CAN_REFUSE && err; n++) {
		allocations_left = n;
		err = shares__new(p, &s);
		allocations_left = -1;
		ck_assert(!err || err == -ENOMEM);
	}
	if (CAN_REFUSE)
		shares__free(&s);
	profile__free(p);
	p = profile__new();
	ck_assert_int_eq(shares__new(p, &s), 0);
	ck_assert_uint_eq(s.nr, 0);
	shares__free(&s);
	profile__free(p);
}
END_TEST

/* Labels with another rank are other labels. */
START_TEST(ranks_are_kept_apart)
{
	struct profile *p = profile__new();
	struct profile_labels l = { .pid = 1, .tid = 1, .rank = 0 };
	uint32_t first, second;

	ck_assert_int_eq(profile__labels(p, &l, &first), 0);
	l.rank = NONE;
	ck_assert_int_eq(profile__labels(p, &l, &second), 0);
	ck_assert_uint_ne(first, second);
	ck_assert_uint_eq(profile__labels_at(p, first)->rank, 0);
	ck_assert_uint_eq(profile__labels_at(p, second)->rank, NONE);
	profile__free(p);
}
END_TEST

START_TEST(the_table_has_a_row_each)
{
	struct profile *p = model();
	char *s = summary(p, (struct summary_options){ 0 });

	has(s, "GPU time by process and device: 14.5 us in 7 launches and 4 copies and sets\n"
	       "    share       time        calls  process\n"
	       "   62.1 %    9.00 us            1  train (pid 40), device 0\n"
	       "   34.5 %    5.00 us            9  rank 1, train (pid 41), device 0\n"
	       "    3.4 %     500 ns            1  rank 1, train (pid 41), device 1\n\n");
	free(s);
	profile__free(p);
	p = profile__new();
	put(p, 40, 3, 0, 7, PROFILE_GPU_NS, 9000, 1);
	s = summary(p, (struct summary_options){ 0 });
	lacks(s, "by process");
	free(s);
	profile__free(p);
}
END_TEST

START_TEST(the_end_says_who_is_who)
{
	struct closing_options o = { .metric = PROFILE_GPU_NS };
	struct profile *p = model();
	char *s = closing(p, o);

	has(s, "gpucollect: ranks: 0 is pid 42, 1 is pid 41\n");
	free(s);
	o.json = true;
	s = closing(p, o);
	has(s, "\"processes\":[{\"rank\":0,\"pid\":42,\"name\":\"train\",\"device\":null,"
	       "\"streams\":null,\"launches\":6,\"copies\":0,\"gpu_ns\":0},"
	       "{\"rank\":1,\"pid\":41,\"name\":\"train\",\"device\":0,\"streams\":2,"
	       "\"launches\":5,\"copies\":4,\"gpu_ns\":5000},{\"rank\":1,\"pid\":41,");
	has(s, "{\"rank\":null,\"pid\":40,");
	free(s);
	for (uint32_t i = 2; i < 20; i++)
		put(p, 100 + i, i, 0, 1, PROFILE_LAUNCHES, 1, 1);
	o.json = false;
	s = closing(p, o);
	has(s, ", 15 is pid 115 and 4 more\n");
	free(s);
	profile__free(p);
	p = profile__new();
	put(p, 40, NONE, 0, 7, PROFILE_GPU_NS, 9000, 1);
	s = closing(p, o);
	lacks(s, "ranks");
	free(s);
	profile__free(p);
}
END_TEST

UNIT_MAIN("shares", by_rank_process_and_device, ranks_are_kept_apart, the_table_has_a_row_each,
	  the_end_says_who_is_who)
