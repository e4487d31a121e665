// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/tracer/entry.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "loader/base/clock.h"
#include "loader/base/fault.h"
#include "loader/tracer/libc.h"
#include "loader/tracer/placing.h"
#include "loader/tracer/present.h"
#include "loader/tracer/remote.h"
#include "loader/tracer/space.h"

#define LOAD_NS 3000000000ull
#define PAUSE_NS 300000

_Static_assert(sizeof(struct channel_attach) <= FRAME_ROOM, "it lies in the frame");
_Static_assert(sizeof(struct channel_stub) <= PLACING_PAGE, "it lies in a page");

/* What came back. -ESRCH: nothing; the process may be another, or have written anything there. */
static int read_back(struct entry *e, pid_t pid, uint64_t from)
{
	struct channel_attach *a = &e->back;

	if (space__peek(pid, from, a, sizeof(*a)) || a->size != sizeof(*a) ||
	    a->stage > ATTACH_DONE) {
		*a = (struct channel_attach){ 0 };
		return -ESRCH;
	}
	a->error[sizeof(a->error) - 1] = '\0';
	return 0;
}

static int result(const struct channel_attach *a)
{
	return a->stage == ATTACH_DONE && !a->status ? 0 : -EREMOTEIO;
}

int entry__call_library(struct entry *e, struct remote *r)
{
	const struct channel_attach a = { .size = sizeof(a), .status = -EINPROGRESS };
	const uint64_t room = remote__room(r);
	int err = present__is_there(e->present, r->pid) ?
		  space__poke(r->pid, room, &a, sizeof(a)) : -ESRCH;

	if (err) {
		remote__home(r);
		return err;
	}
	err = remote__call(r, e->present->attach, room);
	if (err) {
		remote__leave(r);
		return err == -ESRCH ? err : -ETIMEDOUT;
	}
	err = read_back(e, r->pid, room);
	remote__home(r);
	return err ? err : result(&e->back);
}

/* --- the stub ------------------------------------------------------------------------------- */

static void describe_stub(const struct entry *e, struct channel_stub *s)
{
	const struct libc *l = e->libc;

	*s = (struct channel_stub){
		.attach = { .size = sizeof(s->attach), .status = -EINPROGRESS },
		.created = -EINPROGRESS,
		.pages = e->placing->pages,
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
	placing__path(e->placing, s->path, sizeof(s->path));
}

/* Sets a word of the stub's to 1. */
static void tell(const struct entry *e, pid_t pid, size_t word)
{
	const uint32_t one = 1;

	space__poke(pid, placing__argument(e->placing) + word, &one, sizeof(one));
}

static int call_stub(const struct entry *e, struct remote *r, int *created)
{
	const uint64_t argument = placing__argument(e->placing);
	__s32 result = 0;
	int err = remote__call(r, e->placing->pages, argument);

	if (!err)
		err = space__peek(r->pid, argument + offsetof(struct channel_stub, created), &result,
				  sizeof(result));
	*created = result > 0 || result < -4095 ? -EPROTO : result;
	return err;
}

int entry__start_loading(struct entry *e, struct remote *r)
{
	struct channel_stub s;
	int err, created;

	describe_stub(e, &s);
	err = placing__is_there(e->placing, r->pid, r->tid) ?
	      space__poke(r->pid, placing__argument(e->placing), &s, sizeof(s)) :
	      -EBADF;	/* the program has closed it */
	if (err) {
		remote__home(r);
		return err;
	}
	err = call_stub(e, r, &created);
	if (err) {
		/* It may be in there, and its thread as well: all stays where it is. */
		if (err != -ESRCH)
			tell(e, r->pid, offsetof(struct channel_stub, attach.cancelled));
		placing__give_pages(e->placing);
		placing__give_file(e->placing);
		remote__leave(r);
		return err == -ESRCH ? err : -ETIMEDOUT;
	}
	if (created) {
		snprintf(e->why, e->why_size, "it can start no thread: %s", strerror(-created));
		placing__undo(e->placing, r);
	}
	remote__home(r);
	return created ? -EREMOTEIO : 0;
}

static bool is_over(const struct channel_attach *a)
{
	return a->stage == ATTACH_DONE || (a->stage < ATTACH_CALLED && a->status != -EINPROGRESS);
}

int entry__wait_loaded(struct entry *e, pid_t pid, const bool *cancelled)
{
	const uint64_t argument = placing__argument(e->placing);
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	const uint64_t deadline = clock__now_ns() + LOAD_NS;
	int err = read_back(e, pid, argument), given_up = 0;

	while (!err && !given_up && !is_over(&e->back)) {
		nanosleep(&pause, NULL);
		if (__atomic_load_n(cancelled, __ATOMIC_ACQUIRE))
			given_up = -ECANCELED;
		else if (clock__now_ns() > deadline)
			given_up = -ETIMEDOUT;
		err = read_back(e, pid, argument);
	}
	/* Once more: the words of one reading need not be of one moment. */
	if (!err)
		err = read_back(e, pid, argument);
	FAULT_POINT("trace-loaded");
	/* Never into what may be another program by now. */
	if (!err && given_up)
		tell(e, pid, offsetof(struct channel_stub, attach.cancelled));
	if (!err)
		tell(e, pid, offsetof(struct channel_stub, released));
	placing__give_pages(e->placing);
	if (err || given_up || e->back.stage >= ATTACH_CALLED)
		placing__give_file(e->placing);
	return err ? err : given_up ? given_up : result(&e->back);
}
