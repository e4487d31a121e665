// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/injection.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "gpu_timing/reader.h"
#include "loader/base/array.h"
#include "loader/base/fault.h"
#include "loader/base/log.h"
#include "loader/base/proc.h"
#include "loader/holder.h"
#include "loader/library.h"
#include "loader/tracer/inject.h"

#define LOCK_FILE "/run/gpucollect/lock"

struct job {
	struct process *process;
	uint64_t started;		/* when it was: it may be over by the time it has its turn */
	struct tracer *tracer;		/* NULL: waits for its turn */
	int lock;			/* descriptor that holds it; -1: none, or not to be had */
	struct channel *claimed;	/* of a library that was there: ours while the job lasts */
	pid_t holder;			/* whose it is instead */
	char why[128];			/* we gave it up */
	bool placed;
	bool gone;			/* before it was begun */
};

struct injection {
	struct injection_config config;
	struct tracer_request request;	/* all but the pid */
	struct job *job;
	size_t nr, size;
};

int injection__new(const struct injection_config *config, struct injection **out)
{
	struct injection *i = calloc(1, sizeof(*i));
	int err;

	if (!i)
		return -ENOMEM;
	i->config = *config;
	i->request.image = library__image(&i->request.size);
	err = library__offset("gpucollect_stub", &i->request.stub);
	if (err) {
		free(i);
		return err;
	}
	*out = i;
	return 0;
}

/*
 * Two collectors that enter a process at one time would bring a library each. So it is locked until the
 * hello has been answered, by which the segment is taken: a byte of this file for each pid. 0, or -EAGAIN:
 * another has it; where there can be no such file there is no lock.
 */
static int job__lock(struct job *j)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = j->process->tgid, .l_len = 1,
	};

	if (j->lock < 0)
		j->lock = open(LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (j->lock < 0)
		return 0;
	return fcntl(j->lock, F_OFD_SETLK, &lock) && (errno == EAGAIN || errno == EACCES) ? -EAGAIN : 0;
}

/* The segment stays ours only if the library was called: then the hello is answered. */
static void job__end(struct job *j, bool called)
{
	tracer__free(j->tracer);
	if (j->claimed && !called)
		channel__release(j->claimed);
	channel__close(j->claimed);
	if (j->lock >= 0)
		close(j->lock);
}

bool injection__give_up(struct injection *i)
{
	struct tracer_result r;
	bool over = true;
	size_t n;

	for (n = 0; n < i->nr; n++) {
		if (!i->job[n].tracer)
			continue;
		tracer__cancel(i->job[n].tracer);
		tracer__get(i->job[n].tracer, &r);
		over &= r.state == TRACER_DONE;
	}
	return over;
}

void injection__free(struct injection *i)
{
	size_t n;

	if (!i)
		return;
	injection__give_up(i);
	for (n = 0; n < i->nr; n++)
		job__end(&i->job[n], false);
	free(i->job);
	free(i);
}

/* --- a library that is there already ---------------------------------------------------------- */

/* Who is at work in it must not even notice that we came. 0 or -EBUSY. */
static int claim(struct job *j, const struct channel_identity *identity)
{
	pid_t pid = j->process->tgid;

	if (holder__segment(pid, identity, &j->claimed))
		return 0;	/* then it makes another one, or says why it can't */
	return channel__claim(j->claimed, &j->holder);
}

static bool is_usable(struct job *j, const struct tracer_result *r)
{
	if (!r->present)
		return true;
	if (r->identity.magic != CHANNEL_IDENTITY_MAGIC || r->identity.abi != CHANNEL_ABI) {
		snprintf(j->why, sizeof(j->why), "it holds the library of another version (%" PRIu32
			 "; this is %d): use that one, or start the process anew", r->identity.abi,
			 CHANNEL_ABI);
		return false;
	}
	if (claim(j, &r->identity)) {
		channel__close(j->claimed);
		j->claimed = NULL;
		return false;
	}
	return true;
}

int injection__foresee(pid_t pid, pid_t *holder, char *why, size_t size)
{
	struct channel_identity identity;
	bool there;
	int err = tracer__foresee(pid, &there, &identity, why, size);

	*holder = 0;
	if (!err && there)
		return holder__find(pid, &identity, holder);
	if (err && !why[0])
		snprintf(why, size, "%s", strerror(-err));
	/* Of a debugger, not of a gpucollect. */
	return err == -EBUSY ? -ENOTSUP : err;
}

/* --- one process --------------------------------------------------------------------------- */

