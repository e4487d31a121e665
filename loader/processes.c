// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/processes.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/array.h"
#include "loader/base/clock.h"
#include "loader/base/log.h"
#include "loader/base/table.h"
#include "loader/comm.h"
#include "loader/mappings.h"
#include "loader/rank.h"
#include "loader/slots.h"

#define UNKNOWN_BUDGET 256	/* stacks with unknown code that are looked at before giving up */

struct processes {
	struct slots *slots;
	struct files *files;
	struct process **process;	/* by index */
	uint32_t nr;
	size_t room;
	struct table *by_tgid;		/* tgid -> index of the one that lives */
	unsigned int alive;
	uint64_t limited[NR_PROCESSES_LIMITS];
};

/* In the place of those that nobody remembers: a machine may start a thousand processes a second. */
static struct process nobody = { .slot = PROC_NO_SLOT, .exited = true };

struct processes *processes__new(const struct processes_maps *maps, struct files *files)
{
	struct processes *ps = calloc(1, sizeof(*ps));

	if (!ps)
		return NULL;
	ps->files = files;
	ps->by_tgid = table__new();
	ps->slots = slots__new(maps);
	if (ps->by_tgid && ps->slots)
		return ps;
	processes__free(ps);
	return NULL;
}

void processes__free(struct processes *ps)
{
	uint32_t i;

	if (!ps)
		return;
	for (i = 0; i < ps->nr; i++) {
		if (ps->process[i] == &nobody)
			continue;
		free(ps->process[i]->mappings);
		free(ps->process[i]->changes);
		free(ps->process[i]);
	}
	free(ps->process);
	table__free(ps->by_tgid);
	slots__free(ps->slots);
	free(ps);
}

static void set_comm(struct process *p, const char *comm)
{
	memset(p->comm, 0, sizeof(p->comm));
	memcpy(p->comm, comm, strnlen(comm, sizeof(p->comm) - 1));
}

struct process *processes__find(struct processes *ps, pid_t tgid)
{
	uint64_t index;

	return table__get(ps->by_tgid, (uint64_t)tgid, &index) ? ps->process[index] : NULL;
}

uint32_t processes__count(const struct processes *ps)
{
	return ps->nr;
}

struct process *processes__at(const struct processes *ps, uint32_t index)
{
	return ps->process[index];
}

unsigned int processes__alive(const struct processes *ps)
{
	return ps->alive;
}

uint64_t processes__limited(const struct processes *ps, enum processes_limit limit)
{
	return ps->limited[limit];
}

static void processes__limit(struct processes *ps, struct process *p, enum processes_limit limit)
{
	ps->limited[limit] += !(p->limits >> limit & 1);
	p->limits |= (uint8_t)(1u << limit);
}

static struct process *processes__add(struct processes *ps, pid_t tgid, bool target)
{
	struct process *p;

	if (array__reserve((void **)&ps->process, &ps->room, ps->nr, sizeof(*ps->process)))
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->tgid = tgid;
	p->index = ps->nr;
	p->slot = PROC_NO_SLOT;
	p->parent = p->index;
	p->rank = RANK_NONE;
	p->target = target;
	if (table__set(ps->by_tgid, (uint64_t)tgid, p->index)) {
		free(p);
		return NULL;
	}
	ps->process[ps->nr++] = p;
	ps->alive += target;
	return p;
}

/* The process is over, or another image now: its index lives on for what was recorded. */
static void processes__retire(struct processes *ps, struct process *p)
{
	if (p->exited)
		return;
	p->exited = true;
	ps->alive -= p->target;
	p->published = false;
	slots__drop(ps->slots, p->slot);
	slots__release(ps->slots, p->slot);
	p->slot = PROC_NO_SLOT;
	free(p->mappings);
	free(p->changes);
	p->mappings = NULL;
	p->changes = NULL;
	p->nr_mappings = 0;
	p->nr_changes = 0;
	table__remove(ps->by_tgid, (uint64_t)p->tgid);
	if (p->kept)
		return;
	ps->process[p->index] = &nobody;
	free(p);
}

