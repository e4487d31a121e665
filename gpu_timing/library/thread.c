// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpu_timing/library/launch.h"
#include "gpu_timing/library/library.h"

#define BEING_FREED 0xffffffffu	/* no thread's id */
#define RECLAIM_AT_ONCE 32
#define TRY_AGAIN_NS 100000000ull
#define LOOK_NS 100000000ull
#define MANY_THREADS 64

__thread struct thread *thread_self __attribute__((visibility("hidden")));

void thread__init(struct thread_table *table)
{
	/* Pointers are set when an element is first used: untouched ones cost no memory. */
	table->free = CHANNEL_THREADS - 1;
	table->hint = 1;
}

/* Ids start at the element's number, so that no two threads ever make the same. */
static void prepare(struct thread *t, uint32_t index)
{
	uint32_t nr = load_relaxed(&lib.segment->nr_threads);

	t->counters = &lib.segment->threads[index];
	if (!t->next_id)
		t->next_id = (uint64_t)index << 40;
	t->random = t->next_id + clock__ns();
	t->frame = NULL;
	t->inside = t->open = t->disturbed = 0;
	t->captures = t->in_vain = t->captured = 0;
	t->at = 0;
	store_relaxed(&t->counters->waiting, 0ull);
	while (nr <= index && !__atomic_compare_exchange_n(&lib.segment->nr_threads, &nr,
							   index + 1, true, __ATOMIC_RELEASE,
							   __ATOMIC_RELAXED))
		;
	store_relaxed(&t->counters->tid, t->tid);
	store_relaxed(&t->counters->in_use, 1u);
}

static struct thread *take_free(uint32_t tid)
{
	struct thread_table *table = &lib.memory->threads;
	uint32_t start = load_relaxed(&table->hint);

