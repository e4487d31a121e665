// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "gpu_timing/library/keeper.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gpu_timing/library/harvest.h"
#include "gpu_timing/library/libc.h"
#include "gpu_timing/library/segment.h"
#include "gpu_timing/library/session.h"

#define MS 1000000ull
#define SILENCE_NS (2000 * MS)
#define ARRIVAL_NS (5000 * MS)
#define TICK_SHORT_NS (2 * MS)
#define TICK_LONG_NS (16 * MS)
#define TICK_IDLE_NS (50 * MS)
#define TICK_BEFORE_NS (250 * MS)
#define RELEASE_WAIT_NS (2000 * MS)
#define STACK_SIZE (256u << 10)
#define LARGE_STACK_SIZE (4u << 20)

/* In guard.keeper: bit 0 the thread lives, above it how many sessions were asked for. */
#define LIVES 1u
#define REQUEST 2u

static uint32_t *keeper_word(void)
{
	return &lib.memory->guard.keeper;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / 1000000000ull),
			      .tv_nsec = (long)(ns % 1000000000ull) };

	nanosleep(&t, NULL);
}

struct life {
	uint32_t word;		/* guard.keeper when the session began */
	uint64_t beat;		/* last value seen */
	bool met;		/* there was a new one */
	uint64_t collector;	/* who was at work then */
	uint64_t silent;	/* ns without a new one */
	uint64_t last;
};

static struct life begin_life(uint32_t word)
{
	return (struct life){
		.word = word,
		.beat = lib.memory->guard.beat,
		.collector = load_acquire(&lib.segment->collector),
		.last = clock__ns(),
	};
}

/*
 * The collector's clock may be another (time namespaces), and both sides may have been stopped
 * together: so only changes count, and a long gap between two looks counts as one short one.
 */
static enum channel_reason look_for_life(struct life *life)
{
	uint64_t beat = load_acquire(&lib.segment->heartbeat), now = clock__ns();
	uint64_t gap = now - life->last;

	life->last = now;
	if (load_acquire(keeper_word()) != life->word)
		return REASON_SUPERSEDED;
	if (load_acquire(&lib.segment->command) == CHANNEL_STOP)
		return REASON_STOPPED;
	if (beat != life->beat) {
		life->beat = beat;
		life->met = true;
		life->collector = load_acquire(&lib.segment->collector);
		life->silent = 0;
		return REASON_NONE;
	}
	life->silent += gap < 2 * TICK_BEFORE_NS ? gap : 2 * TICK_BEFORE_NS;
	if (!life->met)
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

/* Until the session is to end: why. */
static enum channel_reason watch(struct life *life)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	const struct guard *g = &lib.memory->guard;
	uint64_t tick = TICK_BEFORE_NS;
	uint64_t before = 0, left;
	bool ready = false;

	for (;;) {
		uint32_t seen = load_acquire(&lib.segment->wake);
		enum channel_reason reason = look_for_life(life);

		if (reason)
			return reason;
		/* No call into the driver before the program itself has launched. */
		if (load_acquire(&lib.segment->state) == CHANNEL_RUNNING &&
		    !load_acquire(&g->quiet)) {
			if (!ready) {
				lib.driver.exchange_mode(&mode);
				segment__populate(lib.segment);
			}
			ready = true;
			left = harvest__all();
			tick = next_tick(tick, before, left);
			before = left;
			thread__reclaim();
			strata__count_threads();
		}
		wait_for_wake(seen, tick);
	}
}

