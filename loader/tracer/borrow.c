// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/tracer/borrow.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "loader/base/clock.h"
#include "loader/base/fault.h"
#include "loader/base/table.h"
#include "loader/tracer/libc.h"
#include "loader/tracer/refusal.h"
#include "loader/tracer/space.h"
#include "loader/tracer/threads.h"

/* Before all threads are looked at again: those that run are stopped each time. */
#define PAUSE_NS 3000000
#define LONG_PAUSE_NS 200000000

/* Results of a try besides those that end it all. */
enum { TRY_NEXT = 1 };

int borrow__init(struct borrow *b)
{
	remote__init(&b->remote, b->space->pid, b->libc);
	b->before.stack = malloc(SAFETY_MAX_STACK);
	b->now.stack = malloc(SAFETY_MAX_STACK);
	return b->before.stack && b->now.stack ? 0 : -ENOMEM;
}

void borrow__free(struct borrow *b)
{
	free(b->before.stack);
	free(b->now.stack);
	table__free(b->refused);
}

static bool is_cancelled(const struct borrow *b)
{
	return __atomic_load_n(b->cancelled, __ATOMIC_ACQUIRE);
}

/* --- one thread ----------------------------------------------------------------------------- */

static uint64_t place_of(const struct thread_choice *c)
{
	return hash__mix(c->sp) ^ c->pc;
}

static bool was_refused(const struct borrow *b, const struct thread_choice *c)
{
	uint64_t place;

	return c->kind != THREAD_RUNNING && table__get(b->refused, (uint64_t)c->tid, &place) &&
	       place == place_of(c);
}

static int note_refused(struct borrow *b, const struct thread_choice *c)
{
	if (c->kind != THREAD_RUNNING && table__set(b->refused, (uint64_t)c->tid, place_of(c)))
		return -ENOMEM;
	return TRY_NEXT;
}

/* Copies what the stopped thread was doing: 0, -EAGAIN and why, -ENOENT, … */
static int copy_look(struct borrow *b, struct safety_look *look)
{
	int err;

	look->regs = b->remote.regs;
	err = safety__stack(b->space, look, b->why);
	if (!err)
		err = space__peek(b->space->pid, look->start, look->stack, look->len);
	if (err == -ETIMEDOUT)
		snprintf(b->why, sizeof(b->why), "memory of its stack does not answer");
	return err;
}

static bool is_same(const struct safety_look *a, const struct safety_look *b)
{
	return a->start == b->start && a->len == b->len &&
	       !memcmp(&a->regs, &b->regs, sizeof(a->regs)) &&
	       !memcmp(a->stack, b->stack, a->len);
}

/* 0, or what it means for the search that the thread can't be stopped. */
static int stop(struct borrow *b, const struct thread_choice *c)
{
	int err = remote__stop(&b->remote, c->tid);

	b->stops++;
	if (err == -EAGAIN)
		snprintf(b->why, sizeof(b->why), "the process is stopped by a signal");
	/* It is also what one gets of a thread that is ending, or traced since the look at it. */
	if (err == -EPERM && !refusal__thread(b->space->pid, c->tid, b->why, sizeof(b->why))) {
		snprintf(b->why, sizeof(b->why), "tracing it is forbidden: sysctl kernel.yama.ptrace_scope "
			 "must be less than 3, and a container's seccomp profile must allow ptrace");
		b->forbidden++;
	}
	return err == -ESRCH || err == -EPERM ? TRY_NEXT : err;
}

/*
 * The first stop only copies: its stack is judged at leisure, which also reads the unwind
 * information that the second will need.
 */
static int look_first(struct borrow *b, const struct thread_choice *c)
{
	int err = stop(b, c);

	if (err)
		return err;
	err = copy_look(b, &b->before);
	remote__release(&b->remote);
	FAULT_POINT("trace-looked");
	if (err == -ENOENT) {		/* a new thread, or a new stack */
		err = space__refresh(b->space);
		return err ? err : TRY_NEXT;
	}
	if (!err)
		err = safety__judge(b->safety, &b->before, b->why);
	return err ? note_refused(b, c) : 0;
}

