// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/tracer/inject.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/far.h"
#include "loader/base/fault.h"
#include "loader/tracer/borrow.h"
#include "loader/tracer/entry.h"
#include "loader/tracer/libc.h"
#include "loader/tracer/placing.h"
#include "loader/tracer/present.h"
#include "loader/tracer/refusal.h"
#include "loader/tracer/remote.h"
#include "loader/tracer/safety.h"
#include "loader/tracer/space.h"

#define SEARCH_NS 3000000000ull		/* for a thread that can be borrowed */
#define UNDO_NS 1000000000ull
#define CALLER_NS 30000000000ull	/* to put its probes where it wants them */

struct tracer {
	struct tracer_request request;
	pthread_t thread;
	int event_fd;
	pthread_mutex_t lock;		/* of the next four */
	pthread_cond_t changed;
	struct tracer_result result;
	bool proceed;
	bool cancelled;			/* also read without it */
	/* The thread's own. */
	struct space space;
	struct libc libc;
	struct safety *safety;
	struct borrow borrow;
	struct placing placing;
	struct tracer_result now;	/* what it will publish */
	struct present present;
	struct entry entry;
};

/* --- what the caller sees ----------------------------------------------------------------- */

static void publish(struct tracer *t, enum tracer_state state)
{
	const uint64_t one = 1;

	t->now.state = state;
	t->now.held_ns = t->borrow.longest;
	t->now.holds = t->borrow.holds;
	pthread_mutex_lock(&t->lock);
	t->result = t->now;
	pthread_mutex_unlock(&t->lock);
	if (write(t->event_fd, &one, sizeof(one)) < 0)
		return;		/* never: the counter is far from full */
}

void tracer__get(struct tracer *t, struct tracer_result *result)
{
	uint64_t count;

	if (read(t->event_fd, &count, sizeof(count)) < 0)
		count = 0;	/* nothing new */
	pthread_mutex_lock(&t->lock);
	*result = t->result;
	pthread_mutex_unlock(&t->lock);
}

int tracer__fd(const struct tracer *t)
{
	return t->event_fd;
}