static void end(struct life *life, enum channel_reason reason)
{
	uint64_t deadline = clock__ns() + RELEASE_WAIT_NS;
	uint64_t gone = life->collector;

	if (!session__retire(reason))
		return;
	if (reason == REASON_SILENT || reason == REASON_NO_COLLECTOR)
		__atomic_compare_exchange_n(&lib.segment->collector, &gone, 0ull, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	while (reason == REASON_STOPPED && load_acquire(keeper_word()) == life->word &&
	       load_acquire(&lib.segment->tail) != load_relaxed(&lib.segment->head) &&
	       clock__ns() < deadline)
		sleep_ns(5 * MS);
	segment__release(lib.segment);
}

/* Nothing is touched before somebody is there to see it. */
static enum channel_reason wait_for_collector(struct life *life)
{
	for (;;) {
		uint32_t seen = load_acquire(&lib.segment->wake);
		enum channel_reason reason = look_for_life(life);

		if (reason || life->met)
			return reason;
		wait_for_wake(seen, TICK_SHORT_NS);
	}
}

static void serve(uint32_t word)
{
	enum channel_reason reason;
	struct life life;
	uint32_t detail;

	reason = session__begin(NULL, &detail);
	life = begin_life(word);
	session__publish(reason ? CHANNEL_REFUSED : CHANNEL_STARTING, reason, detail);
	if (reason)
		return;
	reason = wait_for_collector(&life);
	if (session__is_over())
		reason = REASON_EXIT;
	if (!reason) {
		reason = session__arm(&detail);
		if (reason) {
			session__refuse(reason, detail);
			return;
		}
		reason = watch(&life);
	}
	end(&life, reason);
}

static void serve_armed(uint32_t word)
{
	struct life life = begin_life(word);

	end(&life, watch(&life));
}

/*
 * A new thread has what the one had that it comes from, which may be bound to one CPU, or have a
 * priority that no guest should have: it gets what the program's first thread has, but is no real-time
 * one. What isn't allowed stays as it is.
 */
static void settle(void)
{
	const struct sched_param plain = { 0 };
	int policy = sched_getscheduler(getpid()), nice;
	cpu_set_t first, own;

	if (policy != SCHED_BATCH && policy != SCHED_IDLE)
		policy = SCHED_OTHER;
	if (sched_getscheduler(0) != policy)
		sched_setscheduler(0, policy, &plain);
	errno = 0;
	nice = getpriority(PRIO_PROCESS, (id_t)getpid());
	if (!errno && nice != getpriority(PRIO_PROCESS, 0))
		setpriority(PRIO_PROCESS, 0, nice);
	if (sched_getaffinity(getpid(), sizeof(first), &first) || sched_getaffinity(0, sizeof(own), &own))
		return;
	/* That one may be bound, too. */
	CPU_OR(&first, &first, &own);
	if (!CPU_EQUAL(&first, &own))
		sched_setaffinity(0, sizeof(first), &first);
}

static void *keep(void *arg)
{
	bool armed = arg != NULL;
	uint32_t word;

	prctl(PR_SET_NAME, "gpucollect");
	fp__save();	/* it has that of the thread that it comes from */
	/* With a filter of system calls over it nobody attaches, but a driver may load us. */
	if (!armed)
		settle();
	do {
		word = load_acquire(keeper_word());
		if (armed)
			serve_armed(word);
		else
			serve(word);
		armed = false;
		/* Unless another session was asked for meanwhile. */
	} while (!__atomic_compare_exchange_n(keeper_word(), &word, word & ~LIVES, false,
					      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	thread__leave();
	return NULL;
}

static int start(void *armed)
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
	err = pthread_create(&thread, &attr, keep, armed);
	if (err == EINVAL) {
		/* The program's thread-local data alone are larger than such a stack. */
		pthread_attr_setstacksize(&attr, LARGE_STACK_SIZE);
		err = pthread_create(&thread, &attr, keep, armed);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}

int keeper__start_armed(void)
{
	int err;

	store_release(keeper_word(), LIVES);
	err = start(&lib);
	if (err)
		store_release(keeper_word(), 0u);
	return err;
}

int keeper__request(void)
{
	uint32_t word = __atomic_load_n(keeper_word(), __ATOMIC_ACQUIRE);
	int err;

	while (!__atomic_compare_exchange_n(keeper_word(), &word, (word + REQUEST) | LIVES, false,
					    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		;
	if (word & LIVES) {
		keeper__wake();
		return 0;
	}
	err = start(NULL);
	if (err)
		__atomic_and_fetch(keeper_word(), ~LIVES, __ATOMIC_RELEASE);
	return err;
}

void keeper__wake(void)
{
	__atomic_add_fetch(&lib.segment->wake, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &lib.segment->wake, FUTEX_WAKE, 1, NULL, NULL, 0);
}
