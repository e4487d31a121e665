/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Addresses that came to mean other code since a process's mappings were read: a library took the place
 * of one that is gone. The BPF side gave their frames the old file; by the time of the stack it is known
 * which is right.
 */
#ifndef LOADER_CHANGED_H
#define LOADER_CHANGED_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/files.h"
#include "loader/processes.h"
#include "loader/sampling.h"

/* True if something that was mapped differently before is mapped now. */
bool changed__add(struct process *p, struct files *files, const struct sampling_event *event);

/* Whether there is anything to put right in a stack of `time` (CLOCK_MONOTONIC, ns). */
bool changed__recently(const struct process *p, uint64_t time);
/* Puts the files right of `nr` words (bpf/gpucollect.h) of a stack of `time`. True if any was wrong. */
bool changed__correct(const struct process *p, uint64_t *words, uint32_t nr, uint64_t time);

#endif
