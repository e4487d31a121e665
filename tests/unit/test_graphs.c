// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What graphs run, how long kernels take by their shape, and how a time is split. */
#include <stdlib.h>
#include <string.h>

#include "loader/graphs.h"
#include "loader/shapes.h"
#include "loader/shares.h"
#include "tests/unit/unit.h"

static struct graph_member member(uint32_t work, uint32_t count, uint32_t grid)
{
	return (struct graph_member){ .work = work, .count = count, .shape = { .grid = { grid, 1, 1 } } };
}

static uint32_t add(struct graphs *g, const struct graph_member *m, size_t nr)
{
	struct graph_member copy[8];
	uint32_t id = ~0u;

	memcpy(copy, m, nr * sizeof(*m));
	ck_assert_int_eq(graphs__add(g, copy, nr, &id), 0);
	return id;
}

START_TEST(alike_graphs_are_one)
{
	const struct graph_member first[] = { member(1, 2, 8), member(2, 1, 8), member(1, 3, 8) };
	const struct graph_member same[] = { member(2, 1, 8), member(1, 5, 8) };
	const struct graph_member more[] = { member(2, 1, 8), member(1, 6, 8) };
	const struct graph_member shape[] = { member(2, 1, 8), member(1, 5, 9) };
	struct graphs *g = graphs__new();
	const struct graph_member *m;
	size_t nr;
	uint32_t id;

	id = add(g, first, 3);
	ck_assert_uint_ne(id, 0);
	ck_assert_uint_eq(add(g, same, 2), id);
	ck_assert_uint_ne(add(g, more, 2), id);
	ck_assert_uint_ne(add(g, shape, 2), id);
	m = graphs__get(g, id, &nr);
	ck_assert_uint_eq(nr, 2);
	ck_assert_uint_eq(m[0].count + m[1].count, 6);
	for (size_t i = 0; i < 2; i++)
		ck_assert_uint_eq(m[i].count, m[i].work == 1 ? 5 : 1);
	ck_assert_ptr_null(graphs__get(g, 0, &nr));
	ck_assert_ptr_null(graphs__get(g, 4, &nr));
	ck_assert_uint_eq(nr, 0);
	graphs__free(g);
}
END_TEST

/* Numbers of nodes are the target's. */
START_TEST(counts_do_not_wrap)
{
	const struct graph_member m[] = { member(1, ~0u, 1), member(1, 2, 1) };
	struct graphs *g = graphs__new();
	size_t nr;

	ck_assert_uint_eq(graphs__get(g, add(g, m, 2), &nr)->count, ~0u);
	graphs__free(g);
}
END_TEST

START_TEST(what_is_kept_is_bounded)
{
	struct graph_member *m = calloc(GRAPHS_MEMBERS, sizeof(*m));
	struct graphs *g = graphs__new();
	uint32_t id;

	for (uint32_t i = 0; i < GRAPHS_MEMBERS; i++)
		m[i] = member(i + 1, 1, 1);
	ck_assert_int_eq(graphs__add(g, m, GRAPHS_MEMBERS - 1, &id), 0);
	ck_assert_uint_eq(id, 1);
	ck_assert_int_eq(graphs__add(g, m, 2, &id), 0);
	ck_assert_uint_eq(id, 0);
	ck_assert_int_eq(graphs__add(g, m, 1, &id), 0);
	ck_assert_uint_eq(id, 2);
	graphs__free(g);
	free(m);
}
END_TEST

static struct graph_member *part(struct graph_parts *p, uint32_t generation, uint32_t all, uint32_t first,
				 uint32_t nr)
{
	struct graph_member m[4], *whole;

	for (uint32_t i = 0; i < nr; i++)
		m[i] = member(generation * 100 + first + i, 1, 1);
	ck_assert_int_eq(graph_parts__add(p, generation, all, first, m, nr, &whole), 0);
	return whole;
}

START_TEST(parts_of_several_come_between_each_other)
{
	struct graph_parts *p = graph_parts__new();
	struct graph_member *m;

	ck_assert_ptr_null(part(p, 1, 6, 0, 4));
	ck_assert_ptr_null(part(p, 2, 5, 0, 3));
	m = part(p, 1, 6, 4, 2);
	ck_assert_ptr_nonnull(m);
	for (uint32_t i = 0; i < 6; i++)
		ck_assert_uint_eq(m[i].work, 100 + i);
	free(m);
	m = part(p, 2, 5, 3, 2);
	ck_assert_uint_eq(m[4].work, 204);
	free(m);
	m = part(p, 3, 1, 0, 1);
	ck_assert_uint_eq(m->work, 300);
	free(m);
	graph_parts__free(p);
}
END_TEST