/* Makes the BPF side know the process; without a slot it sends copies of all its stacks. */
static void processes__announce(struct processes *ps, struct process *p)
{
	struct proc proc = {
		.slot = p->slot,
		.flags = (p->target ? PROC_TARGET : 0) | (p->probed ? PROC_PROBED : 0),
		.python = p->python.layout,
		.python_freed = p->freed,
		.python_code = p->python.code,
		.python_runtime = p->python.runtime,
	};
	int err = slots__announce(ps->slots, p->tgid, &proc, p->listed);

	p->slot = proc.slot;
	if (err == -ENOENT)
		processes__retire(ps, p);
	else if (err)
		processes__limit(ps, p, LIMIT_PROCESSES);
	else
		p->listed = true;
}

/* Takes over what was read, and tells the BPF side if it is new. */
static void processes__take(struct processes *ps, struct process *p, const struct mappings *m)
{
	bool same = m->nr == p->nr_mappings &&
		    (!m->nr || !memcmp(m->list, p->mappings, m->nr * sizeof(*m->list)));

	if (m->cut)
		processes__limit(ps, p, LIMIT_OWN_MAPPINGS);
	free(p->mappings);
	p->mappings = m->list;
	p->nr_mappings = m->nr;
	if (!same)
		p->fruitless = 0;
	if (p->slot == PROC_NO_SLOT)
		return;
	if (!same || !p->published)
		p->published = slots__publish(ps->slots, p->slot, p->mappings, p->nr_mappings);
	if (!p->published) {
		processes__limit(ps, p, LIMIT_MAPPINGS);
		return;
	}
	slots__allow_unknown(ps->slots, p->slot, UNKNOWN_BUDGET);
	slots__hold(ps->slots, p->slot, p->execs);
}

int processes__refresh(struct processes *ps, struct process *p)
{
	struct mappings before = { p->mappings, p->nr_mappings, false }, now;
	uint64_t start = clock__own_ns();
	uint32_t execs = 0;
	int err;

	if (p->exited)
		return -ESRCH;
	p->kept = true;
	processes__announce(ps, p);
	if (p->exited)
		return -ESRCH;
	if (p->slot != PROC_NO_SLOT)
		execs = slots__execs(ps->slots, p->slot);
	p->read_at = clock__now_ns();
	err = mappings__read(ps->files, p->tgid, &before, &now);
	p->read_took = clock__own_ns() - start;
	if (err)
		return err;		/* what was known stays: the process is over */
	p->execs = execs;
	p->doubtful = false;
	processes__take(ps, p, &now);
	return 0;
}

int processes__remember(struct processes *ps, struct process *p, const struct recent *recent,
			uint64_t time)
{
	struct mappings m;
	int err = mappings__recall(ps->files, p->tgid, recent, time, &m);

	if (err)
		return err;
	free(p->mappings);
	p->mappings = m.list;
	p->nr_mappings = m.nr;
	return 0;
}

struct process *processes__get(struct processes *ps, pid_t tgid, bool target)
{
	struct process *p = processes__find(ps, tgid);
	int err;

	if (p)
		return p;
	p = processes__add(ps, tgid, target);
	if (!p)
		return NULL;
	comm__read(tgid, tgid, p->comm);
	err = processes__refresh(ps, p);
	if (err)
		log_debug("mappings of process %d: %s", (int)tgid, strerror(-err));
	return p;
}

void processes__probe(struct processes *ps, struct process *p)
{
	p->probed = true;
	p->kept = true;
	if (!p->exited)
		processes__announce(ps, p);
}

void processes__set_python(struct processes *ps, struct process *p, const struct process_python *python)
{
	p->python = *python;
	p->kept = true;
	if (!p->exited)
		processes__announce(ps, p);
}

