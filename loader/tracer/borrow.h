/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds a thread of a process that may be borrowed, and has something done with it. */
#ifndef TRACER_BORROW_H
#define TRACER_BORROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "loader/tracer/remote.h"
#include "loader/tracer/safety.h"

struct libc;
struct space;
struct table;
struct thread_choice;

struct borrow {
	struct space *space;
	const struct libc *libc;
	struct safety *safety;
	const bool *cancelled;		/* written by another thread */
	uint64_t longest;		/* ns that a thread was held */
	unsigned int holds;
	char why[SAFETY_WHY];		/* the last thread's reason */
	/* its own */
	struct remote remote;
	struct safety_look before, now;
	/* Where threads sleep that must not be borrowed there: they are not stopped again. */
	struct table *refused;
	unsigned int stops, forbidden;	/* tried in this round; that we may not make */
	int (*use)(struct remote *r, void *ctx);
	void *ctx;
	uint64_t deadline;
};

/*
 * What is done with the thread, which is held and has its way home prepared. It is to be brought
 * home, or left, before this returns. In a thread of its own, whose end lets go of what it holds.
 */
typedef int (*borrow_use)(struct remote *r, void *ctx);

/* 0 or -ENOMEM. The first four members are the caller's. */
int borrow__init(struct borrow *b);
void borrow__free(struct borrow *b);

/*
 * Returns what `use` returned; or, without having called it: -EAGAIN no thread could be borrowed
 * until the deadline (CLOCK_MONOTONIC, ns), or the process is stopped: `why`; -EBUSY somebody else
 * traces it; -EPERM tracing is forbidden: `why`; -ESRCH the process is gone or another; -ENOTSUP its
 * C library's code has changed; -ECANCELED; -ENOMEM, …
 */
int borrow__run(struct borrow *b, uint64_t deadline, borrow_use use, void *ctx);

#endif
