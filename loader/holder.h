/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which gpucollect is at work in the timing library that a process has. */
#ifndef LOADER_HOLDER_H
#define LOADER_HOLDER_H

#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>

#include "gpu_timing/reader.h"
#include "loader/options.h"

/*
 * The segment of its library, which says `identity`. 0; -ENOENT: it has none, or has closed its descriptor;
 * or another negative errno.
 */
int holder__segment(pid_t pid, const struct channel_identity *identity, struct channel **channel);

/* 0: nobody; -EBUSY: *holder, 0 where it can't be told. Nobody notices that we looked. */
int holder__find(pid_t pid, const struct channel_identity *identity, pid_t *holder);

/* Says that it is left out because of that (with -a its GPU work), an error where nothing else was named. */
void holder__say(const struct options *options, pid_t pid, pid_t holder);

#endif
