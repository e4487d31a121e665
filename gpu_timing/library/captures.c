// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "gpu_timing/library/captures.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "gpu_timing/library/library.h"
#include "gpu_timing/library/slot.h"

#define MAX_IN_VAIN 1000	/* then whatever it has begun is over: another thread has ended it */
#define MAX_LOOKED_AT 65536	/* of a thread in a session: a program may capture for ever */

static struct capture_table *table(void)
{
	return &lib.memory->captures;
}

static struct captured *place(uint64_t node, uint64_t i)
{
	return &table()->at[(hash__mix(node) + i) % MAX_CAPTURED];
}

static uint64_t *place_of_graph(uint64_t graph)
{
	return &table()->graphs[hash__mix(graph) % CAPTURED_GRAPHS];
}

static bool holds(const struct captured *c)
{
	return load_relaxed(&c->node) && load_relaxed(&c->epoch) == load_relaxed(&table()->epoch);
}

static struct captured *find(uint64_t node)
{
	for (uint64_t i = 0; i < CAPTURED_PROBES; i++) {
		struct captured *c = place(node, i);

		if (load_acquire(&c->node) == node && holds(c))
			return c;
	}
	return NULL;
}

/* Two threads may come to take one element: then one of their nodes has the other's launch for none. */
static struct captured *take(uint64_t node)
{
	struct captured *c = find(node);

	for (uint64_t i = 0; !c && i < CAPTURED_PROBES; i++)
		if (!holds(place(node, i)))
			c = place(node, i);
	return c;
}

static bool is_captured(CUstream stream, struct capture_answer *answer)
{
	CUcontext current = NULL;
	int saved = errno;

	/* Without a current context the second call fails. */
	answer->status = CU_STREAM_CAPTURE_STATUS_NONE;
	if (stream != CU_STREAM_PER_THREAD || (!lib.driver.ctx_get_current(&current) && current)) {
		answer->asked = true;
		answer->error = lib.driver.stream_is_capturing(stream, &answer->status);
	}
	errno = saved;
	return answer->asked && !answer->error && answer->status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

bool capture__asks(struct thread *t, CUstream stream, struct capture_answer *answer)
{
	if (!stream && t->launch.flags & LAUNCH_PTSZ)
		stream = CU_STREAM_PER_THREAD;
	/* The legacy stream captures nothing, and may not be asked. */
	if (!stream || stream == CU_STREAM_LEGACY || t->captured == MAX_LOOKED_AT ||
	    load_relaxed(&lib.memory->guard.quiet))
		return false;
	if (!is_captured(stream, answer)) {
		if (++t->in_vain == MAX_IN_VAIN)
			t->captures = 0;
		return false;
	}
	t->in_vain = 0;
	t->captured++;
	t->launch.weight = 1;
	t->launch.stratum = 0;
	return true;
}

/*
 * The driver's own list of what the stream's next node comes after: one, the last. It is the driver's memory,
 * which holds until somebody does something in that stream, as another thread may.
 */
static uint64_t last_node(const CUgraphNode *list)
{
	uint64_t node = 0;
	struct iovec to = { &node, sizeof(node) }, from = { (void *)(uintptr_t)list, sizeof(node) };

	/* An unusual call may be the end of a program under a filter. */
	if (load_relaxed(&lib.segment->confined) ||
	    syscall(SYS_process_vm_readv, getpid(), &to, 1, &from, 1, 0) != sizeof(node))
		return 0;
	return node;
}

void capture__note(struct thread *t, CUstream stream)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	const CUgraphNode *list = NULL;
	const void *edges = NULL;
	CUgraph graph = NULL;
	struct captured *c;
	uint64_t id, node, was;
	size_t nr = 0;
	CUresult r;

	if (!load_relaxed(&table()->usable) || t->launch.flags & LAUNCH_GRAPH)
		return;
	/* The older one fails where edges are of dependent launches. */
	if (lib.driver.capture_info_v3)
		r = lib.driver.capture_info_v3(stream, &status, &id, &graph, &list, &edges, &nr);
	else
		r = lib.driver.capture_info(stream, &status, &id, &graph, &list, &nr);
	if (r || status != CU_STREAM_CAPTURE_STATUS_ACTIVE || nr != 1 || !list)
		return;
	node = last_node(list);
	c = node ? take(node) : NULL;
	if (!c)
		return;
	/* Another one's nodes would not be forgotten any more when it goes. */
	was = __atomic_exchange_n(place_of_graph((uint64_t)graph), (uint64_t)graph, __ATOMIC_RELAXED);
	if (was && was != (uint64_t)graph)
		captures__forget_all();
	store_relaxed(&c->launch, t->launch.id);
	store_relaxed(&c->kernel, (uint64_t)!(t->launch.flags & LAUNCH_COPY));
	store_relaxed(&c->graph, (uint64_t)graph);
	store_relaxed(&c->epoch, load_relaxed(&table()->epoch));
	store_release(&c->node, node);
}