static void on_placed(struct injection *i, struct job *j, const struct tracer_result *r)
{
	int err;

	j->placed = true;
	FAULT_POINT("library-offered");
	if (!is_usable(j, r)) {
		tracer__cancel(j->tracer);
		return;
	}
	err = sites__attach(i->config.sites, r->file, j->process);
	if (err) {
		snprintf(j->why, sizeof(j->why), "its file can't be probed (%s)", strerror(-err));
		tracer__cancel(j->tracer);
		return;
	}
	FAULT_POINT("library-probed");
	tracer__proceed(j->tracer);
}

static const char *reason(const struct job *j, const struct tracer_result *r, char *buf, size_t room)
{
	if (j->why[0])
		return j->why;
	if (r->err != -EREMOTEIO || r->why[0])
		return r->why[0] ? r->why : strerror(-r->err);
	snprintf(buf, room, "the library says %s%s%.*s", strerror(-r->attach.status),
		 r->attach.error[0] ? ": " : "", (int)sizeof(r->attach.error), r->attach.error);
	return buf;
}

static void on_done(struct injection *i, const struct job *j, const struct tracer_result *r)
{
	char text[256];
	int err = r->err;

	log_debug("process %d: threads held %u times, %.2f ms at most%s%s", (int)j->process->tgid,
		  r->holds, (double)r->held_ns / 1e6, r->why[0] ? "; " : "", r->why);
	if (j->holder || (err == -EREMOTEIO && r->attach.status == -EALREADY))
		err = -EBUSY;
	else if (j->gone)
		err = -ESRCH;
	else if (j->why[0] || err == -EBUSY)
		err = -ENOTSUP;
	i->config.done(i->config.ctx, j->process, err, j->holder, reason(j, r, text, sizeof(text)));
}

static void job__start(struct injection *i, struct job *j)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = i->config.epoll_data };
	struct tracer_request request = i->request;

	request.pid = j->process->tgid;
	j->tracer = tracer__new(&request);
	FAULT_POINT("tracer-started");
	if (!j->tracer)
		snprintf(j->why, sizeof(j->why), "its tracer can't be started (%s)", strerror(errno));
	/* Where it can't be waited for it is still looked at every tick. */
	else if (epoll_ctl(i->config.epoll_fd, EPOLL_CTL_ADD, tracer__fd(j->tracer), &event))
		log_debug("waiting for the tracer of process %d: %s", (int)j->process->tgid,
			  strerror(errno));
}

/* More than there are CPUs would make held threads wait for their turn. */
static size_t most_at_once(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return cpus < 1 ? 1 : cpus < TRACER_MAX ? (size_t)cpus : TRACER_MAX;
}

/* 0: there is none. */
static uint64_t start_of(const struct process *p)
{
	struct proc_stat stat;

	return proc__stat(p->tgid, 0, &stat) ? 0 : stat.started;
}

/* Its number may be somebody else's by now. */
static bool has_ended(struct job *j)
{
	j->gone = j->process->exited || start_of(j->process) != j->started;
	if (j->gone)
		snprintf(j->why, sizeof(j->why), "it is gone");
	return j->gone;
}

static void start_some(struct injection *i)
{
	size_t n, running = 0, most = most_at_once();

	for (n = 0; n < i->nr; n++)
		running += i->job[n].tracer != NULL;
	for (n = 0; n < i->nr && running < most; n++)
		if (!i->job[n].tracer && !i->job[n].why[0] && !has_ended(&i->job[n]) &&
		    !job__lock(&i->job[n])) {
			job__start(i, &i->job[n]);
			running += i->job[n].tracer != NULL;
		}
}

int injection__begin(struct injection *i, struct process *p)
{
	int err = array__reserve((void **)&i->job, &i->size, i->nr, sizeof(*i->job));

	if (err)
		return err;
	i->job[i->nr++] = (struct job){
		.process = p, .started = start_of(p), .lock = -1,
	};
	start_some(i);
	return 0;
}

/* False once it is over and its place is free. */
static bool job__look(struct injection *i, size_t n)
{
	struct tracer_result r = { .state = TRACER_WORKING };
	struct job *j = &i->job[n], ended;

	if (j->tracer)
		tracer__get(j->tracer, &r);
	else if (j->why[0])	/* it never began */
		r = (struct tracer_result){ .state = TRACER_DONE, .err = -EAGAIN };
	if (r.state == TRACER_PLACED && !j->placed)
		on_placed(i, j, &r);
	if (r.state != TRACER_DONE)
		return true;
	ended = *j;
	i->job[n] = i->job[--i->nr];
	on_done(i, &ended, &r);
	FAULT_POINT("library-entered");
	job__end(&ended, !r.err);
	return false;
}

void injection__step(struct injection *i)
{
	size_t n = 0;

	while (n < i->nr)
		n += job__look(i, n);
	start_some(i);
}
