/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The names of the threads that something was recorded of. Read when a thread is first met, since it may
 * end; a second or two later, since most give themselves a name after they have begun; and for the result.
 */
#ifndef LOADER_THREAD_NAMES_H
#define LOADER_THREAD_NAMES_H

#include <stdint.h>

#include "loader/processes.h"
#include "loader/profile/profile.h"

struct thread_names;

struct thread_names *thread_names__new(void);		/* NULL: out of memory */
void thread_names__free(struct thread_names *t);	/* NULL is fine */

/* Something was recorded of thread `tid`, 0: it isn't known of which. 0 or -ENOMEM. */
int thread_names__met(struct thread_names *t, const struct process *p, uint32_t tid);
/* To be called every second. */
void thread_names__look_again(struct thread_names *t, const struct processes *processes);
/* Those that are known, into the model: of `processes`, which those that were met are of. 0 or -ENOMEM. */
int thread_names__add(struct thread_names *t, const struct processes *processes, struct profile *p);

#endif
