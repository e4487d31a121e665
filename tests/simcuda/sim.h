/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inside of the virtual device. Times are CLOCK_MONOTONIC nanoseconds. Every object comes from a
 * slab and is never given back to the system, so that a stale handle can be looked at safely; a
 * freed handle is the next one given out, as with the driver.
 *
 * Locks, outermost first: capture lock, module lock, stream lock (one for all blocking streams of
 * a context and its legacy stream, one each for the others), device thread's lock, slab locks.
 */
#ifndef SIMCUDA_SIM_H
#define SIMCUDA_SIM_H
#include "cu.h"
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#define SIM_MAX_DEVICES 8
#define SIM_MAX_STACK 16
#define SIM_NEVER INT64_MAX		/* a time that is not known yet */
#define SIM_NONE INT64_MIN		/* a time that there is not */
#define SIM_PDL_LEAD 1000		/* from a launch to a dependent one that overlaps it */
#define SIM_AROUND 700			/* of a kernel, before its first and after its last instruction */

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define load(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define store(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)

enum sim_magic {
	M_CTX = 0x43545831, M_MODULE, M_FUNC, M_LIBRARY, M_KERNEL, M_STREAM, M_EVENT, M_GRAPH,
	M_NODE, M_EXEC, M_ARRAY, M_DEAD,
};

enum sim_state { SIM_RAW, SIM_READY, SIM_FORKED, SIM_GONE };

/* What one process counts; written out by STANDIN_STATS. */
#define SIM_COUNTERS(X)                                                                           \
	X(launches) X(captured) X(failed) X(pdl) X(graph_launches) X(copies) X(records)           \
	X(queries) X(elapsed) X(not_ready) X(capturing_asked) X(queue_waits) X(events_made)       \
	X(events_freed) X(logged)         \
	X(stale) X(after_fork)
enum sim_counter {
#define X(name) C_##name,
	SIM_COUNTERS(X)
#undef X
	C_NR
};

/* --- configuration and state of the process (device.c) ---------------------------------------- */
struct sim_device {
	int state;
	int pid;
	int count;			/* devices */
	int64_t kernel_ns;
	long query_error_from, record_blocks;
	int query_error;
	bool always_busy, count_globally, faults, traced, crash;
	unsigned queue;			/* entries of a stream's queue, 0: no limit */
	int64_t event_grain, bracket_busy, bracket_idle, bracket_empty, copy_busy, copy_idle;
	int64_t synced_until;		/* for always_busy */
	long launches;			/* kept only when count_globally */
};
extern struct sim_device dev;
extern unsigned simcuda_gone;		/* in stubs.S; the magic value once the exit handler ran */

CUresult dev__not_ready(const char *entry);
CUresult dev__fault(const char *entry);
void dev__stale(void);			/* a stale handle: SIGSEGV with STANDIN_CRASH */
CUresult dev__sticky_error(void);	/* the error of STANDIN_QUERY_ERROR once it is due */
void dev__count_launch(void);
void dev__block_record(void);

static inline int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
void sim__sleep_until(int64_t when);
void sim__nap(void);			/* between two looks at something without a known time */

/* --- slabs (slab.c) --------------------------------------------------------------------------- */
struct slab {
	pthread_mutex_t lock;
	size_t size;
	void *free;
};
#define SLAB(type) { .lock = PTHREAD_MUTEX_INITIALIZER, .size = sizeof(type) }
void *slab__get(struct slab *slab);	/* contents: as the last owner left them, at first zero */
void slab__put(struct slab *slab, void *object);

/* --- threads (thread.c) ----------------------------------------------------------------------- */
struct truth_buffer;
struct thread {
	CUcontext stack[SIM_MAX_STACK];
	int depth;
	int capture_mode;
	int tid;
	CUstream streams;		/* per-thread default streams, by next_own */
	struct truth_buffer *truth;
	uint64_t count[C_NR];
	struct thread *next, **link;	/* all threads that made a call */
};
extern __thread struct thread *thread_self_ __attribute__((tls_model("initial-exec")));
struct thread *thread__make(void);
void thread__forget_all(void);		/* in a forked child */
void thread__totals(uint64_t total[C_NR]);

static inline struct thread *thread__self(void)
{
	return likely(thread_self_) ? thread_self_ : thread__make();
}

static inline void count(struct thread *t, enum sim_counter c)
{
	__atomic_store_n(&t->count[c], t->count[c] + 1, __ATOMIC_RELAXED);
}

/* --- contexts (context.c) --------------------------------------------------------------------- */
struct CUctx_st {
	unsigned magic;
	unsigned generation;		/* raised by destroy and reset: older objects are dead */
	int device, primary, refs;
	bool ending;			/* with STANDIN_CRASH: whoever asks now, crashes */
	int asking;
	unsigned id;
	pthread_mutex_t lock;		/* of the legacy stream and all blocking streams */
	bool lock_ready;
	CUstream legacy;
	int64_t blocking_end;		/* end of the work of blocking streams, under the lock */
	int64_t any_end;		/* of all streams; atomic maximum */
	int held;			/* streams with work of unknown end */
};

static inline bool ctx__alive(CUcontext c, unsigned generation)
{
	return c->magic == M_CTX && c->generation == generation;
}
CUresult ctx__current(struct thread *t, CUcontext *c);

/* --- streams (stream.c, queue.c) -------------------------------------------------------------- */
enum { STREAM_PLAIN, STREAM_LEGACY, STREAM_PER_THREAD };

struct queue_item;
struct CUstream_st {
	unsigned magic, flags;
	int kind, priority;
	CUcontext ctx;
	unsigned generation;
	unsigned long long id;
	pthread_mutex_t own;
	bool own_ready;
	pthread_mutex_t *lock;		/* &own or the context's */
	int64_t end;			/* end of all work whose time is known; SIM_NONE: no work */
	int64_t pdl_from;		/* start of the last launch, if it is the last thing */
	CUevent open;			/* recorded after the last work, wait for the next */
	int64_t *ring;			/* ends of work that still takes a queue entry */
	unsigned ring_head, ring_count;
	struct queue_item *first, **last;	/* work of unknown time */
	unsigned queued, slots;		/* items; the queue entries they take */
	bool destroyed, listed;
	struct capture *capture;	/* under the capture lock, as all below */
	CUgraphNode *tail;		/* what the next captured node depends on */
	size_t tail_count, tail_room;
	CUstream next_in_capture;
	CUstream next_own;
	CUstream next_held;		/* under the device thread's lock */
};

struct work {
	int64_t ns;
	bool kernel, pdl, copy;
	int64_t start, end;		/* set when it is placed */
};

CUresult stream__resolve(struct thread *t, CUstream handle, bool ptsz, CUstream *s);
bool stream__blocking(const struct CUstream_st *s);
void stream__reclaim(CUstream s);	/* a destroyed one whose work is done */
CUstream stream__new(CUcontext c, int kind, unsigned flags);
void stream__free(CUstream s);
void stream__reserve(CUstream s, unsigned entries);	/* waits for queue entries, locks */
void stream__unlock(CUstream s);
/* All below: lock held. */
void stream__place(CUstream s, struct work *w, int64_t now);	/* not to begin before now */
int64_t stream__base(CUstream s);	/* end of all that work put in now comes after */
void stream__close_events(CUstream s, int64_t start);
void stream__took_entry(CUstream s, int64_t end);
CUresult stream__wait_done(CUstream s);	/* not locked */
bool stream__idle(CUstream s);		/* not locked */
void ctx__wait_done(CUcontext c);

/* Work of unknown time: everything behind a wait for a value or a host function. */
struct truth_line;
enum item_kind {
	I_WORK, I_RECORD, I_RECORD_UNTIMED, I_MARK, I_WAIT_MARK, I_WAIT_VALUE, I_WRITE_VALUE,
	I_HOST,
};

struct mark {				/* a point of one stream that another one waits for */
	int64_t when;			/* SIM_NEVER: not reached */
	int refs;
};

struct queue_item {
	struct queue_item *next;
	enum item_kind kind;
	struct work work;
	int64_t enqueued;
	CUevent event;
	uint64_t event_seq;
	struct mark *mark;
	volatile unsigned *address;
	unsigned value, flags;
	CUhostFn function;
	void *arg;
	int phase;			/* of a host function: 0 waiting, 1 running, 2 done */
	struct truth_line *truth;
};

struct queue_item *queue__push(CUstream s, enum item_kind kind);
struct mark *queue__mark(CUstream s);	/* reached when all that is queued now is done */
void queue__wait_for(CUstream s, struct mark *m);	/* takes over the reference */
bool queue__holds(CUstream s);		/* would work put in now come after any of unknown time? */
bool queue__holds_below(CUstream s);	/* also in the streams that the legacy stream waits for */
struct mark *queue__mark_event(CUevent e);	/* NULL: its time is known; no lock held */
void queue__advance(CUstream s);
struct mark *mark__new(int64_t when);
void mark__put(struct mark *m);

/* --- events (event.c) ------------------------------------------------------------------------- */
struct CUevent_st {
	unsigned magic, flags;
	CUcontext ctx;
	unsigned generation;
	uint64_t seq;			/* raised by each record and by destroy */
	uint64_t capture_id;		/* last recorded in that capture, 0: not in one */
	bool recorded, idle, copy;	/* copy: the work behind it is one */
	int64_t when;			/* reached; SIM_NEVER: not known yet */
	int64_t before;			/* start of the work behind it, SIM_NONE: there is none */
	int64_t after;			/* end of the work before it */
	unsigned long long stream_id;
	CUstream pending;		/* where it is queued while its time is not known */
	CUstream stream;		/* in whose open list it is, NULL: in none */
	CUevent next;
	CUgraphNode *tail;		/* recorded in a capture: what came before it */
	size_t tail_count;
};
CUresult event__check(CUevent e);
void event__place(CUevent e, CUstream s, int64_t when, bool idle);	/* stream lock held */
void event__unlink(CUevent e);
void event__set(CUevent e, int64_t when);	/* recorded, by something else than a stream */

/* --- capture (capture.c) ---------------------------------------------------------------------- */
struct capture {
	struct capture *next;
	uint64_t id;
	CUstream origin, streams;
	CUgraph graph;
	size_t first_node;		/* a graph given by the caller may have nodes already */
	bool own_graph, dead;
	int mode, tid;
};
extern struct capture *captures;
static inline bool capture__any(void) { return load(&captures) != NULL; }
void capture__lock(void);
void capture__unlock(void);
/*
 * Puts a node into the capture that the stream is in. *node is set and the capture lock held when
 * there is one; otherwise the work is to be done now, or an error came back.
 */
CUresult capture__node(CUstream s, int type, CUgraphNode *node);
/* The rule for calls that could wait: 900, and captures die, unless the thread's mode allows it. */
CUresult capture__unsafe(struct thread *t);
CUresult capture__stream_used(CUstream s, struct thread *t);	/* a query or wait on that stream */
CUresult capture__ctx_waits(CUcontext c);
CUresult capture__event_used(CUevent e, struct thread *t);
CUresult capture__record(CUevent e, CUstream s, bool external, bool *done);
CUresult capture__wait(CUstream s, CUevent e, bool external, bool *done);
/* 906 if it is the legacy stream and a blocking one captures; that capture is dead then. */
CUresult capture__legacy_used(CUstream s);
void capture__forget_stream(CUstream s);

/* --- memory (memory.c, shapes.c, arrays.c, pointers.c) ---------------------------------------- */
/* One call that copies or sets: what it is, and where. */
struct op {
	const char *entry;
	const char *kind;		/* for the truth */
	size_t bytes;
	CUstream stream;
	bool ptsz, async;
};
/* Takes its place in the stream; *done: it has become a node instead. */
CUresult copy__occupy(const struct op *op, CUstream *s, bool *done);
CUresult copy__finish(CUstream s, bool async);
enum place { OF_HOST, OF_DEVICE, OF_ARRAY };
enum place copy__place(const void *p);
const char *copy__name(enum place from, enum place to);
struct CUarray_st {
	unsigned magic;
	CUarrayShape shape;
	size_t element;			/* bytes of one */
	char *data;
};
static inline bool array__alive(CUarray a)
{
	return a && a->magic == M_ARRAY;
}
enum sim_memory { MEMORY_UNKNOWN = 0, MEMORY_PINNED = 1, MEMORY_DEVICE = 2 };	/* as CUmemorytype */
void *memory__allocate(size_t n, enum sim_memory type);
void memory__free(void *p);
enum sim_memory memory__type(const void *p);

/* --- modules (module.c) ----------------------------------------------------------------------- */
enum { SPIN_NO, SPIN, SPIN_AND_TELL };	/* `spin`: does its first parameter say how long it runs? */
struct sizes {
	int registers, shared;
};
struct CUfunc_st {
	unsigned magic, spin;
	char *name;			/* at +8 as in the driver */
	CUmodule module;
	CUcontext ctx;
	unsigned generation;
	unsigned block[3], shared;	/* for cuLaunch and its relatives */
	uint64_t param;
	struct sizes sizes;
};
struct CUkern_st {
	unsigned magic, spin;
	char *name;
	CUlibrary library;
	struct sizes sizes;
};
CUresult sizes__attribute(const struct sizes *s, int attribute, int *value);
/* What a launch needs of a function or kernel handle. */
struct launchable {
	const char *name;		/* NULL: a kernel without a name */
	unsigned spin;
	CUfunction function;		/* one of the two */
	CUkernel kernel;
};
CUresult func__look(CUfunction f, CUcontext c, struct launchable *l);
/* The kernel of these is still there, and has that name. */
bool func__is(const CUkernelNodeParams *p, const char *name);
int64_t func__length(const struct launchable *l, void **params, void **extra);
/* A kernel that tells its own times has run. */
void func__tell(const struct launchable *l, void **params, int64_t start, int64_t end);

/* --- graphs (graph.c, graph_exec.c) ------------------------------------------------------------------- */
struct CUgraphNode_st {
	unsigned magic;
	int type;
	CUkernelNodeParams params;
	int64_t ns, start;		/* start: offset in the graph, set at instantiation */
	int64_t full_ns;		/* what it takes unless it is off */
	bool off;			/* in an executable graph */
	char *name;			/* of a kernel, which may be unloaded; its own */
	CUgraph child;
	CUevent event;
	CUgraphNode *deps;
	size_t dep_count;
	size_t index;			/* in its graph */
};
struct CUgraph_st {
	unsigned magic;
	size_t count, room;
	CUgraphNode *nodes;
};
struct CUgraphExec_st {
	unsigned magic;
	CUgraph graph;
	int64_t ns, busy_until;
};
CUgraph graph__new(void);
CUgraph graph__copy(CUgraph g);
CUresult graph__check(CUgraph g);
/* What a kernel's node runs from now on. */
CUresult node__set_kernel(CUgraphNode n, const CUkernelNodeParams *p);
void node__set_name(CUgraphNode n, const char *name);
void graph__free(CUgraph g);
CUgraphNode graph__add(CUgraph g, int type, const CUgraphNode *deps, size_t count);

/* --- truth, trace, statistics (trace.c) ------------------------------------------------------- */
struct truth_line {
	const char *entry;
	const char *copy;		/* what a copy or set is: "memcpy_HtoD"; NULL: it is a launch */
	size_t bytes;			/* of that */
	bool kernel;			/* else a graph */
	const char *name;
	size_t nodes;
	unsigned dim[6], shared;
	CUstream stream;		/* as passed */
	unsigned ctx_id;
	int tid;
	char *owned;			/* the name, if it could go before the line is written */
};
extern bool truth_on, copies_on;
void trace__open(void);
void trace__write(struct thread *t, const struct truth_line *l, int64_t start, int64_t end);
void trace__graph(struct thread *t, CUgraph g);	/* is launched */
void trace__flush(struct thread *t);	/* before a wait: the buffer gets to the file */
void trace__waited(int64_t begun);	/* after one */
void trace__thread_ends(struct thread *t);
void trace__finish(void);
void trace__forget(void);			/* in a forked child */
CUresult trace__call(const char *entry, CUresult r);
/* The error log: called by the stubs with a result that is logged. */
void simcuda_log_result(const char *entry, CUresult r);
void sim__log(const char *text);
const char *sim__error_name(CUresult r);	/* NULL: none known */

/* --- one entry -------------------------------------------------------------------------------- */
/*
 * The work behind the stub of `name`. The check against the prototype matters: the stub passes on
 * registers and stack as the prototype says.
 */
#define API(name, ...)                                                                            \
	CUresult sim_##name(__VA_ARGS__);                                                         \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&sim_##name), __typeof__(&name)),  \
		       #name);                                                                    \
	CUresult sim_##name(__VA_ARGS__)

#define RET(result)                                                                               \
	do {                                                                                      \
		CUresult result_ = (result);                                                      \
		return unlikely(dev.traced) ? trace__call(__func__ + 4, result_) : result_;       \
	} while (0)

/* Measured: in a forked child these few calls answer 0, though nothing good can come of them. */
#define ENTER_IN_CHILD_TOO()                                                                      \
	do {                                                                                      \
		if (unlikely(dev.state == SIM_FORKED)) {                                          \
			count(thread__self(), C_after_fork);                                      \
			RET(CU_OK);                                                               \
		}                                                                                 \
		ENTER();                                                                          \
	} while (0)

#define ENTER()                                                                                   \
	do {                                                                                      \
		if (unlikely(dev.state != SIM_READY || dev.faults)) {                             \
			CUresult refused_ = dev__not_ready(__func__ + 4);                         \
			if (refused_)                                                             \
				RET(refused_);                                                    \
		}                                                                                 \
	} while (0)

#endif
