/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a process sees around it: the variables that it was started with, files by their paths. */
#ifndef LOADER_ENVIRONMENT_H
#define LOADER_ENVIRONMENT_H

#include <sys/stat.h>
#include <sys/types.h>

/*
 * The value of a variable, for the caller to free; of two that getenv would find. 0, also with *value
 * NULL: it isn't set; -ESRCH: the process is over; or another negative errno: that can't be read.
 */
int environment__get(pid_t tgid, const char *name, char **value);

/*
 * The file behind an absolute path as the process sees it: links lead where they lead it. 0, -ENOENT:
 * there is none, -ESRCH: the process is over, or another negative errno.
 */
int environment__stat(pid_t tgid, const char *path, struct stat *st);

#endif
