// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The library's own thread, and the two ends: on the collector's behalf, and at exit. */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gpu_timing/library/harvest.h"
#include "gpu_timing/library/library.h"
#include "gpu_timing/library/segment.h"
#include "gpu_timing/library/slot.h"

#define MS 1000000ull
#define SILENCE_NS (2000 * MS)
#define ARRIVAL_NS (5000 * MS)
#define TICK_SHORT_NS (2 * MS)
#define TICK_LONG_NS (16 * MS)
#define TICK_IDLE_NS (50 * MS)
#define TICK_BEFORE_NS (250 * MS)
#define EXIT_WAIT_NS (100 * MS)
#define STOP_WAIT_NS (200 * MS)
#define QUIET_WAIT_NS (1000 * MS)
#define RELEASE_WAIT_NS (2000 * MS)
#define STACK_SIZE (256u << 10)
#define LARGE_STACK_SIZE (4u << 20)

enum go { WAIT = 0, GO = 1, DROP = 2 };

static uint32_t go;
static uint32_t retiring;	/* set by the one who ends it all */

static void last_of_stream(struct stream *s, void *ctx)
{
	const uint64_t *deadline = ctx;

	harvest__last(s, *deadline);
}

static void sleep_ns(uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / 1000000000ull),
			      .tv_nsec = (long)(ns % 1000000000ull) };

	nanosleep(&t, NULL);
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
	return !__atomic_exchange_n(&retiring, 1u, __ATOMIC_ACQ_REL);
}


/* Nobody listens any more, or the collector has had enough: the program as it was before. */
static void retire(enum channel_reason reason)
{
	if (!retire_first())
		return;
	__atomic_store_n(&lib.memory->guard.active, 0u, __ATOMIC_SEQ_CST);
	if (reason == REASON_STOPPED)
		harvest_until(STOP_WAIT_NS);
	be_quiet();
	slot__restore();
	store_relaxed(&lib.segment->reason, (uint32_t)reason);
	store_release(&lib.segment->state, CHANNEL_PASSIVE);
	segment__release(lib.segment, reason == REASON_STOPPED ? RELEASE_WAIT_NS : 0);
}

void harvest__at_exit(void)
{
	uint64_t deadline;

	/* A forked child has inherited the handler. */
	if (!load_relaxed(&lib.memory->guard.owner))
		return;
	if (!retire_first()) {
		be_quiet();
		return;
	}
	deadline = clock__ns() + EXIT_WAIT_NS;
	harvest_until(EXIT_WAIT_NS);
	/* A short program may end before the collector has taken hold of the segment. */
	while (!load_acquire(&lib.segment->heartbeat) && clock__ns() < deadline)
		sleep_ns(MS / 5);
	be_quiet();
	/* Launches of later handlers are still seen. */
	store_release(&lib.segment->reason, (uint32_t)REASON_EXIT);
}

struct life {
	uint64_t beat;		/* last value seen */
	uint64_t silent;	/* ns without a new one */
	uint64_t last;
};

/*
 * The collector's clock may be another (time namespaces), and both sides may have been stopped
 * together: so only changes count, and a long gap between two looks counts as one short one.
 */
static enum channel_reason look_for_life(struct life *life)
{
	uint64_t beat = load_acquire(&lib.segment->heartbeat), now = clock__ns();
	uint64_t gap = now - life->last;

	life->last = now;
	if (load_acquire(&lib.segment->command) == CHANNEL_STOP)
		return REASON_STOPPED;
	if (beat != life->beat) {
		life->beat = beat;
		life->silent = 0;
		return REASON_NONE;
	}
	life->silent += gap < 2 * TICK_BEFORE_NS ? gap : 2 * TICK_BEFORE_NS;
	if (!beat)
		return life->silent > ARRIVAL_NS ? REASON_NO_COLLECTOR : REASON_NONE;
	return life->silent > SILENCE_NS ? REASON_SILENT : REASON_NONE;
}

static void wait_for_wake(uint32_t seen, uint64_t ns)
{
	struct timespec t = { .tv_nsec = (long)ns };

	if (syscall(SYS_futex, &lib.segment->wake, FUTEX_WAIT, seen, &t, NULL, 0) &&
	    errno != ETIMEDOUT && errno != EAGAIN && errno != EINTR)
		sleep_ns(ns);
}

/* Short while brackets end, longer while they only wait. */
static uint64_t next_tick(uint64_t tick, uint64_t before, uint64_t left)
{
	if (!left)
		return TICK_IDLE_NS;
	if (left != before)
		return TICK_SHORT_NS;
	return 2 * tick < TICK_LONG_NS ? 2 * tick : TICK_LONG_NS;
}

static void *keep(void *arg)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	struct life life = { .last = clock__ns() };
	uint64_t tick = TICK_BEFORE_NS;
	uint64_t before = 0, left;
	bool relaxed = false;
	uint32_t what, seen;

	(void)arg;
	prctl(PR_SET_NAME, "gpucollect");
	while ((what = load_acquire(&go)) == WAIT)
		syscall(SYS_futex, &go, FUTEX_WAIT_PRIVATE, WAIT, NULL, NULL, 0);
	while (what == GO && load_acquire(&lib.memory->guard.active)) {
		enum channel_reason reason = look_for_life(&life);

		seen = load_acquire(&lib.segment->wake);
		if (reason) {
			retire(reason);
			break;
		}
		/* No call into the driver before the program itself has launched. */
		if (load_acquire(&lib.segment->state) == CHANNEL_RUNNING && !quiet()) {
			if (!relaxed) {
				lib.driver.exchange_mode(&mode);
				segment__populate(lib.segment);
			}
			relaxed = true;
			left = harvest__all();
			tick = next_tick(tick, before, left);
			before = left;
			thread__reclaim();
		}
		if (load_acquire(&lib.segment->command) != CHANNEL_STOP)
			wait_for_wake(seen, tick);
	}
	return NULL;
}

int harvest__start(void)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int err;

	err = pthread_attr_init(&attr);
	if (err)
		return -err;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	/* The program's signals are the program's: this thread must never take one. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, &attr, keep, NULL);
	if (err == EINVAL) {
		/* The program's thread-local data alone are larger than such a stack. */
		pthread_attr_setstacksize(&attr, LARGE_STACK_SIZE);
		err = pthread_create(&thread, &attr, keep, NULL);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}

void harvest__wake(void)
{
	__atomic_add_fetch(&lib.segment->wake, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &lib.segment->wake, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void harvest__go(bool armed)
{
	store_release(&go, armed ? GO : DROP);
	syscall(SYS_futex, &go, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
