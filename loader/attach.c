// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/attach.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_timing/reader.h"
#include "loader/base/array.h"
#include "loader/base/clock.h"
#include "loader/base/log.h"
#include "loader/base/proc.h"
#include "loader/base/table.h"
#include "loader/entries.h"
#include "loader/holder.h"
#include "loader/injection.h"
#include "loader/kept_out.h"
#include "loader/preset.h"

#define GROWN_UP_NS 100000000ull
#define LATER_NS 1000000000ull
#define STOPPED_NS 100000000ull		/* one that is stopped is looked at this often */

/* What has been decided on a process that maps a driver. */
enum way {
	WAY_VARIABLE = 1,	/* its driver loads the library */
	WAY_ENTERING,		/* the tracer is at it, for the first time */
	WAY_LATER,		/* that was in vain */
	WAY_ENTERING_AGAIN,
	WAY_LIBRARY,		/* the library is in, and says hello any moment */
	WAY_TIMED,
	WAY_PROBED,
	WAY_KEPT_OUT,
	WAY_TAKEN,
	WAY_GONE,
};

struct later {
	struct process *process;
	uint64_t time;
	bool stopped;		/* it was no try: nobody gets into one that is stopped */
};

struct attach {
	struct attach_config config;
	struct entries *entries;
	struct injection *injection;	/* NULL: no process gets the library by the tracer */
	struct table *way;		/* by the process's index */
	struct attach_counts counts;
	uint32_t looked, known;		/* of the processes by index: those looked at; that were there then */
	uint64_t look_at;
	struct later *later;		/* those to be entered again */
	size_t nr_later, later_size;
};

static void on_injected(void *ctx, struct process *p, int err, pid_t holder, const char *why);

int attach__new(const struct attach_config *config, struct attach **out)
{
	struct injection_config injection = {
		.sites = config->sites,
		.epoll_fd = config->epoll_fd,
		.epoll_data = config->epoll_data,
		.done = on_injected,
	};
	struct attach *a = calloc(1, sizeof(*a));
	int err = -ENOMEM;

	if (!a)
		return err;
	a->config = *config;
	injection.ctx = a;
	a->way = table__new();
	a->entries = entries__new(config->probes, config->files);
	if (a->way && a->entries)
		err = config->sites ? injection__new(&injection, &a->injection) : 0;
	if (err)
		attach__free(a);
	else
		*out = a;
	return err;
}

bool attach__give_up(struct attach *a)
{
	return !a->injection || injection__give_up(a->injection);
}

void attach__free(struct attach *a)
{
	if (!a)
		return;
	injection__free(a->injection);
	entries__free(a->entries);
	table__free(a->way);
	free(a->later);
	free(a);
}

int attach__before(struct attach *a)
{
	const struct options *o = a->config.options;

	if (a->config.sites || !(o->all || o->command))
		return 0;
	return entries__before(a->entries, a->config.library_path, a->config.caller);
}

static enum way way_of(const struct attach *a, const struct process *p)
{
	uint64_t way;

	return table__get(a->way, p->index, &way) ? (enum way)way : 0;
}

static bool is_pending(enum way way)
{
	return way == WAY_ENTERING || way == WAY_LIBRARY;
}

static void set_way(struct attach *a, const struct process *p, enum way way)
{
	if (table__set(a->way, p->index, way))
		log_warn_some("out of memory: process %d is looked at again and again", (int)p->tgid);
}

bool attach__pending(const struct attach *a)
{
	const struct process *p;
	uint32_t i;

	for (i = 0; i < processes__count(a->config.processes); i++) {
		p = processes__at(a->config.processes, i);
		if (!p->exited && is_pending(way_of(a, p)))
			return true;
	}
	return false;
}

void attach__counts(const struct attach *a, struct attach_counts *counts)
{
	*counts = a->counts;
	counts->later = (unsigned int)a->nr_later;
}

static void count_by_probes(struct attach *a, struct process *p)
{
	set_way(a, p, WAY_PROBED);
	if (a->config.sites) {
		a->counts.untimed++;
		processes__probe(a->config.processes, p);
	}
	entries__probe(a->entries, p);
}

static void enter(struct attach *a, struct process *p, enum way way)
{
	int err = injection__begin(a->injection, p);

	set_way(a, p, err ? WAY_GONE : way);
	if (err)
		log_warn_some("out of memory: launches of process %d are not seen", (int)p->tgid);
}

static void decide(struct attach *a, struct process *p)
{
	const char *why = kept_out__why(p->tgid);

	a->counts.decided++;
	if (why) {
		a->counts.kept_out++;
		set_way(a, p, WAY_KEPT_OUT);
		a->counts.untimed++;
		log_warn_some("process %d (%s) is left alone, since %s: its launches are not seen, its "
			      "CPU time is", (int)p->tgid, p->comm, why);
	} else if (!a->injection) {
		count_by_probes(a, p);
	} else if (a->config.library && preset__reaches(p->tgid, a->config.library, &why)) {
		set_way(a, p, WAY_VARIABLE);
	} else {
		if (why)
			log_debug("process %d: %s, so the tracer brings the library", (int)p->tgid, why);
		enter(a, p, WAY_ENTERING);
	}
}

/*
 * A program that is being loaded has none of its libraries first. Whatever the C library is called, it is
 * there when the process has grown up.
 */
