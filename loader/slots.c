// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "loader/base/clock.h"
#include "loader/ranges.h"

struct slots {
	struct processes_maps maps;
	struct ranges *free_slots;
	struct ranges *free_mappings;
	uint32_t generations;
};

struct slots *slots__new(const struct processes_maps *maps)
{
	struct slots *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->maps = *maps;
	s->free_slots = ranges__new(GPUCOLLECT_MAX_PROCS);
	s->free_mappings = ranges__new(GPUCOLLECT_MAX_MAPPINGS);
	if (s->free_slots && s->free_mappings)
		return s;
	slots__free(s);
	return NULL;
}

void slots__free(struct slots *s)
{
	if (!s)
		return;
	ranges__free(s->free_slots);
	ranges__free(s->free_mappings);
	free(s);
}

int slots__announce(struct slots *s, pid_t tgid, struct proc *proc, bool listed)
{
	__u32 key = (__u32)tgid;
	struct proc_slot *new;

	if (proc->slot == PROC_NO_SLOT) {
		if (!ranges__get(s->free_slots, 1, clock__now_ns(), &proc->slot))
			return -ENOSPC;
		new = &s->maps.slots[proc->slot];
		new->mappings = 0;
		new->read_seq = new->map_seq - 1;
		new->generation = ++s->generations;
		new->tgid = key;
	}
	if (!bpf_map_update_elem(s->maps.procs_fd, &key, proc,
				 listed && !s->maps.all ? BPF_EXIST : BPF_ANY))
		return 0;
	return -errno;
}

/* The programs remove what ends, and add what is new without a slot. */
bool slots__lives(const struct slots *s, pid_t tgid, uint32_t slot)
{
	__u32 key = (__u32)tgid;
	struct proc proc;

	return !bpf_map_lookup_elem(s->maps.procs_fd, &key, &proc) && proc.slot == slot;
}

void slots__forget(struct slots *s, pid_t tgid)
{
	__u32 key = (__u32)tgid;

	bpf_map_delete_elem(s->maps.procs_fd, &key);
}

void slots__release(struct slots *s, uint32_t slot)
{
	if (slot != PROC_NO_SLOT)
		ranges__put(s->free_slots, slot, 1, clock__now_ns());
}

void slots__renew(struct slots *s, uint32_t slot)
{
	s->maps.slots[slot].generation = ++s->generations;
}

uint32_t slots__execs(const struct slots *s, uint32_t slot)
{
	return __atomic_load_n(&s->maps.slots[slot].map_seq, __ATOMIC_ACQUIRE);
}

static void put_range(struct slots *s, uint64_t range)
{
	if ((uint32_t)range)
		ranges__put(s->free_mappings, (uint32_t)(range >> 32), (uint32_t)range,
			    clock__now_ns());
}

/*
 * The old list holds until the new one stands. The number goes up before and after: what a program
 * finds meanwhile it knows under none of the two.
 */
bool slots__publish(struct slots *s, uint32_t slot, const struct mapping *list, uint32_t nr)
{
	struct proc_slot *p = &s->maps.slots[slot];
	uint64_t old = p->mappings;
	uint32_t first = 0;

	if (nr && !ranges__get(s->free_mappings, nr, clock__now_ns(), &first)) {
		slots__drop(s, slot);
		return false;
	}
	if (nr)
		memcpy(&s->maps.mappings[first], list, nr * sizeof(*list));
	__atomic_store_n(&p->mappings_seq, p->mappings_seq + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&p->mappings, (uint64_t)first << 32 | nr, __ATOMIC_RELEASE);
	__atomic_store_n(&p->mappings_seq, p->mappings_seq + 1, __ATOMIC_RELEASE);
	put_range(s, old);
	return true;
}

void slots__hold(struct slots *s, uint32_t slot, uint32_t execs)
{
	__atomic_store_n(&s->maps.slots[slot].read_seq, execs, __ATOMIC_RELEASE);
}

void slots__doubt(struct slots *s, uint32_t slot)
{
	struct proc_slot *p = &s->maps.slots[slot];

	if (slot != PROC_NO_SLOT)
		__atomic_store_n(&p->read_seq, p->map_seq - 1, __ATOMIC_RELEASE);
}

void slots__drop(struct slots *s, uint32_t slot)
{
	struct proc_slot *p = &s->maps.slots[slot];
	uint64_t range;

	if (slot == PROC_NO_SLOT)
		return;
	range = p->mappings;
	slots__doubt(s, slot);
	__atomic_store_n(&p->mappings, 0, __ATOMIC_RELEASE);
	put_range(s, range);
}

void slots__allow_unknown(struct slots *s, uint32_t slot, int32_t nr)
{
	__atomic_store_n(&s->maps.slots[slot].unknown_budget, nr, __ATOMIC_RELAXED);
}