	for (uint32_t i = 0; i < CHANNEL_THREADS - 1; i++) {
		uint32_t index = 1 + (start + i - 1) % (CHANNEL_THREADS - 1);
		struct thread *t = &table->threads[index];
		uint32_t expected = 0;

		if (load_relaxed(&t->tid) ||
		    !__atomic_compare_exchange_n(&t->tid, &expected, tid, false, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			continue;
		__atomic_sub_fetch(&table->free, 1, __ATOMIC_RELAXED);
		store_relaxed(&table->hint, 1 + index % (CHANNEL_THREADS - 1));
		prepare(t, index);
		return t;
	}
	return NULL;
}

/* Takes the element back if its thread is gone. Anybody may try at the same time. */
static bool reclaim(struct thread *t, pid_t pid)
{
	uint32_t tid = load_acquire(&t->tid);

	if (!tid || tid == BEING_FREED || !syscall(SYS_tgkill, pid, tid, 0) || errno != ESRCH ||
	    !__atomic_compare_exchange_n(&t->tid, &tid, BEING_FREED, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return false;
	if (t->frame)
		launch__abandon(t);
	t->inside = 0;
	store_release(&t->at, 0ull);
	/* The first free ones are taken first: all that were ever in use are gone through now and then. */
	if ((uint32_t)(t - lib.memory->threads.threads) < load_relaxed(&lib.memory->threads.hint))
		store_relaxed(&lib.memory->threads.hint, (uint32_t)(t - lib.memory->threads.threads));
	store_relaxed(&t->counters->in_use, 0u);
	store_release(&t->tid, 0u);
	__atomic_add_fetch(&lib.memory->threads.free, 1, __ATOMIC_RELAXED);
	return true;
}

/* tgkill is a call that a filter may forbid, so it is made only where it is needed. */
static bool reclaim_some(uint32_t nr)
{
	struct thread_table *table = &lib.memory->threads;
	pid_t pid = getpid();
	bool found = false;

	if (load_relaxed(&lib.segment->confined))
		return false;
	while (nr--) {
		uint32_t at = __atomic_fetch_add(&table->looked_at, 1, __ATOMIC_RELAXED);

		found |= reclaim(&table->threads[1 + at % (CHANNEL_THREADS - 1)], pid);
	}
	return found;
}

/* None is free: look for dead ones, but not at every launch if there are none. */
static void reclaim_now(void)
{
	struct thread_table *table = &lib.memory->threads;
	uint64_t now = clock__ns();

	if (now < load_relaxed(&table->try_again))
		return;
	for (uint32_t i = 0; i < CHANNEL_THREADS; i += RECLAIM_AT_ONCE)
		if (reclaim_some(RECLAIM_AT_ONCE))
			return;
	store_relaxed(&table->try_again, now + TRY_AGAIN_NS);
}

/* Who is in the same launch as a moment ago may have ended there: others would take it for under way. */
static void reclaim_stuck(void)
{
	uint32_t nr = load_acquire(&lib.segment->nr_threads);
	pid_t pid = getpid();

	for (uint32_t i = 1; i < nr; i++) {
		struct thread *t = &lib.memory->threads.threads[i];
		uint32_t turn = load_relaxed(&t->turn);

		if (load_relaxed(&t->at) && turn == t->looked)
			reclaim(t, pid);
		t->looked = turn;
	}
}

void thread__reclaim(void)
{
	struct thread_table *table = &lib.memory->threads;
	uint64_t now = clock__ns();

	if (load_relaxed(&lib.segment->confined) || now < table->looked + LOOK_NS)
		return;
	table->looked = now;
	reclaim_stuck();
	if (load_relaxed(&table->free) <= CHANNEL_THREADS / 4)
		reclaim_some(CHANNEL_THREADS - 1);
	else if (load_acquire(&lib.segment->nr_threads) > MANY_THREADS)
		reclaim_some(RECLAIM_AT_ONCE);
}

struct thread *thread__find(void)
{
	struct thread_table *table = &lib.memory->threads;
	struct thread *t = NULL;
	int saved = errno;

	if (!load_relaxed(&table->free))
		reclaim_now();
	/* The shared count takes those that come while all are taken. */
	if (load_relaxed(&table->free))
		t = take_free((uint32_t)syscall(SYS_gettid));
	if (t && thread__is_ours(table, thread_self)) {
		/* A signal handler launched meanwhile and found its own. */
		store_release(&t->tid, 0u);
		__atomic_add_fetch(&table->free, 1, __ATOMIC_RELAXED);
		t = thread_self;
	}
	thread_self = t;
	errno = saved;
	return t;
}

void thread__leave(void)
{
	struct thread *t = thread_self;

	thread_self = NULL;
	if (!thread__is_ours(&lib.memory->threads, t))
		return;
	store_relaxed(&t->counters->in_use, 0u);
	/* The next one gets the same, whose pages are there. */
	store_relaxed(&lib.memory->threads.hint, (uint32_t)(t - lib.memory->threads.threads));
	store_release(&t->tid, 0u);
	__atomic_add_fetch(&lib.memory->threads.free, 1, __ATOMIC_RELAXED);
}

bool thread__any_inside(uint32_t *tid)
{
	uint32_t nr = load_acquire(&lib.segment->nr_threads);

	*tid = 0;
	if (__atomic_load_n(&lib.memory->guard.inside, __ATOMIC_SEQ_CST))
		return true;
	for (uint32_t i = 1; i < nr; i++) {
		struct thread *t = &lib.memory->threads.threads[i];

		if (!__atomic_load_n(&t->inside, __ATOMIC_SEQ_CST) ||
		    (!load_relaxed(&lib.segment->confined) && reclaim(t, getpid())))
			continue;
		*tid = load_relaxed(&t->tid);
		return true;
	}
	return false;
}

void thread__add_shared(size_t offset, uint64_t n)
{
	char *shared = (char *)&lib.segment->threads[0];

	__atomic_add_fetch((uint64_t *)(shared + offset), n, __ATOMIC_RELAXED);
}

uint64_t thread__random(struct thread *t)
{
	/* xorshift64*: the choice which launches are timed must not follow a program's loops. */
	uint64_t x = t->random ? t->random : 0x9e3779b97f4a7c15ull;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	t->random = x;
	return x * 0x2545f4914f6cdd1dull;
}
