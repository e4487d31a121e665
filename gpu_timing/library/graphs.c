// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "gpu_timing/library/graphs.h"

#include <errno.h>
#include <string.h>

#include "gpu_timing/library/graph_nodes.h"
#include "gpu_timing/library/launch.h"
#include "gpu_timing/library/segment.h"
#include "gpu_timing/library/slot.h"

#define EXEC_TAKEN (~0ull)	/* somebody is about to write it */

static struct graph_table *table(void)
{
	return &lib.memory->graphs;
}

static struct exec *place(uint64_t handle, uint64_t i)
{
	return &table()->execs[(hash__mix(handle) + i) % MAX_EXECS];
}

/* The one that has this handle, free or not; NULL: there is none. */
static struct exec *find(uint64_t handle)
{
	for (uint64_t i = 0; i < EXEC_PROBES; i++) {
		struct exec *e = place(handle, i);
		uint64_t here = load_acquire(&e->handle);

		if (here == handle)
			return e;
		if (!here && !load_acquire(&e->state))
			return NULL;
	}
	return NULL;
}

static bool take_at(struct exec *e, uint64_t state)
{
	return __atomic_compare_exchange_n(&e->state, &state, EXEC_TAKEN, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

/*
 * An element for the handle, which nobody else touches until its state is set; *state is what it was: 0 of a
 * new one. NULL: no room near its place.
 */
static struct exec *take(uint64_t handle, uint64_t *state)
{
	struct exec *e = find(handle);

	*state = e ? load_acquire(&e->state) : 0;
	if (e && *state != EXEC_TAKEN && take_at(e, *state)) {
		/* While it was free another handle may have come here. */
		if (e->handle == handle)
			return e;
		store_release(&e->state, *state);
	}
	*state = 0;
	for (uint64_t i = 0; i < EXEC_PROBES; i++) {
		e = place(handle, i);
		if (load_relaxed(&e->state) || !take_at(e, 0))
			continue;
		store_relaxed(&e->handle, handle);
		store_relaxed(&e->check, 0ull);
		return e;
	}
	return NULL;
}

static bool holds(uint64_t state)
{
	return state && state != EXEC_TAKEN && state >= load_relaxed(&table()->first);
}

uint32_t graph__find(uint64_t handle)
{
	struct exec *e = load_relaxed(&table()->usable) ? find(handle) : NULL;
	uint64_t state = e ? load_acquire(&e->state) : 0;

	return holds(state) ? (uint32_t)state : 0;
}

void graph__unknown(CUgraphExec exec)
{
	struct exec *e = find((uint64_t)exec);

	if (e)
		store_release(&e->state, 0ull);
}

static void count_lost(void)
{
	__atomic_add_fetch(&lib.segment->lost_graphs, 1, __ATOMIC_RELAXED);
}

/* All of it, in its parts: the generation, or 0. */
static uint32_t send(uint64_t handle, const struct graph_nodes *n)
{
	struct channel_graph rec = {
		.exec = handle,
		.generation = __atomic_add_fetch(&table()->generation, 1, __ATOMIC_RELAXED),
		.nodes = n->all,
		.members = n->nr,
	};

	do {
		uint32_t left = n->nr - rec.first;
		uint32_t nr = left < CHANNEL_GRAPH_PART ? left : CHANNEL_GRAPH_PART;

		if (ring__put(lib.segment, CHANNEL_GRAPH, &rec, sizeof(rec), n->node + rec.first,
			      nr * sizeof(*n->node)))
			return 0;
		rec.first += nr;
	} while (rec.first < n->nr);
	return rec.generation;
}

/* What they are, by whichever launches they were captured: a program may capture the same again and again. */
static uint64_t hash_of(uint64_t hash, struct channel_node node)
{
	uint64_t word[sizeof(node) / sizeof(uint64_t)];

	node.launch = 0;
	memcpy(word, &node, sizeof(word));
	for (uint64_t i = 0; i < sizeof(word) / sizeof(word[0]); i++)
		hash = hash__mix(hash ^ word[i]) + i;
	return hash;
}

static uint64_t name_nodes(struct thread *t, struct graph_nodes *n)
{
	uint64_t hash = n->all;

	for (uint32_t i = 0; i < n->nr; i++) {
		n->node[i].name = name__known(t, n->node[i].function);
		hash = hash_of(hash, n->node[i]);
	}
	return hash;
}

/* Inside the session. A program may update a graph before each launch: what stays isn't told again. */
static void note(struct thread *t, uint64_t handle, struct graph_nodes *n, uint64_t sets)
{
	uint64_t check = name_nodes(t, n), state;
	struct exec *e = take(handle, &state);
	uint32_t generation = (uint32_t)state;

	if (e && (!holds(state) || e->check != check)) {
		generation = send(handle, n);
		e->check = check;
	}
	if (!e || !generation)
		count_lost();
	if (!e)
		return;
	store_relaxed(&e->sets, sets);
	store_release(&e->state, (uint64_t)generation);
}

/*
 * A look at a graph, after the program's call: inside the session, and marked by the frame as hooks of
 * launches are, since a signal handler may launch meanwhile, or leave it by a jump.
 */
struct look {
	struct thread *t;
	uint32_t was;
	uint32_t fp;
	int saved;
};

/* False: nothing can be noted. Inline: the frame is the hook's, or near it. */
static inline __attribute__((always_inline)) bool begin(struct look *l)
{
	uint32_t session = load_relaxed(&lib.memory->guard.open);
	void *frame = __builtin_frame_address(0);

	l->saved = errno;
	l->t = thread__self();
	if (!session || !l->t)
		return false;
	if (l->t->frame) {
		/* From a signal handler inside of another hook. */
		if ((uintptr_t)frame < (uintptr_t)l->t->frame)
			return false;
		launch__abandon(l->t);
	}
	if (!session__enter(l->t, session, &l->was))
		return false;
	l->t->frame = frame;
	l->fp = fp__save();
	return true;
}

static void end(struct look *l)
{
	fp__restore(l->fp);
	errno = l->saved;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	l->t->frame = NULL;
	session__leave(l->t, l->was);
}

/* What it takes is paid for by looking at fewer launches. */
static void read_graph(struct thread *t, CUgraphExec exec, CUgraph graph, uint64_t since)
{
	uint64_t sets = load_relaxed(&table()->sets);
	struct graph_nodes nodes;
	int err = graph_nodes__read(&nodes, graph);

	if (err)
		graph__unknown(exec);
	else
		note(t, (uint64_t)exec, &nodes, sets);
	if (err && err != -ENOTSUP)
		count_lost();
	graph_nodes__free(&nodes);
	if (since)
		pace__owe(&t->pace, clock__ns() - since);
}

/* The caller's hook has the frame. */
static inline __attribute__((always_inline)) void made(CUgraphExec exec, CUgraph graph, bool always)
{
	struct sampling how = { load_relaxed(&lib.segment->every), load_relaxed(&lib.segment->budget) };
	uint64_t since = how.every ? 0 : clock__ns();
	bool can_pay = true;
	struct look l;

	if (!load_relaxed(&table()->usable))
		return;
	if (!begin(&l)) {
		graph__unknown(exec);
		return;
	}
	/* Asked in any case: it earns by that, too. */
	if (since)
		can_pay = !pace__is_broke(&l.t->pace, how, since);
	if (can_pay || always)
		read_graph(l.t, exec, graph, since);
	else
		graph__unknown(exec);
	end(&l);
}

void graph__made(CUgraphExec exec, CUgraph graph)
{
	made(exec, graph, true);
}

void graph__updated(CUgraphExec exec, CUgraph graph)
{
	made(exec, graph, false);
}

void graph__added(uint64_t function)
{
	struct look l;

	if (!begin(&l))
		return;
	name__find(l.t, function);
	end(&l);
}

void graph__node_set(uint64_t function)
{
	__atomic_add_fetch(&table()->sets, 1, __ATOMIC_RELAXED);
	graph__added(function);
}

void graph__changed(CUgraphExec exec, CUgraphNode node, uint64_t function)
{
	struct exec *e = find((uint64_t)exec);
	int saved = errno;

	/*
	 * As long as each change leaves a node the kernel that its graph has, the whole is what that has;
	 * unless the graph has got others since it was read.
	 */
	if (e && holds(load_acquire(&e->state)) &&
	    (load_relaxed(&e->sets) != load_relaxed(&table()->sets) ||
	     graph_nodes__kernel(node) != function))
		graph__unknown(exec);
	errno = saved;
}

void graphs__begin(void)
{
	store_relaxed(&table()->first, load_relaxed(&table()->generation) + 1);
	store_relaxed(&table()->usable, 0u);
}

void graphs__armed(void)
{
	bool all = lib.driver.graph_nodes && lib.driver.node_type && lib.driver.kernel_node &&
		   lib.driver.child_graph;

	for (uint32_t i = SLOT_GRAPHS; i < SLOT_CAPTURES; i++)
		all = all && !slot__is_missed(i);
	store_release(&table()->usable, (uint32_t)all);
}
