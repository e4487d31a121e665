/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the BPF side knows of processes: maps procs, slots and mappings (bpf/gpucollect.h). A process
 * has at most one slot, and a slot at most one list of mappings.
 */
#ifndef LOADER_SLOTS_H
#define LOADER_SLOTS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/gpucollect.h"

struct slots;

/* What is mmap'ed of the BPF side, and the descriptor of map procs. */
struct processes_maps {
	bool all;		/* every process is recorded, whether map procs has it or not */
	int procs_fd;
	struct proc_slot *slots;	/* GPUCOLLECT_MAX_PROCS */
	struct mapping *mappings;	/* GPUCOLLECT_MAX_MAPPINGS */
};

struct slots *slots__new(const struct processes_maps *maps);	/* NULL: out of memory */
void slots__free(struct slots *s);	/* NULL is fine */

/*
 * Makes a process known, or what is new of it; proc->slot is given out where it is PROC_NO_SLOT.
 * Until a list is published all its stacks come as copies. With `listed` it is known already; unless all
 * processes are recorded it must be, else it has ended, and its number may be another's: -ENOENT.
 * 0, -ENOSPC (all slots are in use) or what bpf(2) gave.
 */
int slots__announce(struct slots *s, pid_t tgid, struct proc *proc, bool listed);
/* False: the process that was announced with that slot has ended. */
bool slots__lives(const struct slots *s, pid_t tgid, uint32_t slot);
/* The process has ended. */
void slots__forget(struct slots *s, pid_t tgid);
/* The slot may be given to another process. PROC_NO_SLOT is fine. */
void slots__release(struct slots *s, uint32_t slot);
/* Another image is in the process: its anonymous code is other code. */
void slots__renew(struct slots *s, uint32_t slot);

/* Number of execs that the BPF side saw in the process. */
uint32_t slots__execs(const struct slots *s, uint32_t slot);
/*
 * Publishes a list, sorted by start, in place of the one there was; slots__hold says of which image
 * it is. False: no room for it; no list is published then.
 */
bool slots__publish(struct slots *s, uint32_t slot, const struct mapping *list, uint32_t nr);
/* The published list holds as long as slots__execs gives `execs`. */
void slots__hold(struct slots *s, uint32_t slot, uint32_t execs);
/* All stacks come as copies until slots__hold is called again. PROC_NO_SLOT is fine. */
void slots__doubt(struct slots *s, uint32_t slot);
/* Takes the list back: all stacks come as copies from now on. PROC_NO_SLOT is fine. */
void slots__drop(struct slots *s, uint32_t slot);
/* How many stacks with code in no known mapping are to come as copies. */
void slots__allow_unknown(struct slots *s, uint32_t slot, int32_t nr);

#endif
