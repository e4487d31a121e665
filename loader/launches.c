// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/launches.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpu_timing/calibration.h"
#include "gpu_timing/reader.h"
#include "loader/base/fault.h"
#include "loader/base/log.h"
#include "loader/base/table.h"
#include "loader/join.h"
#include "loader/stacks.h"
#include "loader/works.h"

#define POLL_RECORDS 65536	/* of one channel, before the next gets its turn */
#define HELLO_TRIES 100		/* polls that a library gets to finish its segment */
/* What a ring can hold, whatever is put into it while it is read. */
#define RING_POLLS (CHANNEL_RING_SIZE / sizeof(struct channel_head) / POLL_RECORDS)
/*
 * A target that makes up launches, or names, must not fill our memory. Real ones wait for a few
 * thousand results, and have some ten thousand names of a kilobyte at most.
 */
#define MAX_WAITING (1u << 18)	/* in a process */
#define MAX_NAME_BYTES (64u << 20)
#define NAME_COST 128u		/* of one, beside its text */

/* Devices of one process whose constants are kept; ordinals beyond have raw durations. */
#define MAX_DEVICES 64

struct target {
	struct process *process;
	struct channel *channel;	/* NULL: hello, but not yet opened */
	struct join *join;
	struct table *names;		/* generation -> work */
	struct table *latest;		/* function -> generation */
	size_t name_bytes;
	struct calibration calibration[MAX_DEVICES];
	bool calibrated[MAX_DEVICES];
	uint64_t seen;			/* its launches that the probe told of */
	int pidfd;
	int fd_hint;
	int tries;
	bool checked;			/* its state was looked at */
	bool gave_up;
	bool left_alone;		/* no slot of it is swapped, or none any more */
	bool dead;
};

struct launches {
	struct launches_config config;
	struct target **target;
	size_t nr_targets;
	struct target *last;
	struct works *names;
	struct launches_counters counters;
};

struct launches *launches__new(const struct launches_config *config)
{
	struct launches *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->config = *config;
	l->names = works__new();
	if (l->names)
		return l;
	free(l);
	return NULL;
}

/* --- joining ------------------------------------------------------------------------------ */

/* Whose launches are in hand. */
struct context {
	struct launches *l;
	struct target *t;
	bool no_memory;
};

/* Device time of a bracket; false: its device's constant isn't known. */
static bool calibrate(const struct target *t, const struct channel_result *r, uint64_t *ns)
{
	bool known = r->device >= 0 && r->device < MAX_DEVICES && t->calibrated[r->device];

	*ns = calibration__apply(known ? &t->calibration[r->device] : NULL, r->duration, r->gap,
				 (enum launch_load)r->load);
	return known;
}

bool launches__by_chance(enum launch_cause cause)
{
	return cause == CAUSE_OUTSTANDING || cause == CAUSE_POOL_EMPTY ||
	       cause == CAUSE_DISTURBED || cause == CAUSE_NO_STREAM;
}

static int account_result(struct launches *l, const struct target *t, uint32_t stack, uint32_t tid,
			  const struct channel_result *r)
{
	struct tally_key key = {
		.kind = TALLY_LAUNCH,
		.process = t->process->index,
		.tid = tid,
		.user = stack,
		.device = r->device,
		.stream = r->stream,
		.flags = r->flags & LAUNCH_GRAPH ? TALLY_GRAPH : 0,
	};
	struct tally_add add = { .count = 1 };
	bool timed = r->cause == CAUSE_NONE;
	uint64_t ns = r->duration, work = 0;

	l->counters.by_cause[r->cause]++;
	/* Not executed now, or not at all: no launch to count. */
	if (r->cause == CAUSE_CAPTURED || r->cause == CAUSE_LAUNCH_FAILED)
		return 0;
	if (r->name && table__get(t->names, r->name, &work))
		key.work = (uint32_t)work;
	if (timed && !calibrate(t, r, &ns))
		key.flags |= TALLY_UNCALIBRATED;
	if (timed) {
		l->counters.seen_busy += r->load == LOAD_BUSY;
		l->counters.seen_idle += r->load == LOAD_IDLE;
		l->counters.graphs += (r->flags & LAUNCH_GRAPH) != 0;
	}
	if (timed) {
		add.timed = 1;
		add.ns = ns;
		add.weight = r->weight;
	}
	add.untimed = launches__by_chance((enum launch_cause)r->cause);
	return tally__add(l->config.tally, &key, &add);
}

