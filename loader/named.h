/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The processes that -p names. */
#ifndef LOADER_NAMED_H
#define LOADER_NAMED_H

#include "loader/options.h"
#include "loader/pids.h"

/*
 * Each of them, followed by its descendants; a thread stands for its process. What can't be recorded is
 * said. 0; -ESRCH: one is not there, or none is left (said); -ENOMEM or fn's.
 */
int named__each(const struct options *o, pids_fn fn, void *ctx);

#endif
