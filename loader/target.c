// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/target.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpu_timing/reader.h"
#include "loader/account.h"
#include "loader/base/fault.h"
#include "loader/base/log.h"
#include "loader/base/proc.h"

#define POLL_RECORDS 65536	/* of one channel, before the next gets its turn */
#define HELLO_TRIES 100		/* polls that a library gets to finish its segment */
/* What a ring can hold, whatever is put into it while it is read. */
#define RING_POLLS (CHANNEL_RING_SIZE / sizeof(struct channel_head) / POLL_RECORDS)

struct target {
	const struct launches_config *config;
	struct account_shared *shared;
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

struct target *target__new(const struct launches_config *config, struct account_shared *shared,
			   struct process *p)
{
	struct target *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->config = config;
	t->shared = shared;
	t->process = p;
	t->pidfd = -1;
	t->fd_hint = -1;
	t->account = account__new(shared, p->index);
	if (t->account)
		return t;
	free(t);
	return NULL;
}

void target__free(struct target *t)
{
	if (t->channel)
		channel__release(t->channel);
	channel__close(t->channel);
	account__free(t->account);
	if (t->pidfd >= 0)
		close(t->pidfd);
	free(t);
}

struct process *target__process(const struct target *t)
{
	return t->process;
}

bool target__is_watched(const struct target *t)
{
	return t->channel && !t->dead && !t->left_alone;
}

int target__launch(struct target *t, const struct rec_launch *rec, uint32_t stack)
{
	return t->unreached ? 0 : account__launch(t->account, rec, stack);
}

/* --- its channel ---------------------------------------------------------------------------- */

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

static int claim(struct target *t, int fd)
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
		t->config->taken(t->config->ctx, t->process, holder);
	return err;
}

static void give_up(struct target *t, int err)
{
	t->fd_hint = -1;
	t->unreached = true;
	t->shared->counters.bad_channels++;
	t->config->unreached(t->config->ctx, t->process, err);
}

static void open_channel(struct target *t)
{
	int fd = fetch(t), err = fd;

	FAULT_POINT("channel-fetched");
	if (fd >= 0) {
		err = claim(t, fd);
		close(fd);
	}
	if (!err) {
		t->shared->counters.libraries++;
		channel__set_confined(t->channel, confined(t->process->tgid));
		channel__set_site(t->channel, t->config->site);
		channel__set_sampling(t->channel, t->config->every, t->config->budget_ppm);
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
		give_up(t, err);
}

/*
 * The library begins another session, which supersedes the one that we have: a program that executes another
 * one while it is entered may be entered twice.
 */
static bool begins_anew(struct target *t)
{
	struct channel_status status;

	channel__status(t->channel, &status);
	if (status.reason != REASON_SUPERSEDED)
		return false;
	channel__close(t->channel);
	t->channel = NULL;
	t->checked = t->left_alone = t->dead = false;
	t->tries = 0;
	t->shared->counters.libraries--;
	account__new_session(t->account);
	return true;
}

void target__hello(struct target *t, int fd)
{
	if (t->unreached || (t->channel && !begins_anew(t)))
		return;
	if (fd < 0) {
		give_up(t, fd > -4096 ? fd : -EPROTO);
		return;
	}
	t->fd_hint = fd;
	open_channel(t);
}

/* Stopped or starved, we were taken for dead: what comes then is not even counted. */
static void look_for_end(struct target *t, const struct channel_status *status)
{
	if (t->gave_up || status->state != CHANNEL_PASSIVE ||
	    (status->reason != REASON_SILENT && status->reason != REASON_NO_COLLECTOR))
		return;
	t->gave_up = true;
	t->shared->counters.gave_up++;
	log_warn_some("gpucollect stood still for too long, so the timing library in process %d gave up: "
		      "its later launches are not in the result", (int)t->process->tgid);
}

static void say_armed(struct target *t, const struct channel_status *status)
{
	int seen = 0;

	for (int i = 0; i < CHANNEL_SLOT_WORDS; i++)
		seen += __builtin_popcountll(status->slots[i]);
	log_debug("process %d: the timing library sees %d of the %d driver entries that it knows",
		  (int)t->process->tgid, seen, NR_CHANNEL_SLOTS - 1);
	t->config->armed(t->config->ctx, t->process);
}

bool target__poll(struct target *t)
{
	struct channel_status status;
	int n;

	if (!t->channel) {
		if (t->fd_hint >= 0)
			open_channel(t);
		return false;
	}
	channel__heartbeat(t->channel);
	n = channel__poll(t->channel, &account__handler, t->account, POLL_RECORDS);
	if (account__no_memory(t->account))
		log_warn_some("out of memory: launches of process %d are lost",
			      (int)t->process->tgid);
	if (n < 0 && !t->dead) {
		t->dead = true;
		t->shared->counters.bad_channels++;
		log_warn_some("the timing library's memory in process %d holds nonsense: its further "
			      "launches have no times", (int)t->process->tgid);
	}
	channel__status(t->channel, &status);
	t->left_alone = status.state == CHANNEL_REFUSED || status.state == CHANNEL_PASSIVE;
	if (!t->checked && status.state != CHANNEL_STARTING) {
		t->checked = true;
		if (status.state == CHANNEL_REFUSED)
			t->config->refused(t->config->ctx, t->process, status.reason, status.detail);
		else if (!t->left_alone)
			say_armed(t, &status);
	}
	look_for_end(t, &status);
	return n == POLL_RECORDS;
}

void target__heartbeat(struct target *t)
{
	if (t->channel)
		channel__heartbeat(t->channel);
}

void target__look_for_filter(struct target *t)
{
	if (t->channel)
		channel__set_confined(t->channel, confined(t->process->tgid));
}

void target__stop(struct target *t)
{
	if (t->channel)
		channel__stop(t->channel);
}

bool target__stopped(const struct target *t)
{
	struct channel_status status;

	if (!t->channel || t->dead)
		return true;
	channel__status(t->channel, &status);
	return status.state == CHANNEL_PASSIVE || status.state == CHANNEL_REFUSED;
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

void target__finish(struct target *t, uint64_t time)
{
	struct launches_counters *counters = &t->shared->counters;
	struct channel_counters c;
	size_t i;

	/* It is over, but it may have given its memory to somebody who writes on and on. */
	for (i = 0; i < RING_POLLS && target__poll(t); i++)
		;
	account__finish(t->account, t->dead ? NULL : t->channel, time);
	if (t->channel) {
		channel__counters(t->channel, &c);
		counters->lost_results += credible(t, c.lost_results);
		counters->lost_graphs += credible(t, c.lost_graphs);
		counters->lost_names += credible(t, c.lost_names) + credible(t, c.names_lost);
	}
}