static void tell(struct tracer *t, bool *what)
{
	pthread_mutex_lock(&t->lock);
	__atomic_store_n(what, true, __ATOMIC_RELEASE);
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

void tracer__proceed(struct tracer *t)
{
	tell(t, &t->proceed);
}

void tracer__cancel(struct tracer *t)
{
	tell(t, &t->cancelled);
}

/* Until the caller has put its probes on the file: 0, -ECANCELED. */
static int wait_for_caller(struct tracer *t)
{
	uint64_t until = clock__now_ns() + CALLER_NS;
	const struct timespec deadline = {
		.tv_sec = (time_t)(until / 1000000000), .tv_nsec = (long)(until % 1000000000),
	};
	int err = 0;

	pthread_mutex_lock(&t->lock);
	while (!err && !t->proceed && !t->cancelled)
		err = pthread_cond_timedwait(&t->changed, &t->lock, &deadline);
	if (err || t->cancelled)
		err = -ECANCELED;
	pthread_mutex_unlock(&t->lock);
	return err;
}

/* --- with a borrowed thread --------------------------------------------------------------- */

static int place(struct remote *r, void *ctx)
{
	struct tracer *t = ctx;
	int err = placing__make(&t->placing, r);

	if (t->placing.lost == -ETIMEDOUT)
		remote__leave(r);
	else
		remote__home(r);
	return err;
}

static int take_back(struct remote *r, void *ctx)
{
	struct tracer *t = ctx;

	placing__undo(&t->placing, r);
	if (t->placing.lost == -ETIMEDOUT)
		remote__leave(r);
	else
		remote__home(r);
	return t->placing.lost;
}

static int call_library(struct remote *r, void *ctx)
{
	struct tracer *t = ctx;

	return entry__call_library(&t->entry, r);
}

static int start_loading(struct remote *r, void *ctx)
{
	struct tracer *t = ctx;

	return entry__start_loading(&t->entry, r);
}

/* --- the whole ------------------------------------------------------------------------------ */

/* What shows from outside; space__free is right in any case. */
static int look(pid_t pid, struct space *space, struct libc *libc, struct present *present, char *why,
		size_t size)
{
	int err = refusal__process(pid, why, size);

	if (err)
		return err;
	err = space__open(space, pid);
	if (err)
		return err == -ENOENT ? -ESRCH : err == -EACCES ? -EPERM : err;
	err = libc__find(libc, space, why, size);
	return err ? err : present__find(present, space, why, size);
}

int tracer__foresee(pid_t pid, bool *there, struct channel_identity *identity, char *why, size_t size)
{
	struct present present = { 0 };
	struct space space = { 0 };
	struct libc libc;
	int err;

	why[0] = '\0';
	err = look(pid, &space, &libc, &present, why, size);
	*there = present.attach;
	*identity = present.found;
	space__free(&space);
	return err;
}

static int prepare(struct tracer *t)
{
	int err = look(t->request.pid, &t->space, &t->libc, &t->present, t->now.why, sizeof(t->now.why));

	if (err)
		return err;
	t->now.present = t->present.attach;
	t->now.identity = t->present.found;
	t->now.file = t->present.file;
	t->safety = safety__new(&t->space, &t->libc);
	t->borrow.space = &t->space;
	t->borrow.libc = &t->libc;
	t->borrow.safety = t->safety;
	t->borrow.cancelled = &t->cancelled;
	return t->safety ? borrow__init(&t->borrow) : -ENOMEM;
}

static int attach(struct tracer *t)
{
	int err = prepare(t);

	FAULT_POINT("trace-begin");
	if (!err && !t->now.present) {
		err = borrow__run(&t->borrow, clock__now_ns() + SEARCH_NS, place, t);
		t->now.file = t->placing.file;
	}
	if (err)
		return err;
	publish(t, TRACER_PLACED);
	FAULT_POINT("trace-placed");
	err = wait_for_caller(t);
	if (!err)
		err = borrow__run(&t->borrow, clock__now_ns() + SEARCH_NS,
				  t->now.present ? call_library : start_loading, t);
	FAULT_POINT("trace-started");
	if (!err && !t->now.present)
		err = entry__wait_loaded(&t->entry, t->space.pid, &t->cancelled);
	t->now.attach = t->entry.back;
	FAULT_POINT("trace-attached");
	return err;
}

/* What is left there after a failure; that the caller cancelled is no reason not to. */
static void clean_up(struct tracer *t)
{
	const bool go_on = false;

	if (t->placing.fd < 0 && !t->placing.pages)
		return;
	t->borrow.cancelled = &go_on;
	borrow__run(&t->borrow, clock__now_ns() + UNDO_NS, take_back, t);
}

static void explain(struct tracer *t, int err)
{
	const struct channel_attach *a = &t->now.attach;
	char *why = t->now.why;
	const size_t size = sizeof(t->now.why);

	switch (err) {
	case -EREMOTEIO:
		snprintf(why, size, "the library does not start in it: %s",
			 a->error[0] ? a->error : strerror(a->status < 0 && a->status > -4096 ?
							   -a->status : EPROTO));
		break;
	case -ETIMEDOUT:
		snprintf(why, size, "it does not come to load the library: others load theirs, or it "
			 "has no processor");
		break;
	case -EBADF:
		snprintf(why, size, "it has closed the descriptor of the library");
		break;
	case -ECANCELED:
		snprintf(why, size, "cancelled");
		break;
	case -ESRCH:
		snprintf(why, size, "it is gone");
		break;
	case -EPERM:
		snprintf(why, size, "%s", t->borrow.why[0] ? t->borrow.why :
			 "we may not trace it: run gpucollect as root");
		break;
	case -ENOMEM:
		snprintf(why, size, "gpucollect is out of memory");
		break;
	default:
		snprintf(why, size, "%s", t->borrow.why[0] ? t->borrow.why : strerror(-err));
	}
}

static void *run(void *arg)
{
	struct tracer *t = arg;
	char why[sizeof(t->now.why)];
	int err;

	prctl(PR_SET_NAME, "gpucollect-inj");
	err = attach(t);
	/* Whatever failed last, that is why. */
	if (err && refusal__process(t->request.pid, why, sizeof(why)) == -ESRCH) {
		err = -ESRCH;
		explain(t, err);
	}
	if (err && !t->now.why[0])
		explain(t, err);
	if (err)
		clean_up(t);
	t->now.err = err;
	publish(t, TRACER_DONE);
	return NULL;
}

struct tracer *tracer__new(const struct tracer_request *request)
{
	struct tracer *t = calloc(1, sizeof(*t));
	pthread_condattr_t clock;
	int err;

	if (!t)
		return NULL;
	t->request = *request;
	t->now.file = -1;
	t->placing = (struct placing){
		.image = request->image, .size = request->size, .stub = request->stub,
		.why = t->now.why, .why_size = sizeof(t->now.why),
	};
	placing__init(&t->placing);
	t->entry = (struct entry){
		.libc = &t->libc, .placing = &t->placing, .present = &t->present,
		.why = t->now.why, .why_size = sizeof(t->now.why),
	};
	t->result = t->now;
	pthread_mutex_init(&t->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&t->changed, &clock);
	pthread_condattr_destroy(&clock);
	far__expect_memory(request->pid);
	t->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = t->event_fd < 0 ? errno : pthread_create(&t->thread, NULL, run, t);
	if (!err)
		return t;
	if (t->event_fd >= 0)
		close(t->event_fd);
	free(t);
	errno = err;
	return NULL;
}

void tracer__free(struct tracer *t)
{
	if (!t)
		return;
	tracer__cancel(t);
	pthread_join(t->thread, NULL);
	close(t->event_fd);
	placing__free(&t->placing);
	borrow__free(&t->borrow);
	safety__free(t->safety);
	space__free(&t->space);
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	free(t);
}
