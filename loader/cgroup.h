/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A control group, version 2, and the processes in it and below it. */
#ifndef LOADER_CGROUP_H
#define LOADER_CGROUP_H

#include <sys/types.h>

/*
 * `path` is a directory, or a path below the place where the groups are mounted, as /proc/PID/cgroup
 * shows it or without the first slash. A descriptor; or -ENOENT, -EINVAL (none are mounted) or another
 * negative errno, with *why for the user (malloc'd; NULL: no memory).
 */
int cgroup__open(const char *path, char **why);

/* Something other than 0 ends it, and is what it returns. */
typedef int (*cgroup_fn)(void *ctx, pid_t pid);
/* Those that are visible from here. 0 or fn's; groups that are gone meanwhile have none. */
int cgroup__each(int fd, cgroup_fn fn, void *ctx);

#endif
