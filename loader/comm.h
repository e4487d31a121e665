/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The names of threads, of which a process's is its first one's. */
#ifndef LOADER_COMM_H
#define LOADER_COMM_H

#include <linux/types.h>
#include <sys/types.h>

#include "bpf/gpucollect.h"

/* Any bytes but 0. 0 or negative errno; then `comm` is as it was. */
int comm__read(pid_t tgid, pid_t tid, char comm[GPUCOLLECT_COMM_LEN]);

#endif