/* Of join.h. */
static int account(void *ctx, const struct join_launch *launch, const struct channel_result *r)
{
	struct channel_result no_end = { .cause = CAUSE_NO_END, .device = -1 };
	const struct context *c = ctx;
	uint64_t name = 0;

	if (!r && launch) {
		no_end.flags = (uint16_t)launch->flags;
		if (table__get(c->t->latest, launch->function, &name))
			no_end.name = (uint32_t)name;
	}
	c->l->counters.no_end += !r;
	c->l->counters.no_stack += !launch;
	return account_result(c->l, c->t, launch ? launch->stack : STACKS_NONE, launch ? launch->tid : 0,
			      r ? r : &no_end);
}

/* --- processes with the library -------------------------------------------------------------- */

static void target__free(struct target *t)
{
	channel__close(t->channel);
	join__free(t->join);
	table__free(t->names);
	table__free(t->latest);
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
	works__free(l->names);
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
	struct target **grown = realloc(l->target, (l->nr_targets + 1) * sizeof(*grown));
	struct target *t = calloc(1, sizeof(*t));

	if (grown)
		l->target = grown;
	if (!grown || !t)
		goto fail;
	t->process = p;
	t->pidfd = -1;
	t->fd_hint = -1;
	t->join = join__new(MAX_WAITING, account);
	t->names = table__new();
	t->latest = table__new();
	if (!t->join || !t->names || !t->latest)
		goto fail;
	l->target[l->nr_targets++] = t;
	return t;
fail:
	if (t) {
		join__free(t->join);
		table__free(t->names);
		table__free(t->latest);
	}
	free(t);
	return NULL;
}

static int account_without_library(struct launches *l, const struct process *p,
				   const struct rec_launch *rec, uint32_t stack)
{
	const struct tally_add one = { .count = 1 };
	struct tally_key key = {
		.kind = TALLY_LAUNCH,
		.process = p->index,
		.tid = rec->tid,
		.user = stack,
		.device = -1,
		.stream = rec->stream,
		.flags = rec->flags & LAUNCH_GRAPH ? TALLY_GRAPH : 0,
	};

	l->counters.without_library++;
	return tally__add(l->config.tally, &key, &one);
}

/* Its library sees the same launch: a probe in the driver that is there for others is not needed. */
static bool is_watched(const struct target *t)
{
	return t && t->channel && !t->dead && !t->left_alone;
}

int launches__record(struct launches *l, struct process *p, const struct rec_launch *rec,
		     uint32_t stack)
{
	const struct join_launch launch = {
		.stack = stack, .tid = rec->tid, .function = rec->function, .flags = rec->flags,
	};
	struct context ctx = { .l = l };

	ctx.t = find(l, p);
	if (!rec->id)
		return is_watched(ctx.t) ? 0 : account_without_library(l, p, rec, stack);
	if (!ctx.t)
		ctx.t = target__add(l, p);
	if (!ctx.t)
		return -ENOMEM;
	ctx.t->seen++;
	return join__launch(ctx.t->join, rec->id, &launch, &ctx);
}

static void on_result(void *ctx, const struct channel_result *r)
{
	struct context *c = ctx;

	FAULT_POINT("time");
	c->no_memory |= join__result(c->t->join, r, c) != 0;
}

static void on_name(void *ctx, const struct channel_name *name)
{
	static const char no_name[] = "[kernel without a name]";
	struct context *c = ctx;
	uint32_t work;

	if (name->len + NAME_COST > MAX_NAME_BYTES - c->t->name_bytes) {
		c->l->counters.lost_names++;
		return;
	}
	if (name->status == NAME_ERROR)
		return;
	c->t->name_bytes += name->len + NAME_COST;
	/* Not to be mixed up with one whose name is empty. */
	if (name->status == NAME_NULL)
		work = works__add(c->l->names, no_name, strlen(no_name));
	else
		work = works__add(c->l->names, name->text, name->len);
	c->no_memory |= !work || table__set(c->t->names, name->generation, work) ||
			table__set(c->t->latest, name->function, name->generation);
}

