// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Graphs of a channel in this process: which of them a launch was of, and how kernels are known. */
#include "loader/graphs.h"
#include "loader/shapes.h"
#include "loader/works.h"
#include "tests/unit/launches_setup.h"

static void put_graph(uint32_t generation, uint32_t members, uint32_t first, const struct channel_node *n,
		      uint32_t nr)
{
	char bytes[sizeof(struct channel_graph) + 8 * sizeof(*n)] = {};
	struct channel_graph *g = (void *)bytes;

	g->exec = 0x900;
	g->generation = generation;
	g->nodes = g->members = members;
	g->first = first;
	memcpy(g->member, n, nr * sizeof(*n));
	put(bytes, (uint32_t)(sizeof(*g) + nr * sizeof(*n)), CHANNEL_GRAPH);
}

static void graph_launched(uint64_t id, uint32_t generation, uint32_t stack, uint64_t time)
{
	struct channel_result r = timed(id, 1000);
	const struct rec_launch rec = {
		.head.time = time, .tgid = (uint32_t)getpid(), .tid = 77, .id = id, .function = 0x900,
		.flags = LAUNCH_GRAPH,
	};

	r.entry = ENTRY_GRAPH_LAUNCH;
	r.flags = LAUNCH_GRAPH;
	r.name = generation;
	put_result(&r);
	ck_assert_int_eq(launches__record(launches, &process, &rec, stack), 0);
}

static const struct graph_member *of(uint32_t stack, size_t *nr)
{
	return graphs__get(launches__graphs(launches), of_stack(stack)->key.work, nr);
}

START_TEST(a_launch_has_the_graph_that_held_for_it)
{
	const struct channel_node first[] = { { .name = 1, .count = 2 }, { .name = 9, .count = 1 } };
	const struct channel_node second[] = { { .name = 2, .count = 1 },
					       { .copy = COPY_SET + 1, .count = 4 } };
	const struct graph_member *m;
	size_t nr;

	setup();
	hello();
	put_name(0x100, 1, "a", NAME_KNOWN);
	put_name(0x200, 2, "b", NAME_KNOWN);
	put_graph(1, 2, 0, first, 2);
	graph_launched(1, 1, 11, 0);
	/* The same handle, of another one by now; it comes in two parts. */
	put_graph(2, 2, 0, second, 1);
	put_graph(2, 2, 1, second + 1, 1);
	graph_launched(2, 2, 12, 0);
	/* As the first. */
	put_graph(3, 2, 0, first, 2);
	graph_launched(3, 3, 13, 0);
	graph_launched(4, 0, 14, 0);
	graph_launched(5, 99, 15, 0);
	/* One of its parts was lost. */
	put_graph(4, 2, 0, first, 1);
	graph_launched(6, 4, 16, 0);
	launches__poll(launches);
	m = of(11, &nr);
	ck_assert_uint_eq(nr, 2);
	for (size_t i = 0; i < 2; i++)
		ck_assert_str_eq(launches__name(launches, m[i].work), m[i].count == 2 ? "a" : "");
	m = of(12, &nr);
	ck_assert_uint_eq(nr, 2);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_uint_eq(m[i].copy, m[i].count == 4 ? COPY_SET + 1 : 0);
		ck_assert_str_eq(launches__name(launches, m[i].work), m[i].count == 4 ? "" : "b");
	}
	ck_assert_uint_eq(of_stack(13)->key.work, of_stack(11)->key.work);
	for (uint32_t stack = 14; stack <= 16; stack++) {
		ck_assert_uint_eq(of_stack(stack)->key.work, 0);
		ck_assert(of_stack(stack)->key.flags & TALLY_GRAPH);
		ck_assert_uint_eq(of_stack(stack)->ns, 1000);
	}
	ck_assert_uint_eq(counters().graphs, 6);
	ck_assert_uint_eq(counters().graphs_whole, 3);
	launches__free(launches);
	tally__free(tally);
}
END_TEST

static void captured(uint64_t id, uint32_t stack, uint64_t time)
{
	struct channel_result r = timed(id, 0);
	const struct rec_launch rec = {
		.head.time = time, .tgid = (uint32_t)getpid(), .tid = 77, .id = id, .flags = 0,
	};

	r.cause = CAUSE_CAPTURED;
	r.flags = LAUNCH_CAPTURED;
	put_result(&r);
	launches__poll(launches);
	ck_assert_int_eq(launches__record(launches, &process, &rec, stack), 0);
}

