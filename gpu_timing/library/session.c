// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "gpu_timing/library/session.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "gpu_timing/library/attach.h"
#include "gpu_timing/library/harvest.h"
#include "gpu_timing/library/keeper.h"
#include "gpu_timing/library/segment.h"
#include "gpu_timing/library/slot.h"

#define MS 1000000ull
#define EXIT_WAIT_NS (100 * MS)
#define STOP_WAIT_NS (200 * MS)
#define QUIET_WAIT_NS (1000 * MS)
#define INSIDE_WAIT_NS (1000 * MS)

struct library lib __attribute__((visibility("hidden")));

static int segment_fd = -1;
static uint32_t exiting;	/* the program's exit handlers have begun */

static int make_memory(struct memory **memory)
{
	struct memory *m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (m == MAP_FAILED)
		return -errno;
	/* In a forked child all of it reads as 0: not active. No other way sees every fork. */
	if (madvise(m, sizeof(*m), MADV_WIPEONFORK)) {
		int err = -errno;

		munmap(m, sizeof(*m));
		return err;
	}
	thread__init(&m->threads);
	m->names.epoch = 1;
	m->guard.quiet = 1;
	m->guard.retiring = 1;
	*memory = m;
	return 0;
}

/*
 * A forked child has our code and our hooks in its slots, but its memory was wiped and its segment
 * is its parent's: it gets both anew, and what it inherited stays where it is, since a thread may
 * have forked inside a hook.
 */
int session__open(void)
{
	struct channel_segment *segment;
	struct memory *memory = lib.memory;
	int fd, err;

	if (memory && memory->guard.owner)
		return 0;
	err = make_memory(&memory);
	if (err)
		return err;
	fd = segment__create(&segment);
	if (fd < 0) {
		munmap(memory, sizeof(*memory));
		return fd;
	}
	memory->guard.owner = 1;
	segment_fd = fd;
	lib.segment = segment;
	store_release(&lib.memory, memory);
	identity__set(&memory->guard.owner, fd, 0);
	return 0;
}

static void sleep_ns(long ns)
{
	struct timespec t = { .tv_nsec = ns };

	nanosleep(&t, NULL);
}

static bool all_outside(uint32_t *tid)
{
	uint64_t deadline = clock__ns() + INSIDE_WAIT_NS;

	while (thread__any_inside(tid)) {
		if (clock__ns() > deadline)
			return false;
		sleep_ns(MS / 20);
	}
	return true;
}

bool session__is_hidden(void)
{
	struct guard *g = &lib.memory->guard;

	return !load_acquire(&g->retiring) && load_acquire(&lib.segment->collector) &&
	       !segment__is_at(segment_fd);
}

enum channel_reason session__begin(const void *caller, uint32_t *detail)
{
	struct guard *g = &lib.memory->guard;
	enum channel_reason reason;
	bool empty;

	*detail = 0;
	if (!segment__is_at(segment_fd)) {
		segment_fd = segment__renew(lib.segment);
		if (segment_fd < 0) {
			*detail = (uint32_t)-segment_fd;
			return REASON_NO_MEMORY;
		}
		identity__set(&g->owner, segment_fd, g->session);
	}
	g->session = lib.segment->session + 1;
	empty = all_outside(detail);
	segment__begin(lib.segment, g->session, empty);
	/* After that: who is still in the session before gives no sign of life any more. */
	g->beat = load_acquire(&lib.segment->heartbeat);
	if (!empty)
		return REASON_STRAGGLER;
	name__begin();
	graphs__begin();
	captures__begin();
	stream__retire_all();
	context__begin();
	strata__begin();
	run__begin();
	if (load_acquire(&exiting))
		return REASON_EXITING;
	reason = driver__find(&lib.driver, caller);
	if (!reason)
		reason = slot__prepare(detail);
	if (reason)
		return reason;
	__atomic_store_n(&g->open, g->session, __ATOMIC_SEQ_CST);
	store_release(&g->retiring, 0u);
	return REASON_NONE;
}

static void close_session(void)
{
	uint32_t tid;

	__atomic_store_n(&lib.memory->guard.open, 0u, __ATOMIC_SEQ_CST);
	/* Who is still in then is waited for once more when the next one begins. */
	all_outside(&tid);
}

enum channel_reason session__arm(uint32_t *detail)
{
	struct guard *g = &lib.memory->guard;
	enum channel_reason reason = slot__arm(detail);

