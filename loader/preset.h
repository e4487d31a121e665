/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether the timing library gets into a process that maps the driver. */
#ifndef LOADER_PRESET_H
#define LOADER_PRESET_H

#include <stdbool.h>
#include <sys/types.h>

#define PRESET_VARIABLE "CUDA_INJECTION64_PATH"

/*
 * False, with *why for a message, where the driver in this process will not load `library`: by the
 * environment that it was started with, and by the files that it sees. What can't be found out, as
 * of a process that is gone, is true.
 */
bool preset__reaches(pid_t tgid, const char *library, const char **why);

#endif