static void on_device(void *ctx, const struct channel_device *d)
{
	struct target *t = ((struct context *)ctx)->t;

	if (d->device >= 0 && d->device < MAX_DEVICES)
		t->calibrated[d->device] = calibration__find(d->text, d->len, d->version,
							     &t->calibration[d->device]);
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
	char path[64], line[256];
	int mode = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tgid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Seccomp: %d", &mode) == 1)
			break;
	if (f)
		fclose(f);
	return mode != 0;
}

static void target__open(struct launches *l, struct target *t)
{
	int fd = fetch(t), err = fd;

	FAULT_POINT("channel-fetched");
	if (fd >= 0) {
		err = channel__open(fd, &t->channel);
		close(fd);
	}
	if (!err) {
		l->counters.libraries++;
		channel__set_confined(t->channel, confined(t->process->tgid));
		channel__set_site(t->channel, l->config.site);
		FAULT_POINT("channel-opened");
		channel__heartbeat(t->channel);
		FAULT_POINT("heartbeat");
		return;
	}
	if (err == -EAGAIN && ++t->tries < HELLO_TRIES)
		return;
	t->fd_hint = -1;
	log_warn_some("the timing library's memory in process %d can't be used: %s; its launches have "
		      "no times", (int)t->process->tgid, strerror(-err));
	l->counters.bad_channels++;
}

void launches__hello(struct launches *l, struct process *p, int fd)
{
	struct target *t = find(l, p);

	FAULT_POINT("hello");
	if (fd < 0) {
		log_warn_some("the timing library in process %d can't make its memory: %s",
			      (int)p->tgid, fd > -4096 ? strerror(-fd) : "no reason given");
		return;
	}
	if (!t)
		t = target__add(l, p);
	if (!t || t->channel)
		return;
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
	l->counters.gave_up++;
	log_warn_some("gpucollect stood still for too long, so the timing library in process %d gave up: "
		      "its later launches are not in the result", (int)t->process->tgid);
}

/* Reads one channel; false if it gave all it had. */
static bool target__poll(struct launches *l, struct target *t)
{
	static const struct channel_handler handler = {
		.result = on_result, .name = on_name, .device = on_device,
	};
	struct context ctx = { .l = l, .t = t };
	struct channel_status status;
	int n;

	if (!t->channel) {
		if (t->fd_hint >= 0)
			target__open(l, t);
		return false;
	}
	channel__heartbeat(t->channel);
	n = channel__poll(t->channel, &handler, &ctx, POLL_RECORDS);
	if (ctx.no_memory)
		log_warn_some("out of memory: launches of process %d are lost",
			      (int)t->process->tgid);
	if (n < 0 && !t->dead) {
		t->dead = true;
		l->counters.bad_channels++;
		log_warn_some("the timing library's memory in process %d holds nonsense: its further "
			      "launches have no times", (int)t->process->tgid);
	}
	channel__status(t->channel, &status);
	t->left_alone = status.state == CHANNEL_REFUSED || status.state == CHANNEL_PASSIVE;
	if (!t->checked && status.state != CHANNEL_STARTING) {
		t->checked = true;
		if (status.state == CHANNEL_REFUSED)
			l->config.refused(l->config.ctx, t->process, status.reason, status.detail);
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

void launches__poll(struct launches *l)
{
	size_t i;

	for (i = 0; i < l->nr_targets; i++)
		target__poll(l, l->target[i]);
}

/*
 * A counter that stands in the target's memory: nothing of what is counted there happens twice in one
 * launch, and where other things are nonsense the counters are, too.
 */
static uint64_t credible(const struct target *t, uint64_t n)
{
	return t->dead ? 0 : n < t->seen ? n : t->seen;
}

/* What is left has lost its other half for good. */
static void target__finish(struct launches *l, struct target *t)
{
	struct context ctx = { .l = l, .t = t };
	struct channel_counters c;

	join__finish(t->join, &ctx);
	if (t->channel) {
		channel__counters(t->channel, &c);
		l->counters.made += c.launched;
		l->counters.lost_results += credible(t, c.lost_results);
		l->counters.lost_names += credible(t, c.lost_names) + credible(t, c.names_lost);
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

void launches__counters(const struct launches *l, struct launches_counters *c)
{
	*c = l->counters;
}

const char *launches__name(const struct launches *l, uint32_t work)
{
	return works__get(l->names, work);
}
