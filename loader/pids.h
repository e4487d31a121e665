/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes as /proc lists them. */
#ifndef LOADER_PIDS_H
#define LOADER_PIDS_H

#include <sys/types.h>

/* Something other than 0 ends it, and is what it returns. */
typedef int (*pids_fn)(void *ctx, pid_t pid);

/*
 * Children, grandchildren and so on, each before its own children; those of a process that is over
 * by now are left out. A kernel without CONFIG_PROC_CHILDREN shows none. 0, -ENOMEM or fn's.
 */
int pids__descendants(pid_t pid, pids_fn fn, void *ctx);

/* All that are visible from here. 0, a negative errno or fn's. */
int pids__all(pids_fn fn, void *ctx);

#endif
