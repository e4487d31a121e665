/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A timing library that a process has had from an earlier attach, or from its driver. */
#ifndef TRACER_PRESENT_H
#define TRACER_PRESENT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpu_timing/channel.h"

struct space;

struct present {
	uint64_t attach, identity;	/* addresses in the process; 0: there is none */
	int file;			/* ours, of the process's space */
	struct channel_identity found;
};

/* 0, there or not; -ENOTSUP and why: one that can't be used. */
int present__find(struct present *p, const struct space *s, char *why, size_t size);

/* Whether it is still there: another program, by exec, has something else at that place. */
bool present__is_there(const struct present *p, pid_t pid);

#endif
