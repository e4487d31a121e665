/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a borrowed thread is made to call for the library to begin (gpu_timing/channel.h): the library
 * itself, where it is there, or the stub, whose own thread then loads it. A thread is started in both
 * cases, and nothing that takes longer is done by the borrowed one.
 */
#ifndef TRACER_ENTRY_H
#define TRACER_ENTRY_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpu_timing/channel.h"

struct libc;
struct placing;
struct present;
struct remote;

struct entry {
	const struct libc *libc;
	struct placing *placing;
	const struct present *present;
	char *why;	/* one line; untouched where the result says all */
	size_t why_size;
	struct channel_attach back;	/* what came back; stage ATTACH_NOT_BEGUN: nothing did */
};

/*
 * With a held thread, which is brought home, or left. 0: the library has begun. -EREMOTEIO: it refuses
 * (`back`); -ETIMEDOUT: the thread does not come back from it; -ESRCH; …
 */
int entry__call_library(struct entry *e, struct remote *r);

/* The same of the stub. 0: its thread has been started. -EREMOTEIO: there can be none: `why`. */
int entry__start_loading(struct entry *e, struct remote *r);
/*
 * What becomes of that thread, which has to wait while others load libraries: no thread is held here.
 * 0: the library has begun; -EREMOTEIO: it couldn't be loaded, or refuses (`back`); -ETIMEDOUT,
 * -ECANCELED (`cancelled`, which another thread writes): the thread has been told to give up, and
 * takes its pages away when it can.
 */
int entry__wait_loaded(struct entry *e, pid_t pid, const bool *cancelled);

#endif
