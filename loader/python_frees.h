/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counts the code objects that Python processes free, by a probe in each: while none was freed, no
 * address has become another function's, and the BPF side need not look at functions that it knows
 * (before 3.12: later ones count themselves). Only in those that launch, for at most GPUCOLLECT_MAX_FREED
 * - 1 at a time, and not for long where it would cost more than it gains.
 */
#ifndef LOADER_PYTHON_FREES_H
#define LOADER_PYTHON_FREES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "bpf/python_frames.h"
#include "loader/files.h"
#include "loader/processes.h"
#include "loader/python.h"

struct python_frees;

struct python_frees_config {
	int program_fd;			/* counts in the element that is the probe's cookie */
	struct python_freed *freed;	/* the BPF side's map */
	struct files *files;
	struct processes *processes;
	struct python *python;
};

/* NULL: out of memory. */
struct python_frees *python_frees__new(const struct python_frees_config *config);
void python_frees__free(struct python_frees *f);	/* stops and waits, too; NULL is fine */

/* A process launched something; cheap where it is known already. */
void python_frees__launched(struct python_frees *f, struct process *p);
/* Places probes and takes them away; to be called some dozen times a second. */
void python_frees__tick(struct python_frees *f);
/* Takes all away, in the background. Nothing is placed any more. */
void python_frees__stop(struct python_frees *f);

#define FREES_PER_SECOND 300	/* some 0.3 ms of the process's time */
#define FREES_SECONDS 10
#define FREES_AT_ONCE 30000	/* in all of a time with too many: what imports free is less */

/* How many were freed lately. */
struct python_frees_rate {
	uint64_t nr;		/* a second ago */
	uint64_t sum;		/* in the seconds before, one by one with too many */
	unsigned int seconds;
};
/* Pure: whether that is too many, `nr` having been freed by now. `second`: one is over. */
bool python_frees__too_many(struct python_frees_rate *r, uint64_t nr, bool second);

#endif
