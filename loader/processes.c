// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "loader/base/array.h"
#include "loader/base/clock.h"
#include "loader/base/log.h"
#include "loader/base/table.h"
#include "loader/ranges.h"

#define UNKNOWN_BUDGET 256	/* stacks with unknown code that are looked at before giving up */

struct processes {
	struct processes_maps maps;
	struct files *files;
	struct process **process;	/* by index */
	uint32_t nr;
	size_t room;
	struct table *by_tgid;		/* tgid -> index of the one that lives */
	struct ranges *slots;
	struct ranges *mappings;
	uint32_t generations;
	unsigned int alive;
	uint64_t limited[NR_PROCESSES_LIMITS];
};

struct processes *processes__new(const struct processes_maps *maps, struct files *files)
{
	struct processes *ps = calloc(1, sizeof(*ps));

	if (!ps)
		return NULL;
	ps->maps = *maps;
	ps->files = files;
	ps->by_tgid = table__new();
	ps->slots = ranges__new(GPUCOLLECT_MAX_PROCS);
	ps->mappings = ranges__new(GPUCOLLECT_MAX_MAPPINGS);
	if (ps->by_tgid && ps->slots && ps->mappings)
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
		free(ps->process[i]->mappings);
		free(ps->process[i]);
	}
	free(ps->process);
	table__free(ps->by_tgid);
	ranges__free(ps->slots);
	ranges__free(ps->mappings);
	free(ps);
}

static void set_comm(struct process *p, const char *comm)
{
	memset(p->comm, 0, sizeof(p->comm));
	memcpy(p->comm, comm, strnlen(comm, sizeof(p->comm) - 1));
}

static void read_comm(struct process *p)
{
	char path[64], comm[GPUCOLLECT_COMM_LEN + 2];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)p->tgid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, comm, sizeof(comm) - 1);
	close(fd);
	if (n <= 0)
		return;
	if (comm[n - 1] == '\n')
		n--;
	comm[n] = '\0';
	set_comm(p, comm);
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
	p->target = target;
	if (table__set(ps->by_tgid, (uint64_t)tgid, p->index)) {
		free(p);
		return NULL;
	}
	ps->process[ps->nr++] = p;
	ps->alive += target;
	return p;
}

static void processes__put_range(struct processes *ps, uint64_t range)
{
	if ((uint32_t)range)
		ranges__put(ps->mappings, (uint32_t)(range >> 32), (uint32_t)range, clock__now_ns());
}

/* From now on the BPF side knows none, and sends copies. */
static void processes__drop_mappings(struct processes *ps, struct process *p)
{
	struct proc_slot *slot;
	uint64_t range;

	p->published = false;
	if (p->slot == PROC_NO_SLOT)
		return;
	slot = &ps->maps.slots[p->slot];
	range = slot->mappings;
	__atomic_store_n(&slot->read_seq, slot->map_seq - 1, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->mappings, 0, __ATOMIC_RELEASE);
	processes__put_range(ps, range);
}

/* The process is over, or another image now: its index lives on for what was recorded. */
static void processes__retire(struct processes *ps, struct process *p)
{
	if (p->exited)
		return;
	p->exited = true;
	ps->alive -= p->target;
	processes__drop_mappings(ps, p);
	if (p->slot != PROC_NO_SLOT)
		ranges__put(ps->slots, p->slot, 1, clock__now_ns());
	p->slot = PROC_NO_SLOT;
	free(p->mappings);
	p->mappings = NULL;
	p->nr_mappings = 0;
	table__remove(ps->by_tgid, (uint64_t)p->tgid);
}

/* Makes the BPF side know the process; its mappings stay "not read" until they are published. */
static int processes__announce(struct processes *ps, struct process *p)
{
	struct proc proc = {
		.flags = (p->target ? PROC_TARGET : 0) | (p->probed ? PROC_PROBED : 0),
	};
	__u32 key = (__u32)p->tgid;
	struct proc_slot *slot;

	if (p->slot == PROC_NO_SLOT) {
		if (!ranges__get(ps->slots, 1, clock__now_ns(), &p->slot))
			return -ENOSPC;
		slot = &ps->maps.slots[p->slot];
		slot->mappings = 0;
		slot->read_seq = slot->map_seq - 1;
		slot->generation = ++ps->generations;
		slot->tgid = key;
	}
	proc.slot = p->slot;
	return bpf_map_update_elem(ps->maps.procs_fd, &key, &proc, BPF_ANY);
}

struct gather {
	struct processes *ps;
	struct process *p;
	struct mapping *mappings;
	uint32_t nr;
	size_t room;
};

static int gather_mapping(const struct maps_line *line, void *arg)
{
	struct gather *g = arg;
	struct mapping *m;

	if (g->nr == GPUCOLLECT_MAX_PROC_MAPPINGS) {
		processes__limit(g->ps, g->p, LIMIT_OWN_MAPPINGS);
		return 0;
	}
	if (array__reserve((void **)&g->mappings, &g->room, g->nr, sizeof(*m)))
		return -ENOMEM;
	m = &g->mappings[g->nr++];
	m->start = line->start;
	m->end = line->end;
	m->offset = line->offset;
	m->file = files__of_mapping(g->ps->files, g->p->tgid, line);
	m->kind = m->file ? MAPPING_FILE :
		  strcmp(line->path, "[uprobes-trampoline]") ? MAPPING_ANON : MAPPING_TRAMPOLINE;
	return 0;
}

/*
 * The old list holds until the new one stands. The number goes up before and after: what a program
 * finds meanwhile it knows under none of the two.
 */