uint64_t capture__launch(CUgraphNode node, CUgraph graph, bool kernel)
{
	struct captured *c = load_relaxed(&table()->usable) ? find((uint64_t)node) : NULL;

	if (!c || load_relaxed(&c->graph) != (uint64_t)graph || load_relaxed(&c->kernel) != kernel)
		return 0;
	return load_relaxed(&c->launch);
}

void captures__forget_all(void)
{
	__atomic_add_fetch(&table()->epoch, 1, __ATOMIC_RELAXED);
}

void captures__stream_goes(void)
{
	if (load_relaxed(&table()->under_way))
		captures__forget_all();
}

void captures__begin(void)
{
	store_relaxed(&table()->usable, 0u);
	store_relaxed(&table()->under_way, 0u);
	captures__forget_all();
	memset(table()->graphs, 0, sizeof(table()->graphs));
	for (uint32_t i = 1; i < load_acquire(&lib.segment->nr_threads); i++) {
		struct thread *t = &lib.memory->threads.threads[i];

		t->captures = t->in_vain = t->captured = 0;
	}
}

void captures__armed(void)
{
	bool all = (lib.driver.capture_info || lib.driver.capture_info_v3) && lib.driver.graph_nodes;

	for (uint32_t i = SLOT_CAPTURES; i < NR_CHANNEL_SLOTS; i++)
		all = all && !slot__is_missed(i);
	store_release(&table()->usable, (uint32_t)all);
}

/* --- what stands in the slots ----------------------------------------------------------------- */

static CUresult begun(CUresult r)
{
	struct thread *t;

	if (r || !library__is_active())
		return r;
	t = thread__self();
	if (t) {
		t->captures++;
		t->in_vain = 0;
	}
	__atomic_add_fetch(&table()->under_way, 1, __ATOMIC_RELAXED);
	return r;
}

#define CAPTURE(name, slot, params, args)						\
	static CUresult name params							\
	{										\
		CUresult (*original) params = lib.original[slot];			\
											\
		return begun(original args);						\
	}

CAPTURE(capture, SLOT_CAPTURE, (CUstream stream), (stream))
CAPTURE(capture_ptsz, SLOT_CAPTURE_PTSZ, (CUstream stream), (stream))
CAPTURE(capture_v2, SLOT_CAPTURE_V2, (CUstream stream, int mode), (stream, mode))
CAPTURE(capture_v2_ptsz, SLOT_CAPTURE_V2_PTSZ, (CUstream stream, int mode), (stream, mode))

#define TO_GRAPH \
	CUstream stream, CUgraph graph, const CUgraphNode *nodes, const void *edges, size_t nr, int mode
#define TO_GRAPH_PASS stream, graph, nodes, edges, nr, mode