static bool maps_libc(const struct attach *a, const struct process *p)
{
	uint32_t i;

	for (i = 0; i < p->nr_mappings; i++) {
		uint32_t file = p->mappings[i].file;
		const char *base = file ? strrchr(files__path(a->config.files, file), '/') : NULL;

		if (base && !strcmp(base, "/libc.so.6"))
			return true;
	}
	return false;
}

static void look_at(struct attach *a, struct process *p, bool grown_up)
{
	enum way way = way_of(a, p);

	if (way == WAY_PROBED)
		entries__probe(a->entries, p);
	if (!way && entries__driver(a->entries, p) && (grown_up || !a->injection || maps_libc(a, p))) {
		p->kept = true;
		decide(a, p);
	}
}

void attach__process(struct attach *a, struct process *p)
{
	look_at(a, p, false);
}

/*
 * A forked child has the driver from its parent and need not map anything more. It gets some time, since
 * most are about to execute another program.
 */
static void look_at_new_ones(struct attach *a)
{
	uint64_t now = clock__now_ns();
	struct process *p;

	if (now < a->look_at)
		return;
	for (; a->looked < a->known; a->looked++) {
		p = processes__at(a->config.processes, a->looked);
		if (!p->exited)
			look_at(a, p, true);
	}
	a->known = processes__count(a->config.processes);
	a->look_at = now + GROWN_UP_NS;
	entries__sweep(a->entries);
	if (a->config.sites)
		sites__sweep(a->config.sites);
}

static bool is_stopped(const struct process *p)
{
	struct proc_stat stat;

	return !proc__stat(p->tgid, 0, &stat) && stat.state == 'T';
}

static void enter_again(struct attach *a)
{
	uint64_t now = clock__now_ns();
	size_t i, kept = 0;

	for (i = 0; i < a->nr_later; i++) {
		struct later l = a->later[i];

		if (l.process->exited)
			continue;
		if (l.time <= now && !(l.stopped && is_stopped(l.process))) {
			enter(a, l.process, l.stopped ? WAY_ENTERING : WAY_ENTERING_AGAIN);
			continue;
		}
		if (l.time <= now)
			l.time = now + STOPPED_NS;
		a->later[kept++] = l;
	}
	a->nr_later = kept;
}

void attach__step(struct attach *a)
{
	if (a->injection)
		injection__step(a->injection);
	if (a->nr_later)
		enter_again(a);
	look_at_new_ones(a);
}

/* Its threads may be elsewhere then, or it may run again. False: out of memory. */
static bool try_later(struct attach *a, struct process *p, bool stopped)
{
	uint64_t time = clock__now_ns() + (stopped ? STOPPED_NS : LATER_NS);

	if (array__reserve((void **)&a->later, &a->later_size, a->nr_later, sizeof(*a->later)))
		return false;
	a->later[a->nr_later++] = (struct later){ p, time, stopped };
	set_way(a, p, WAY_LATER);
	return true;
}

static void on_injected(void *ctx, struct process *p, int err, pid_t holder, const char *why)
{
	struct attach *a = ctx;

	if (!err) {
		/* Unless it has said already what becomes of it. */
		if (way_of(a, p) == WAY_ENTERING || way_of(a, p) == WAY_ENTERING_AGAIN)
			set_way(a, p, WAY_LIBRARY);
	} else if (err == -EBUSY) {
		attach__taken(a, p, holder);
	} else if (err == -ESRCH || p->exited) {
		set_way(a, p, WAY_GONE);
	} else if (err == -EAGAIN && is_stopped(p) && try_later(a, p, true)) {
		log_warn_some("process %d (%s) is stopped by a signal: the timing library gets in when it "
			      "goes on, as by kill -CONT %d", (int)p->tgid, p->comm, (int)p->tgid);
	} else if ((err == -EAGAIN || err == -ETIMEDOUT) && way_of(a, p) == WAY_ENTERING &&
		   try_later(a, p, false)) {
		log_warn_some("process %d (%s): the timing library is not in yet, since %s; it is tried "
			      "once more", (int)p->tgid, p->comm, why);
	} else {
		log_warn_some("no GPU times in process %d (%s): the timing library does not get in, since "
			      "%s; its launches are counted", (int)p->tgid, p->comm, why);
		count_by_probes(a, p);
	}
}

void attach__armed(struct attach *a, struct process *p)
{
	if (way_of(a, p) != WAY_TIMED)
		a->counts.timed++;
	set_way(a, p, WAY_TIMED);
}

void attach__refused(struct attach *a, struct process *p, enum channel_reason reason,
		     uint32_t detail)
{
	char why[CHANNEL_REFUSAL];

	log_warn_some("no GPU times in process %d: %s; its launches are counted", (int)p->tgid,
		      channel__refusal(why, reason, detail));
	count_by_probes(a, p);
}

void attach__unreached(struct attach *a, struct process *p, int err)
{
	log_warn_some("no GPU times in process %d (%s): the timing library's memory in it can't be reached "
		      "(%s); its launches are counted", (int)p->tgid, p->comm, strerror(-err));
	count_by_probes(a, p);
}

void attach__taken(struct attach *a, struct process *p, pid_t holder)
{
	if (way_of(a, p) == WAY_TAKEN)
		return;		/* its library greeted us, too */
	set_way(a, p, WAY_TAKEN);
	a->counts.taken++;
	holder__say(a->config.options, p->tgid, holder);
	/* With -a it is seen from outside all the same, and would be a new one with its next sample. */
	if (!a->config.options->all)
		processes__exited(a->config.processes, p->tgid);
}
