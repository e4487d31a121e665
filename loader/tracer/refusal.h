/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Why a process or a thread is not to be borrowed, as far as that shows before it is stopped. */
#ifndef TRACER_REFUSAL_H
#define TRACER_REFUSAL_H

#include <stddef.h>
#include <sys/types.h>

/*
 * 0, or why (one line) and: -ENOTSUP a system-call filter, not 64-bit, memory shared with another
 * process; -EBUSY traced; -EAGAIN stopped; -ESRCH gone.
 */
int refusal__process(pid_t pid, char *why, size_t size);
/* The same of one thread: -ENOTSUP a system-call filter, a shadow stack; -EBUSY traced; -ESRCH. */
int refusal__thread(pid_t pid, pid_t tid, char *why, size_t size);
/* The part of these that may have become true since the thread was chosen; it may be held by us. */
int refusal__confined(pid_t pid, pid_t tid, char *why, size_t size);

#endif
