// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The channels of all processes: found, read, told to stop. What they hold goes into accounts. */
#include "loader/launches.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpu_timing/reader.h"
#include "loader/account.h"
#include "loader/base/array.h"
#include "loader/base/fault.h"
#include "loader/base/log.h"
#include "loader/base/proc.h"

#define POLL_RECORDS 65536	/* of one channel, before the next gets its turn */
#define HELLO_TRIES 100		/* polls that a library gets to finish its segment */
#define POLLS_PER_LOOK 50	/* for system-call filters: about a second */
/* What a ring can hold, whatever is put into it while it is read. */
#define RING_POLLS (CHANNEL_RING_SIZE / sizeof(struct channel_head) / POLL_RECORDS)

struct target {
	struct process *process;
	struct channel *channel;	/* NULL: hello, but not yet opened */
	struct account *account;
	int pidfd;
	int fd_hint;
	int tries;
	bool unreached;			/* its channel can't be had: others look at its launches */
	bool checked;			/* its state was looked at */
	bool gave_up;
	bool left_alone;		/* no slot of it is swapped, or none any more */
	bool dead;
};

struct launches {
	struct launches_config config;
	struct target **target;
	size_t nr_targets, targets_size;
	struct target *last;
	bool stopping;
	unsigned int polls;
	struct account_shared shared;
};

struct launches *launches__new(const struct launches_config *config)
{
	struct launches *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->config = *config;
	l->shared.tally = config->tally;
	l->shared.works = works__new();
	l->shared.to = UINT64_MAX;
	if (l->shared.works)
		return l;
	free(l);
	return NULL;
}

void launches__only(struct launches *l, uint64_t from, uint64_t to)
{
	l->shared.from = from;
	l->shared.to = to;
}

/* --- processes with the library -------------------------------------------------------------- */

static void target__free(struct target *t)
{
	if (t->channel)
		channel__release(t->channel);
	channel__close(t->channel);
	account__free(t->account);
	if (t->pidfd >= 0)
		close(t->pidfd);
	free(t);
}

void launches__free(struct launches *l)
{
	size_t i;

	if (!l)
		return;
	for (i = 0; i < l->nr_targets; i++)
		target__free(l->target[i]);
	free(l->target);
	works__free(l->shared.works);
	free(l);
}

/* Launches come in bursts of one process: the one found last is looked at first. */
static struct target *find(struct launches *l, const struct process *p)
{
	size_t i;

	if (l->last && l->last->process == p)
		return l->last;
	for (i = l->nr_targets; i > 0; i--)
		if (l->target[i - 1]->process == p)
			return l->last = l->target[i - 1];
	return NULL;
}

static struct target *target__add(struct launches *l, struct process *p)
{
	struct target *t = calloc(1, sizeof(*t));

	if (!t || array__reserve((void **)&l->target, &l->targets_size, l->nr_targets, sizeof(*l->target)))
		goto fail;
	t->process = p;
	t->pidfd = -1;
	t->fd_hint = -1;
	t->account = account__new(&l->shared, p->index);
	if (!t->account)
		goto fail;
	l->target[l->nr_targets++] = t;
	return t;
fail:
	free(t);
	return NULL;
}

/* Its library sees the same launch: a probe in the driver that is there for others is not needed. */
static bool is_watched(const struct target *t)
{
	return t && t->channel && !t->dead && !t->left_alone;
}

int launches__record(struct launches *l, struct process *p, const struct rec_launch *rec,
		     uint32_t stack)
{
	struct target *t = find(l, p);

	if (!rec->id)
		return is_watched(t) ? 0 : account__probed(&l->shared, p->index, rec, stack);
	if (t && t->unreached)
		return 0;
	if (!t)
		t = target__add(l, p);
	return t ? account__launch(t->account, rec, stack) : -ENOMEM;
}

/* --- channels ----------------------------------------------------------------------------- */

static int fetch(struct target *t)
{
	int fd;

	if (t->pidfd < 0)
		t->pidfd = (int)syscall(SYS_pidfd_open, t->process->tgid, 0);
	if (t->pidfd < 0)
		return -errno;
	fd = (int)syscall(SYS_pidfd_getfd, t->pidfd, t->fd_hint, 0);
	return fd < 0 ? -errno : fd;
}

static bool confined(pid_t tgid)
{
	uint64_t mode;

	return !proc__number(tgid, "Seccomp", &mode) && mode;
}

static int target__claim(struct launches *l, struct target *t, int fd)
{
	pid_t holder;
	int err = channel__open(fd, &t->channel);

	if (err)
		return err;
	err = channel__claim(t->channel, &holder);
	if (!err)
		return 0;
	channel__close(t->channel);
	t->channel = NULL;
	if (err == -EBUSY)
		l->config.taken(l->config.ctx, t->process, holder);
	return err;
}

static void give_up(struct launches *l, struct target *t, int err)
{
	t->fd_hint = -1;
	t->unreached = true;
	l->shared.counters.bad_channels++;
	l->config.unreached(l->config.ctx, t->process, err);
}

static void target__open(struct launches *l, struct target *t)
{
	int fd = fetch(t), err = fd;

	FAULT_POINT("channel-fetched");
	if (fd >= 0) {
		err = target__claim(l, t, fd);
		close(fd);
	}
	if (!err) {
		l->shared.counters.libraries++;
		channel__set_confined(t->channel, confined(t->process->tgid));
		channel__set_site(t->channel, l->config.site);
		FAULT_POINT("channel-opened");
		channel__heartbeat(t->channel);
		FAULT_POINT("heartbeat");
		return;
	}
	if (err == -EAGAIN && ++t->tries < HELLO_TRIES)
		return;
	if (err == -EBUSY)
		t->fd_hint = -1;
	else
		give_up(l, t, err);
}