void processes__set_freed(struct processes *ps, struct process *p, uint32_t freed)
{
	p->freed = freed;
	p->kept = true;
	if (!p->exited)
		processes__announce(ps, p);
}

bool processes__stale(const struct processes *ps, const struct process *p)
{
	if (!p->read_at)
		return true;
	return p->slot != PROC_NO_SLOT && slots__execs(ps->slots, p->slot) != p->execs;
}

void processes__fruitless(struct processes *ps, struct process *p)
{
	p->fruitless += p->fruitless < PROCESSES_FRUITLESS;
	if (p->slot != PROC_NO_SLOT)
		slots__allow_unknown(ps->slots, p->slot,
				     p->fruitless < PROCESSES_FRUITLESS ? UNKNOWN_BUDGET : 1);
}

void processes__ask_rank(struct process *p)
{
	uint32_t rank = p->rank_asked ? RANK_NONE : rank__of(p->tgid);

	p->rank_asked = true;
	if (rank != RANK_NONE)
		p->rank = rank;
}

void processes__forked(struct processes *ps, pid_t parent, pid_t child, const char *comm)
{
	struct process *from = processes__find(ps, parent), *p = processes__find(ps, child);

	if (p)
		processes__retire(ps, p);	/* its exit was lost: the pid is in use again */
	p = processes__add(ps, child, true);
	if (!p)
		return;
	p->listed = true;
	set_comm(p, comm);
	if (!from)
		return;
	p->python = from->python;
	p->rank = from->rank;
	p->parent = from->index;
	if (!from->nr_mappings)
		return;
	/* Should it be gone before its own can be read, these are right. */
	p->mappings = malloc(from->nr_mappings * sizeof(*p->mappings));
	if (!p->mappings)
		return;
	memcpy(p->mappings, from->mappings, from->nr_mappings * sizeof(*p->mappings));
	p->nr_mappings = from->nr_mappings;
}

void processes__execed(struct processes *ps, pid_t tgid, const char *comm, bool target)
{
	struct process *old = processes__find(ps, tgid), *p;
	uint32_t slot = PROC_NO_SLOT;

	if (old) {
		target = old->target;
		slot = old->slot;
		slots__drop(ps->slots, slot);
		old->slot = PROC_NO_SLOT;
		processes__retire(ps, old);
	}
	p = processes__add(ps, tgid, target);
	if (!p)
		return;
	set_comm(p, comm);
	p->listed = true;
	p->slot = slot;
	if (slot != PROC_NO_SLOT)
		slots__renew(ps->slots, slot);
}

void processes__exited(struct processes *ps, pid_t tgid)
{
	struct process *p = processes__find(ps, tgid);

	if (!p)
		return;
	slots__forget(ps->slots, tgid);		/* may have been announced after the BPF side removed it */
	processes__retire(ps, p);
}

void processes__doubt_of(struct processes *ps, struct process *p)
{
	if (p->exited)
		return;
	p->doubtful = true;
	slots__doubt(ps->slots, p->slot);
}

void processes__doubt(struct processes *ps)
{
	uint32_t i;

	for (i = 0; i < ps->nr; i++)
		processes__doubt_of(ps, ps->process[i]);
}

/* The number may be in use again: what the BPF side knows is of this process. */
static bool has_ended(const struct processes *ps, const struct process *p)
{
	if (p->listed && p->slot != PROC_NO_SLOT && !slots__lives(ps->slots, p->tgid, p->slot))
		return true;
	return kill(p->tgid, 0) && errno == ESRCH;
}

void processes__sweep(struct processes *ps)
{
	uint32_t i;

	for (i = 0; i < ps->nr; i++) {
		struct process *p = ps->process[i];

		if (p->exited)
			continue;
		if (p->fruitless < PROCESSES_FRUITLESS)
			p->fruitless = 0;
		/* Its last records may have been made a moment ago. */
		if (!has_ended(ps, p))
			p->missed = false;
		else if (p->missed)
			processes__retire(ps, p);
		else
			p->missed = true;
	}
}