static int take(struct borrow *b, const struct thread_choice *c)
{
	int err = stop(b, c);

	if (err)
		return err;
	/* A filter that was put on it since would end it at our first call. */
	err = refusal__confined(b->space->pid, c->tid, b->why, sizeof(b->why));
	if (!err)
		err = copy_look(b, &b->now);
	if (!err && !is_same(&b->before, &b->now))
		err = safety__judge(b->safety, &b->now, b->why);
	if (!err) {
		err = libc__verify(b->libc, b->space);
		if (err) {
			remote__release(&b->remote);
			return err;
		}
		err = remote__prepare(&b->remote);
		if (err == -EBUSY) {	/* a moment later it may be fit */
			remote__release(&b->remote);
			return TRY_NEXT;
		}
		if (err == -EAGAIN && c->kind != THREAD_RUNNING)
			snprintf(b->why, sizeof(b->why), "it is in a system call that only the kernel can "
				 "go on with");
	}
	if (!err)
		return 0;
	remote__release(&b->remote);
	return note_refused(b, c);
}

static int try_thread(struct borrow *b, const struct thread_choice *c)
{
	int err;

	if (was_refused(b, c))
		return TRY_NEXT;
	if (refusal__thread(b->space->pid, c->tid, b->why, sizeof(b->why)))
		return TRY_NEXT;
	err = look_first(b, c);
	if (!err)
		err = take(b, c);
	return err ? err : b->use(&b->remote, b->ctx);
}

/* --- the search ----------------------------------------------------------------------------- */

static int try_all(struct borrow *b)
{
	struct thread_choice *threads;
	size_t nr, i;
	int err = refusal__process(b->space->pid, b->why, sizeof(b->why));

	if (err)
		return err;
	b->stops = b->forbidden = 0;
	err = threads__list(b->space->pid, &threads, &nr);
	if (!err)
		err = TRY_NEXT;
	for (i = 0; i < nr && err == TRY_NEXT; i++) {
		if (is_cancelled(b))
			err = -ECANCELED;
		else if (clock__now_ns() < b->deadline)
			err = try_thread(b, &threads[i]);
	}
	if (err == -EINPROGRESS)	/* it doesn't stop: whatever it sleeps in now is no place */
		note_refused(b, &threads[i - 1]);
	free(threads);
	return err == TRY_NEXT && b->stops && b->stops == b->forbidden ? -EPERM : err;
}

struct worker {
	struct borrow *borrow;
	int err;
};

/* A multiple of the shortest pause; not over the end of all. */
static void rest(const struct borrow *b, long ns)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	for (; ns > 0 && !is_cancelled(b) && clock__now_ns() < b->deadline; ns -= PAUSE_NS)
		nanosleep(&pause, NULL);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	long pause = PAUSE_NS;

	prctl(PR_SET_NAME, "gpucollect-trc");
	prctl(PR_SET_TIMERSLACK, 1000);
	setpriority(PRIO_PROCESS, 0, -20);	/* whoever it holds waits for it */
	while ((w->err = try_all(w->borrow)) == TRY_NEXT && clock__now_ns() < w->borrow->deadline) {
		rest(w->borrow, pause);
		if (pause < LONG_PAUSE_NS / 2)
			pause *= 2;
	}
	return NULL;
}

int borrow__run(struct borrow *b, uint64_t deadline, borrow_use use, void *ctx)
{
	struct worker w = { .borrow = b };
	char why[sizeof(b->why)];
	pthread_t thread;
	int err;

	b->use = use;
	b->ctx = ctx;
	b->deadline = deadline;
	table__free(b->refused);
	b->refused = table__new();
	if (!b->refused)
		return -ENOMEM;
	snprintf(b->why, sizeof(b->why), "none of its threads is in a state to be borrowed");
	do {
		err = pthread_create(&thread, NULL, work, &w);
		if (err) {
			snprintf(b->why, sizeof(b->why), "gpucollect can't start a thread: %s",
				 strerror(err));
			return -err;
		}
		pthread_join(thread, NULL);
		b->longest = b->remote.longest;
		b->holds = b->remote.holds;
	} while (w.err == -EINPROGRESS && clock__now_ns() < deadline);
	if (w.err != TRY_NEXT && w.err != -EINPROGRESS)
		return w.err;
	/* There was time for no other look, and it may have ended meanwhile. */
	if (refusal__process(b->space->pid, why, sizeof(why)) != -ESRCH)
		return -EAGAIN;
	memcpy(b->why, why, sizeof(why));
	return -ESRCH;
}