	if (reason)
		return reason;
	graphs__armed();
	captures__armed();
	/* Hooks of what ends contexts and streams first: launches make us know some. */
	__atomic_store_n(&g->quiet, 0u, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&exiting, __ATOMIC_SEQ_CST))
		__atomic_store_n(&g->quiet, 1u, __ATOMIC_SEQ_CST);
	store_release(&lib.segment->state, (uint32_t)CHANNEL_ARMED);
	__atomic_store_n(&g->active, 1u, __ATOMIC_SEQ_CST);
	return REASON_NONE;
}

void session__publish(enum channel_state state, enum channel_reason reason, uint32_t detail)
{
	store_relaxed(&lib.segment->reason, (uint32_t)reason);
	store_relaxed(&lib.segment->detail, reason ? detail : 0);
	segment__publish(lib.segment, state);
	identity__count(lib.memory->guard.session);
	gpucollect_site_nop1(0, (void *)(intptr_t)segment_fd);
}

void session__refuse(enum channel_reason reason, uint32_t detail)
{
	close_session();
	store_relaxed(&lib.segment->reason, (uint32_t)reason);
	store_relaxed(&lib.segment->detail, detail);
	store_release(&lib.segment->state, (uint32_t)CHANNEL_REFUSED);
}

static bool quiet(void)
{
	return load_acquire(&lib.memory->guard.quiet);
}

static void harvest_until(uint64_t wait)
{
	uint64_t deadline = clock__ns() + wait;

	while (harvest__all() && !quiet() && clock__ns() < deadline)
		sleep_ns(MS / 5);
}

static void last_of_stream(struct stream *s, void *ctx)
{
	const uint64_t *deadline = ctx;

	harvest__last(s, *deadline);
}

/*
 * Every question to the driver is asked under its stream's lock: once these have been taken after
 * `quiet` was set, nobody is inside one. At exit that must be so before the driver's own handler,
 * and before the slots are restored, since from then on contexts go without our seeing it.
 */
static void be_quiet(void)
{
	uint64_t deadline = clock__ns() + QUIET_WAIT_NS;

	__atomic_store_n(&lib.memory->guard.quiet, 1u, __ATOMIC_SEQ_CST);
	stream__each(last_of_stream, &deadline);
}

static bool retire_first(void)
{
	return !__atomic_exchange_n(&lib.memory->guard.retiring, 1u, __ATOMIC_ACQ_REL);
}

bool session__is_over(void)
{
	return load_acquire(&lib.memory->guard.retiring);
}

bool session__retire(enum channel_reason reason)
{
	if (!retire_first())
		return false;
	__atomic_store_n(&lib.memory->guard.active, 0u, __ATOMIC_SEQ_CST);
	run__void_all(CAUSE_NO_END);
	if (reason == REASON_STOPPED)
		harvest_until(STOP_WAIT_NS);
	be_quiet();
	slot__restore();
	close_session();
	store_relaxed(&lib.segment->reason, (uint32_t)reason);
	store_release(&lib.segment->state, (uint32_t)CHANNEL_PASSIVE);
	return true;
}

static void at_exit(void)
{
	uint64_t deadline;
	struct guard *g = &lib.memory->guard;

	/* A forked child has inherited the handler. */
	if (!load_relaxed(&g->owner))
		return;
	__atomic_store_n(&exiting, 1u, __ATOMIC_SEQ_CST);
	if (!retire_first()) {
		be_quiet();
		return;
	}
	deadline = clock__ns() + EXIT_WAIT_NS;
	run__void_all(CAUSE_NO_END);
	harvest_until(EXIT_WAIT_NS);
	/* A short program may end before the collector has taken hold of the segment. */
	while (load_acquire(&lib.segment->state) == CHANNEL_RUNNING &&
	       load_acquire(&lib.segment->heartbeat) == g->beat && clock__ns() < deadline)
		sleep_ns(MS / 5);
	be_quiet();
	/* Launches of later handlers are still seen. */
	store_release(&lib.segment->reason, (uint32_t)REASON_EXIT);
}

void session__first_launch(void)
{
	static uint32_t registered;
	uint32_t armed = CHANNEL_ARMED;

	if (!__atomic_compare_exchange_n(&lib.segment->state, &armed, CHANNEL_RUNNING, false,
					 __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		return;
	/* Only handlers registered after cuInit still find a driver that works. */
	if (!__atomic_exchange_n(&registered, 1u, __ATOMIC_RELAXED))
		atexit(at_exit);
	keeper__wake();
}