/* A target says what it likes. */
START_TEST(parts_that_do_not_fit_are_dropped)
{
	struct graph_parts *p = graph_parts__new();

	ck_assert_ptr_null(part(p, 1, 4, 2, 2));	/* it never began */
	ck_assert_ptr_null(part(p, 2, 6, 0, 3));
	ck_assert_ptr_null(part(p, 2, 60000, 3, 3));	/* of another size */
	ck_assert_ptr_null(part(p, 2, 6, 3, 3));
	ck_assert_ptr_null(part(p, 3, 6, 0, 3));
	ck_assert_ptr_null(part(p, 3, 6, 4, 2));	/* one is missing */
	ck_assert_ptr_null(part(p, 4, 3, 0, 4));	/* more than there are */
	ck_assert_ptr_null(part(p, 5, 0, 0, 0));
	ck_assert_ptr_null(part(p, 0, 1, 0, 1));
	/* Those that never end are given up, the oldest first; one may begin again. */
	for (uint32_t i = 10; i < 1000; i++)
		ck_assert_ptr_null(part(p, i, 8, 0, 4));
	ck_assert_ptr_null(part(p, 10, 8, 4, 4));
	ck_assert_ptr_null(part(p, 999, 8, 0, 4));
	free(part(p, 999, 8, 4, 4));
	graph_parts__free(p);
}
END_TEST

START_TEST(means_are_by_process_kernel_and_shape)
{
	const struct shape one = { .grid = { 1, 1, 1 } }, other = { .grid = { 1, 1, 1 }, .shared_bytes = 1 };
	struct shapes *s = shapes__new();
	double ns = 0;

	ck_assert(!shapes__mean(s, 1, 1, &one, &ns));
	ck_assert_int_eq(shapes__add(s, 1, 1, &one, 100, 1), 0);
	ck_assert_int_eq(shapes__add(s, 1, 1, &one, 200, 3), 0);
	ck_assert_int_eq(shapes__add(s, 1, 1, &other, 7, 1), 0);
	ck_assert_int_eq(shapes__add(s, 2, 1, &one, 9, 1), 0);
	ck_assert(shapes__mean(s, 1, 1, &one, &ns));
	ck_assert_double_eq(ns, 175);
	ck_assert(shapes__mean(s, 1, 1, &other, &ns));
	ck_assert_double_eq(ns, 7);
	ck_assert(!shapes__mean(s, 1, 2, &one, &ns));
	for (uint32_t i = 0; i < 300000; i++)
		ck_assert_int_eq(shapes__add(s, i, 9, &one, 1, 1), 0);
	ck_assert(!shapes__mean(s, 299999, 9, &one, &ns));	/* there was no room any more */
	shapes__free(s);
}
END_TEST

static void split(struct share *s, size_t nr, uint64_t total, uint64_t *parts)
{
	uint64_t sum = 0;

	shares__weigh(s, nr);
	shares__split(s, nr, total, parts);
	for (size_t i = 0; i < nr; i++)
		sum += parts[i];
	ck_assert_uint_eq(sum, total);
}

START_TEST(what_is_known_decides)
{
	struct share known[] = { { .count = 2, .mean = 10 }, { .count = 1, .mean = 80 } };
	struct share some[] = { { .count = 2, .mean = 10 }, { .count = 1, .mean = 40 },
				{ .count = 3, .mean = -1 } };
	struct share none[] = { { .count = 3, .mean = -1 }, { .count = 1, .mean = -1 } };
	struct share zero[] = { { .count = 3, .mean = 0 }, { .count = 1, .mean = -1 } };
	uint64_t p[3];

	split(known, 2, 1000, p);
	ck_assert_uint_eq(p[0], 200);
	/* Three known nodes take 20 each on average, and so do the other three. */
	split(some, 3, 1200, p);
	ck_assert_uint_eq(p[0], 200);
	ck_assert_uint_eq(p[1], 400);
	ck_assert_uint_eq(p[2], 600);
	split(none, 2, 1000, p);
	ck_assert_uint_eq(p[0], 750);
	split(zero, 2, 1000, p);
	ck_assert_uint_eq(p[0], 750);
}
END_TEST

START_TEST(sums_are_exact_whatever_there_is)
{
	static const uint64_t totals[] = { 0, 1, 2, 999, 1ull << 40, (1ull << 53) - 1, 1ull << 53 };
	struct share s[100];
	uint64_t p[100];

	for (size_t i = 0; i < 100; i++)
		s[i] = (struct share){ .count = (uint32_t)i * 7 + 1,
				       .mean = i % 3 ? 1e-3 * (double)(i * i) : -1 };
	for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++)
		split(s, 100, totals[i], p);
	s[5].count = ~0u;
	s[5].mean = 9e15;
	split(s, 100, 1000, p);
	ck_assert_uint_eq(p[5], 1000);
}
END_TEST

UNIT_MAIN("graphs",
	  alike_graphs_are_one, counts_do_not_wrap, what_is_kept_is_bounded,
	  parts_of_several_come_between_each_other, parts_that_do_not_fit_are_dropped,
	  means_are_by_process_kernel_and_shape,
	  what_is_known_decides, sums_are_exact_whatever_there_is)