CAPTURE(capture_to_graph, SLOT_CAPTURE_TO_GRAPH, (TO_GRAPH), (TO_GRAPH_PASS))
CAPTURE(capture_to_graph_ptsz, SLOT_CAPTURE_TO_GRAPH_PTSZ, (TO_GRAPH), (TO_GRAPH_PASS))

static CUresult ended(CUresult r)
{
	uint32_t under_way = load_relaxed(&table()->under_way);
	struct thread *t;

	if (!library__is_active())
		return r;
	t = thread__self();
	if (t && t->captures)
		t->captures--;
	while (under_way && !__atomic_compare_exchange_n(&table()->under_way, &under_way, under_way - 1, true,
							 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	/* Its graph may be gone. */
	if (r)
		captures__forget_all();
	return r;
}

#define END_CAPTURE(name, slot)								\
	static CUresult name(CUstream stream, CUgraph *graph)				\
	{										\
		CUresult (*original)(CUstream, CUgraph *) = lib.original[slot];		\
											\
		return ended(original(stream, graph));					\
	}

END_CAPTURE(end_capture, SLOT_END_CAPTURE)
END_CAPTURE(end_capture_ptsz, SLOT_END_CAPTURE_PTSZ)

static void forget(CUgraphNode node)
{
	struct captured *c = find((uint64_t)node);

	if (c)
		store_relaxed(&c->epoch, 0ull);
}

#define LIST_SIZE (MAX_CAPTURED * sizeof(CUgraphNode))

static void forget_nodes(CUgraph graph)
{
	CUgraphNode *list;
	size_t nr = 0;

	if (lib.driver.graph_nodes(graph, NULL, &nr) || nr > MAX_CAPTURED) {
		captures__forget_all();
		return;
	}
	if (!nr)
		return;
	list = mmap(NULL, LIST_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		    -1, 0);
	if (list == MAP_FAILED || lib.driver.graph_nodes(graph, list, &nr))
		captures__forget_all();
	else
		for (size_t i = 0; i < nr; i++)
			forget(list[i]);
	if (list != MAP_FAILED)
		munmap(list, LIST_SIZE);
}

/* Before the calls: what goes may come again at once. */
static CUresult graph_destroy(CUgraph graph)
{
	CUresult (*original)(CUgraph) = lib.original[SLOT_GRAPH_DESTROY];
	uint64_t known = (uint64_t)graph;
	int saved = errno;

	/* Of others, and of what is no graph, nothing is asked. */
	if (graph && library__is_active() &&
	    __atomic_compare_exchange_n(place_of_graph(known), &known, 0ull, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		forget_nodes(graph);
	errno = saved;
	return original(graph);
}

static CUresult node_destroy(CUgraphNode node)
{
	CUresult (*original)(CUgraphNode) = lib.original[SLOT_NODE_DESTROY];

	if (library__is_active())
		forget(node);
	return original(node);
}

void *hook__capture(uint32_t slot)
{
	static void *const hooks[NR_CHANNEL_SLOTS - SLOT_CAPTURES] = {
#define HOOK(slot, hook) [slot - SLOT_CAPTURES] = hook
		HOOK(SLOT_CAPTURE, capture), HOOK(SLOT_CAPTURE_PTSZ, capture_ptsz),
		HOOK(SLOT_CAPTURE_V2, capture_v2), HOOK(SLOT_CAPTURE_V2_PTSZ, capture_v2_ptsz),
		HOOK(SLOT_CAPTURE_TO_GRAPH, capture_to_graph),
		HOOK(SLOT_CAPTURE_TO_GRAPH_PTSZ, capture_to_graph_ptsz),
		HOOK(SLOT_END_CAPTURE, end_capture), HOOK(SLOT_END_CAPTURE_PTSZ, end_capture_ptsz),
		HOOK(SLOT_GRAPH_DESTROY, graph_destroy), HOOK(SLOT_NODE_DESTROY, node_destroy),
#undef HOOK
	};

	return hooks[slot - SLOT_CAPTURES];
}
