/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether somebody wants a process left alone: no timing library in it, no probes for it. */
#ifndef LOADER_KEPT_OUT_H
#define LOADER_KEPT_OUT_H

#include <sys/types.h>

#define KEPT_OUT_VARIABLE "GPUCOLLECT_DISABLE"
#define KEPT_OUT_FILE "/etc/gpucollect/disable"

/*
 * NULL: it is not. Else why, for a message ("…, since %s"): the variable was in the environment that it was
 * started with, whatever its value; or the file is there, on the machine or in the process's root
 * directory. Of a process that is gone: NULL.
 */
const char *kept_out__why(pid_t tgid);

#endif