/* The channel may be read before the stacks of what was captured. */
START_TEST(nodes_have_the_stacks_of_their_capture)
{
	const struct channel_node nodes[] = {
		{ .name = 1, .count = 1, .launch = 51 }, { .name = 1, .count = 1, .launch = 52 },
		{ .name = 1, .count = 1, .launch = 53 }, { .name = 1, .count = 1, .launch = 54 },
		{ .name = 1, .count = 1 },
	};
	const struct graph_member *m;
	size_t nr;

	setup();
	hello();
	launches__only(launches, 100, UINT64_MAX);
	put_name(0x100, 1, "a", NAME_KNOWN);
	put_graph(1, 5, 0, nodes, 5);
	launches__poll(launches);
	captured(51, 31, 200);
	captured(52, 32, 200);
	captured(53, 31, 50);	/* before the capture began: the graph is launched in it */
	graph_launched(1, 1, 11, 300);
	launches__poll(launches);
	m = of(11, &nr);
	ck_assert_uint_eq(nr, 3);
	for (size_t i = 0; i < nr; i++) {
		ck_assert_uint_eq(m[i].launch, 0);
		ck_assert_uint_eq(m[i].count, m[i].stack == 32 ? 1 : 2);
		ck_assert(m[i].stack == 31 || m[i].stack == 32 || m[i].stack == STACKS_NONE);
	}
	/* What was captured is nothing that ran. */
	ck_assert_uint_eq(tally__count(tally), 1);
	launches__free(launches);
	tally__free(tally);
}
END_TEST

/* Another program is executed, whose library counts from 1 again. */
START_TEST(another_session_has_other_graphs)
{
	const struct channel_node first = { .name = 1, .count = 1 }, second = { .name = 1, .count = 2 };
	size_t nr;

	setup();
	hello();
	put_graph(1, 1, 0, &first, 1);
	graph_launched(1, 1, 11, 0);
	launches__poll(launches);
	segment->session++;
	segment->state = CHANNEL_ARMED;
	hello();
	put_graph(1, 1, 0, &second, 1);
	graph_launched(2, 1, 12, 0);
	graph_launched(3, 2, 13, 0);
	launches__poll(launches);
	ck_assert_uint_eq(of(11, &nr)->count, 1);
	ck_assert_uint_eq(of(12, &nr)->count, 2);
	ck_assert_uint_eq(of_stack(13)->key.work, 0);
	launches__free(launches);
	tally__free(tally);
}
END_TEST

static void kernel_launched(uint64_t id, uint32_t name, uint32_t grid, uint64_t ns, uint32_t stands_for)
{
	struct channel_result r = timed(id, ns);
	const struct rec_launch rec = {
		.tgid = (uint32_t)getpid(), .tid = 77, .id = id, .function = 0x100, .grid = { grid, 1, 1 },
		.block = { 32, 1, 1 }, .shared_bytes = 64,
	};

	r.name = name;
	r.stands_for = stands_for;
	put_result(&r);
	ck_assert_int_eq(launches__record(launches, &process, &rec, 11), 0);
}

START_TEST(kernels_are_known_by_their_shape)
{
	struct shape shape = { .grid = { 4, 1, 1 }, .block = { 32, 1, 1 }, .shared_bytes = 64 };
	const struct shapes *shapes;
	uint32_t work;
	double ns;

	setup();
	hello();
	put_name(0x100, 1, "a", NAME_KNOWN);
	kernel_launched(1, 1, 4, 100, 1);
	kernel_launched(2, 1, 4, 200, 3);
	kernel_launched(3, 1, 5, 7, 1);
	launches__poll(launches);
	shapes = launches__shapes(launches);
	work = of_stack(11)->key.work;
	ck_assert(shapes__mean(shapes, 5, work, &shape, &ns));
	ck_assert_double_eq(ns, 175);
	ck_assert(!shapes__mean(shapes, 4, work, &shape, &ns));
	shape.grid[0] = 5;
	ck_assert(shapes__mean(shapes, 5, work, &shape, &ns));
	ck_assert_double_eq(ns, 7);
	shape.grid[0] = 6;
	ck_assert(!shapes__mean(shapes, 5, work, &shape, &ns));
	launches__free(launches);
	tally__free(tally);
}
END_TEST

/* A program may make another one before each launch, for ever. */
START_TEST(graphs_are_bounded)
{
	struct channel_node n[4] = { { .count = 1 }, { .count = 1 }, { .count = 1 }, { .count = 1 } };
	uint32_t i;

	setup();
	hello();
	for (i = 1; i <= 1200000; i++) {
		for (uint32_t k = 0; k < 4; k++)
			n[k].grid[0] = 4 * i + k;
		put_graph(i, 4, 0, n, 4);	/* 256 bytes: none wraps */
		if (i % 1000 == 0)
			launches__poll(launches);
	}
	/* Those that wait for a launch, and as many as are kept of all. */
	ck_assert_uint_ge(counters().lost_graphs, 1200000 - (1 << 16) - (1 << 18));
	ck_assert_uint_eq(counters().bad_channels, 0);
	launches__free(launches);
	tally__free(tally);
}
END_TEST

UNIT_MAIN("launches_graphs",
	  a_launch_has_the_graph_that_held_for_it, nodes_have_the_stacks_of_their_capture,
	  another_session_has_other_graphs, kernels_are_known_by_their_shape, graphs_are_bounded)
