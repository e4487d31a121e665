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
#include "loader/base/fault.h"
#include "loader/tracer/borrow.h"
#include "loader/tracer/exports.h"
#include "loader/tracer/libc.h"
#include "loader/tracer/placing.h"
#include "loader/tracer/refusal.h"
#include "loader/tracer/remote.h"
#include "loader/tracer/safety.h"
#include "loader/tracer/space.h"

#define SEARCH_NS 3000000000ull		/* for a thread that can be borrowed */
#define UNDO_NS 1000000000ull
#define CALLER_NS 30000000000ull	/* to put its probes where it wants them */
#define LOAD_NS 3000000000ull
#define PAUSE_NS 300000

_Static_assert(sizeof(struct channel_attach) <= FRAME_ROOM, "it lies in the frame");
_Static_assert(sizeof(struct channel_stub) <= PLACING_PAGE, "it lies in a page");

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
	/* Addresses there. */
	uint64_t stub;			/* what the stub is given */
	uint64_t function, identity;	/* of a library that was there */
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

/* --- a library that is there already ------------------------------------------------------ */

/* Whether this mapping is the library's. -ENOENT: not; -ENOTSUP and why: it can't be used. */
static int take_present(struct tracer *t, const struct mapping *m, const struct exports *e)
{
	struct channel_identity *id = &t->now.identity;
	uint64_t link;

	if (!elf_image__to_address(&e->image, m->offset, &link) ||
	    exports__find(e, "gpucollect_identity", &t->identity) ||
	    exports__find(e, "gpucollect_attach", &t->function))
		return -ENOENT;
	t->function += m->start - link;
	t->identity += m->start - link;
	/* A stub's page that was left behind is of that file, too, and lies anywhere. */
	if (space__peek(t->space.pid, t->identity, id, sizeof(*id)) ||
	    id->magic != CHANNEL_IDENTITY_MAGIC)
		return -ENOENT;
	if (id->abi != CHANNEL_ABI || id->size != sizeof(*id)) {
		snprintf(t->now.why, sizeof(t->now.why),
			 "it holds the timing library of another version of gpucollect");
		return -ENOTSUP;
	}
	t->now.present = true;
	t->now.file = files__fd(t->space.files, m->file);
	return 0;
}