void launches__hello(struct launches *l, struct process *p, int fd)
{
	struct target *t = find(l, p);

	FAULT_POINT("hello");
	/* Nobody answers it any more: it ends by itself before it has touched anything. */
	if (l->stopping)
		return;
	if (!t)
		t = target__add(l, p);
	if (!t || t->channel || t->unreached)
		return;
	if (fd < 0) {
		give_up(l, t, fd > -4096 ? fd : -EPROTO);
		return;
	}
	t->fd_hint = fd;
	target__open(l, t);
}

/* Stopped or starved, we were taken for dead: what comes then is not even counted. */
static void look_for_end(struct launches *l, struct target *t, const struct channel_status *status)
{
	if (t->gave_up || status->state != CHANNEL_PASSIVE ||
	    (status->reason != REASON_SILENT && status->reason != REASON_NO_COLLECTOR))
		return;
	t->gave_up = true;
	l->shared.counters.gave_up++;
	log_warn_some("gpucollect stood still for too long, so the timing library in process %d gave up: "
		      "its later launches are not in the result", (int)t->process->tgid);
}

/* Reads one channel; false if it gave all it had. */
static bool target__poll(struct launches *l, struct target *t)
{
	struct channel_status status;
	int n;

	if (!t->channel) {
		if (t->fd_hint >= 0)
			target__open(l, t);
		return false;
	}
	channel__heartbeat(t->channel);
	n = channel__poll(t->channel, &account__handler, t->account, POLL_RECORDS);
	if (account__no_memory(t->account))
		log_warn_some("out of memory: launches of process %d are lost",
			      (int)t->process->tgid);
	if (n < 0 && !t->dead) {
		t->dead = true;
		l->shared.counters.bad_channels++;
		log_warn_some("the timing library's memory in process %d holds nonsense: its further "
			      "launches have no times", (int)t->process->tgid);
	}
	channel__status(t->channel, &status);
	t->left_alone = status.state == CHANNEL_REFUSED || status.state == CHANNEL_PASSIVE;
	if (!t->checked && status.state != CHANNEL_STARTING) {
		t->checked = true;
		if (status.state == CHANNEL_REFUSED)
			l->config.refused(l->config.ctx, t->process, status.reason, status.detail);
		else if (!t->left_alone)
			l->config.armed(l->config.ctx, t->process);
	}
	look_for_end(l, t, &status);
	return n == POLL_RECORDS;
}

void launches__heartbeat(struct launches *l)
{
	size_t i;

	for (i = 0; i < l->nr_targets; i++)
		if (l->target[i]->channel)
			channel__heartbeat(l->target[i]->channel);
}

/* A program may put a filter over all its threads at any time, the library's among them. */
static void look_for_filters(struct launches *l)
{
	size_t i;

	for (i = 0; i < l->nr_targets; i++)
		if (l->target[i]->channel)
			channel__set_confined(l->target[i]->channel,
					      confined(l->target[i]->process->tgid));
}

void launches__poll(struct launches *l)
{
	size_t i;

	if (!(++l->polls % POLLS_PER_LOOK))
		look_for_filters(l);
	for (i = 0; i < l->nr_targets; i++)
		target__poll(l, l->target[i]);
}

/*
 * A counter that stands in the target's memory: nothing of what is counted there happens twice in one
 * launch, and where other things are nonsense the counters are, too.
 */
static uint64_t credible(const struct target *t, uint64_t n)
{
	uint64_t seen = account__seen(t->account);

	return t->dead ? 0 : n < seen ? n : seen;
}

/* What is left has lost its other half for good. */
static void target__finish(struct launches *l, struct target *t)
{
	struct launches_counters *counters = &l->shared.counters;
	struct channel_counters c;

	account__finish(t->account);
	if (t->channel) {
		channel__counters(t->channel, &c);
		counters->lost_results += credible(t, c.lost_results);
		counters->lost_names += credible(t, c.lost_names) + credible(t, c.names_lost);
	}
}

void launches__exited(struct launches *l, struct process *p)
{
	struct target *t = find(l, p);
	size_t i;

	if (!t)
		return;
	/* It is over, but it may have given its memory to somebody who writes on and on. */
	for (i = 0; i < RING_POLLS && target__poll(l, t); i++)
		;
	target__finish(l, t);
	for (i = 0; l->target[i] != t; i++)
		;
	l->target[i] = l->target[--l->nr_targets];
	l->last = NULL;
	target__free(t);
}

void launches__stop(struct launches *l)
{
	size_t i;

	l->stopping = true;
	look_for_filters(l);
	for (i = 0; i < l->nr_targets; i++)
		if (l->target[i]->channel)
			channel__stop(l->target[i]->channel);
	FAULT_POINT("libraries-told");
}

bool launches__stopped(const struct launches *l)
{
	struct channel_status status;
	size_t i;

	for (i = 0; i < l->nr_targets; i++) {
		if (!l->target[i]->channel || l->target[i]->dead)
			continue;
		channel__status(l->target[i]->channel, &status);
		if (status.state != CHANNEL_PASSIVE && status.state != CHANNEL_REFUSED)
			return false;
	}
	return true;
}

void launches__finish(struct launches *l)
{
	while (l->nr_targets)
		launches__exited(l, l->target[0]->process);
}

bool launches__by_chance(enum launch_cause cause)
{
	return cause == CAUSE_OUTSTANDING || cause == CAUSE_POOL_EMPTY ||
	       cause == CAUSE_DISTURBED || cause == CAUSE_NO_STREAM;
}

void launches__counters(const struct launches *l, struct launches_counters *c)
{
	*c = l->shared.counters;
}

const char *launches__name(const struct launches *l, uint32_t work)
{
	return works__get(l->shared.works, work);
}