static void processes__publish(struct processes *ps, struct process *p)
{
	struct proc_slot *slot = &ps->maps.slots[p->slot];
	uint64_t old = slot->mappings;
	uint32_t first = 0;

	if (p->nr_mappings && !ranges__get(ps->mappings, p->nr_mappings, clock__now_ns(), &first)) {
		processes__limit(ps, p, LIMIT_MAPPINGS);
		processes__drop_mappings(ps, p);
		return;
	}
	memcpy(&ps->maps.mappings[first], p->mappings, p->nr_mappings * sizeof(*p->mappings));
	__atomic_store_n(&slot->mappings_seq, slot->mappings_seq + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->mappings, (uint64_t)first << 32 | p->nr_mappings, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->mappings_seq, slot->mappings_seq + 1, __ATOMIC_RELEASE);
	processes__put_range(ps, old);
	p->published = true;
}

/* Takes over what was read, and tells the BPF side if it is new. */
static void processes__take(struct processes *ps, struct process *p, const struct gather *g)
{
	bool same = g->nr == p->nr_mappings &&
		    (!g->nr || !memcmp(g->mappings, p->mappings, g->nr * sizeof(*g->mappings)));

	free(p->mappings);
	p->mappings = g->mappings;
	p->nr_mappings = g->nr;
	if (!same)
		p->fruitless = 0;
	if (p->slot == PROC_NO_SLOT)
		return;
	if (!same || !p->published)
		processes__publish(ps, p);
	if (!p->published)
		return;
	__atomic_store_n(&ps->maps.slots[p->slot].unknown_budget, UNKNOWN_BUDGET, __ATOMIC_RELAXED);
	__atomic_store_n(&ps->maps.slots[p->slot].read_seq, p->seq, __ATOMIC_RELEASE);
}

int processes__refresh(struct processes *ps, struct process *p)
{
	struct gather g = { .ps = ps, .p = p };
	uint64_t start = clock__own_ns();
	uint32_t seq = 0;
	int err;

	if (p->exited)
		return -ESRCH;
	/* Without a slot the BPF side sends copies of its stacks, which these mappings serve, too. */
	if (processes__announce(ps, p))
		processes__limit(ps, p, LIMIT_PROCESSES);
	if (p->slot != PROC_NO_SLOT)
		seq = __atomic_load_n(&ps->maps.slots[p->slot].map_seq, __ATOMIC_ACQUIRE);
	p->read_at = clock__now_ns();
	err = maps__read(p->tgid, gather_mapping, &g);
	p->read_took = clock__own_ns() - start;
	if (err) {
		free(g.mappings);	/* what was known stays: the process is over */
		return err;
	}
	p->seq = seq;
	processes__take(ps, p, &g);
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
	read_comm(p);
	err = processes__refresh(ps, p);
	if (err)
		log_debug("mappings of process %d: %s", (int)tgid, strerror(-err));
	return p;
}

void processes__probe(struct processes *ps, struct process *p)
{
	p->probed = true;
	if (!p->exited && processes__announce(ps, p))
		processes__limit(ps, p, LIMIT_PROCESSES);
}

bool processes__stale(const struct processes *ps, const struct process *p)
{
	if (!p->read_at)
		return true;
	return p->slot != PROC_NO_SLOT &&
	       __atomic_load_n(&ps->maps.slots[p->slot].map_seq, __ATOMIC_ACQUIRE) != p->seq;
}

void processes__fruitless(struct processes *ps, struct process *p)
{
	p->fruitless += p->fruitless < PROCESSES_FRUITLESS;
	if (p->slot != PROC_NO_SLOT)
		__atomic_store_n(&ps->maps.slots[p->slot].unknown_budget,
				 p->fruitless < PROCESSES_FRUITLESS ? UNKNOWN_BUDGET : 1,
				 __ATOMIC_RELAXED);
}

void processes__forked(struct processes *ps, pid_t parent, pid_t child, const char *comm)
{
	struct process *from = processes__find(ps, parent), *p = processes__find(ps, child);

	if (p)
		processes__retire(ps, p);	/* its exit was lost: the pid is in use again */
	p = processes__add(ps, child, true);
	if (!p)
		return;
	set_comm(p, comm);
	if (!from || !from->nr_mappings)
		return;
	/* Should it be gone before its own can be read, these are right. */
	p->mappings = malloc(from->nr_mappings * sizeof(*p->mappings));
	if (!p->mappings)
		return;
	memcpy(p->mappings, from->mappings, from->nr_mappings * sizeof(*p->mappings));
	p->nr_mappings = from->nr_mappings;
}

void processes__execed(struct processes *ps, pid_t tgid, const char *comm)
{
	struct process *old = processes__find(ps, tgid), *p;
	bool target = old ? old->target : false;
	uint32_t slot = PROC_NO_SLOT;

	if (old) {
		processes__drop_mappings(ps, old);
		slot = old->slot;
		old->slot = PROC_NO_SLOT;
		processes__retire(ps, old);
	}
	p = processes__add(ps, tgid, target);
	if (!p)
		return;
	set_comm(p, comm);
	p->slot = slot;
	if (slot != PROC_NO_SLOT)
		ps->maps.slots[slot].generation = ++ps->generations;
}

void processes__exited(struct processes *ps, pid_t tgid)
{
	struct process *p = processes__find(ps, tgid);
	__u32 key = (__u32)tgid;

	if (!p)
		return;
	/* May have been announced after the BPF side removed it. */
	bpf_map_delete_elem(ps->maps.procs_fd, &key);
	processes__retire(ps, p);
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
		if (kill(p->tgid, 0) && errno == ESRCH)
			processes__exited(ps, p->tgid);
	}
}
