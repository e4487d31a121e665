/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The guest library's state. All of it was allocated before the first launch: a sealed segment
 * that the collector sees too (channel.h) and one private mapping, struct memory. The private one
 * is wiped in a forked child, so that a child reads `active` as 0 and every hook passes through:
 * that is the whole fork handling, and it needs no handler.
 *
 * Rules on the launch path: no malloc, no stdio, no lock that another thread could hold across a
 * driver call, errno as the driver left it.
 */
#ifndef LIBRARY_LIBRARY_H
#define LIBRARY_LIBRARY_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu_timing/channel.h"
#include "gpu_timing/library/captures.h"
#include "gpu_timing/library/context.h"
#include "gpu_timing/library/driver.h"
#include "gpu_timing/library/graphs.h"
#include "gpu_timing/library/names.h"
#include "gpu_timing/library/strata.h"
#include "gpu_timing/library/run.h"
#include "gpu_timing/library/stream.h"
#include "gpu_timing/library/thread.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define load_relaxed(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define load_acquire(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define store_relaxed(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)

/* Spreads handles, which are addresses, over a table. */
static inline uint64_t hash__mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	return x ^ x >> 29;
}

struct guard {
	uint32_t owner;		/* 1 in the process that we came into, 0 in a forked child */
	uint32_t active;	/* 1 while hooks do more than pass through */
	uint32_t quiet;		/* 1: nobody asks the driver about brackets */
	uint32_t session;	/* number of the one at work or, after it, of the last */
	uint32_t open;		/* that number while it takes records, else 0 (session.h) */
	uint32_t inside;	/* threads inside it that have no element of their own */
	uint32_t retiring;	/* set by the one who ends it */
	uint32_t keeper;	/* sessions asked for, and whether the thread lives (keeper.c) */
	uint64_t beat;		/* the collector's heartbeat as it was when the session began */
};

struct memory {
	struct guard guard __attribute__((aligned(4096)));
	struct thread_table threads __attribute__((aligned(4096)));
	struct context_table contexts __attribute__((aligned(4096)));
	struct stream_table streams __attribute__((aligned(4096)));
	struct name_table names __attribute__((aligned(4096)));
	struct strata strata __attribute__((aligned(4096)));
	struct graph_table graphs __attribute__((aligned(4096)));
	struct capture_table captures __attribute__((aligned(4096)));
	struct {
		uint32_t open;		/* brackets that are (crowd.h), but for those around runs */
		uint32_t runs;		/* about how many of these are (run.h): every launch has a look */
	} crowd __attribute__((aligned(64)));
	struct run_table runs __attribute__((aligned(4096)));
};

struct library {
	struct memory *memory;
	struct channel_segment *segment;
	struct driver driver;
	/* What the slots held before us: set before a hook can be called. */
	void *original[NR_CHANNEL_SLOTS];
};

extern struct library lib __attribute__((visibility("hidden")));

/* site.S; the contract is in channel.h. */
void gpucollect_site_nop1(uint64_t id, const void *launch);
void gpucollect_site_nop5(uint64_t id, const void *launch);

uint64_t clock__ns(void);	/* CLOCK_MONOTONIC */

/*
 * The program's floating-point control: it may have inexact results trapped, and reads its sticky flags.
 * Between the two nothing is trapped, after them all is as before.
 */
#define FP_DEFAULT 0x1f80u	/* MXCSR as a program begins with */
static inline uint32_t fp__save(void)
{
	uint32_t was = __builtin_ia32_stmxcsr();

	__builtin_ia32_ldmxcsr(FP_DEFAULT);
	return was;
}

static inline void fp__restore(uint32_t was)
{
	__builtin_ia32_ldmxcsr(was);
}

/*
 * As long as anybody may ask the driver about brackets, which is longer than launches are looked
 * at, and only in the process itself, not in a forked child.
 */
static inline bool library__is_active(void)
{
	return load_relaxed(&lib.memory->guard.owner) && !load_relaxed(&lib.memory->guard.quiet);
}

/* The hook for a slot: hooks.c, upkeep.c, waits.c, holds.c, copies.c, shapes.c, graph_hooks.c, captures.c. */
void *hook__of(uint32_t slot);
void *hook__launch(uint32_t slot);
void *hook__upkeep(uint32_t slot);
void *hook__wait(uint32_t slot);
void *hook__hold(uint32_t slot);
void *hook__copy(uint32_t slot);
void *hook__order(uint32_t slot);	/* holds.c */
void *hook__shape(uint32_t slot);
void *hook__graph(uint32_t slot);
void *hook__capture(uint32_t slot);

#endif