/* 0 with now.present or without; -ENOTSUP and why, … */
static int find_present(struct tracer *t)
{
	uint32_t other = 0;	/* a file that is no such library */
	int err = -ENOENT;

	for (size_t i = 0; i < t->space.nr_code && err == -ENOENT; i++) {
		const struct mapping *m = &t->space.code[i];
		struct exports e;
		uint64_t address;

		if (m->kind != MAPPING_FILE || m->file == other ||
		    exports__open(&e, files__fd(t->space.files, m->file)))
			continue;
		if (exports__find(&e, "gpucollect_identity", &address))
			other = m->file;
		else
			err = take_present(t, m, &e);
		exports__close(&e);
	}
	return err == -ENOENT ? 0 : err;
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

/* What came back, or nothing: the process may have written anything there. */
static int read_back(struct tracer *t, uint64_t from)
{
	struct channel_attach *a = &t->now.attach;

	if (space__peek(t->space.pid, from, a, sizeof(*a)) || a->size != sizeof(*a) ||
	    a->stage > ATTACH_DONE) {
		*a = (struct channel_attach){ 0 };
		return -ESRCH;
	}
	a->error[sizeof(a->error) - 1] = '\0';
	return 0;
}

static int attach_result(const struct tracer *t)
{
	const struct channel_attach *a = &t->now.attach;

	return a->stage == ATTACH_DONE && !a->status ? 0 : -EREMOTEIO;
}

/* The library that is there: it starts a thread at most. */
static int call_library(struct remote *r, void *ctx)
{
	const struct channel_attach a = { .size = sizeof(a), .status = -EINPROGRESS };
	const uint64_t room = remote__room(r);
	struct channel_identity now;
	struct tracer *t = ctx;
	int err = space__peek(r->pid, t->identity, &now, sizeof(now));

	if (!err && (now.magic != CHANNEL_IDENTITY_MAGIC || now.abi != CHANNEL_ABI))
		err = -ESRCH;	/* another program, by exec */
	if (!err)
		err = space__poke(r->pid, room, &a, sizeof(a));
	if (err) {
		remote__home(r);
		return err;
	}
	err = remote__call(r, t->function, room);
	if (err) {
		remote__leave(r);
		return err == -ESRCH ? err : -ETIMEDOUT;
	}
	err = read_back(t, room);
	remote__home(r);
	return err ? err : attach_result(t);
}

static void describe_stub(const struct tracer *t, struct channel_stub *s)
{
	const struct libc *l = &t->libc;

	*s = (struct channel_stub){
		.attach = { .size = sizeof(s->attach), .status = -EINPROGRESS },
		.created = -EINPROGRESS,
		.pages = t->placing.pages,
		.pages_size = PLACING_SIZE,
		.attr_init = l->attr_init,
		.attr_setdetachstate = l->attr_setdetachstate,
		.attr_setstacksize = l->attr_setstacksize,
		.pthread_create = l->pthread_create,
		.errno_location = l->errno_location,
		.munmap = l->munmap,
		.dlopen = l->dlopen,
		.dlsym = l->dlsym,
		.dlerror = l->dlerror,
	};
	placing__path(&t->placing, s->path, sizeof(s->path));
}

static void tell_stub(const struct tracer *t, size_t word)
{
	const uint32_t one = 1;

	space__poke(t->space.pid, t->stub + word, &one, sizeof(one));
}

/*
 * The stub starts the thread that loads the library. The borrowed one doesn't load it itself: whoever
 * holds the dynamic loader's lock, in a constructor for instance, may be waiting for just this thread.
 */
static int call_stub(struct remote *r, void *ctx)
{
	const size_t created_at = offsetof(struct channel_stub, created);
	struct tracer *t = ctx;
	struct channel_stub s;
	int err;

	t->stub = placing__argument(&t->placing);
	describe_stub(t, &s);
	err = placing__is_there(&t->placing, r->pid, r->tid) ?
	      space__poke(r->pid, t->stub, &s, sizeof(s)) :
	      -EBADF;	/* the program has closed it */
	if (err) {
		remote__home(r);
		return err;
	}
	err = remote__call(r, t->placing.pages, t->stub);
	if (!err)
		err = space__peek(r->pid, t->stub + created_at, &s.created, sizeof(s.created));
	if (err) {
		/* It may be in there, and its thread as well: all stays where it is. */
		tell_stub(t, offsetof(struct channel_stub, attach.cancelled));
		placing__give_pages(&t->placing);
		placing__give_file(&t->placing);
		remote__leave(r);
		return err == -ESRCH ? err : -ETIMEDOUT;
	}
	if (s.created) {
		snprintf(t->now.why, sizeof(t->now.why), "it can start no thread: %s",
			 strerror(-s.created));
		placing__undo(&t->placing, r);
	}
	remote__home(r);
	return s.created ? -EREMOTEIO : 0;
}

static bool is_over(const struct channel_attach *a)
{
	return a->stage == ATTACH_DONE || (a->stage < ATTACH_CALLED && a->status != -EINPROGRESS);
}

/* What becomes of the stub's thread, which has to wait while others load libraries. */
static int wait_loaded(struct tracer *t)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	const uint64_t deadline = clock__now_ns() + LOAD_NS;
	int err = read_back(t, t->stub);

	while (!err && !is_over(&t->now.attach)) {
		if (__atomic_load_n(&t->cancelled, __ATOMIC_ACQUIRE))
			err = -ECANCELED;
		else if (clock__now_ns() > deadline)
			err = -ETIMEDOUT;
		else
			nanosleep(&pause, NULL);
		if (!err)
			err = read_back(t, t->stub);
	}
	/* The words of one reading need not be of one moment. */
	if (!err)
		err = read_back(t, t->stub);
	else
		tell_stub(t, offsetof(struct channel_stub, attach.cancelled));
	FAULT_POINT("trace-loaded");
	tell_stub(t, offsetof(struct channel_stub, released));
	placing__give_pages(&t->placing);
	if (err || t->now.attach.stage >= ATTACH_CALLED)
		placing__give_file(&t->placing);
	return err ? err : attach_result(t);
}

/* --- the whole ------------------------------------------------------------------------------ */

static int prepare(struct tracer *t)
{
	char *why = t->now.why;
	const size_t size = sizeof(t->now.why);
	int err = refusal__process(t->request.pid, why, size);

	if (err)
		return err;
	err = space__open(&t->space, t->request.pid);
	if (err)
		return err == -ENOENT ? -ESRCH : err == -EACCES ? -EPERM : err;
	err = libc__find(&t->libc, &t->space, why, size);
	if (!err)
		err = find_present(t);
	if (err)
		return err;
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
				  t->now.present ? call_library : call_stub, t);
	FAULT_POINT("trace-started");
	if (!err && !t->now.present)
		err = wait_loaded(t);
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
	t->result = t->now;
	pthread_mutex_init(&t->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&t->changed, &clock);
	pthread_condattr_destroy(&clock);
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
