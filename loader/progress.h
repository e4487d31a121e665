/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The line on a terminal that shows how far a recording is. */
#ifndef LOADER_PROGRESS_H
#define LOADER_PROGRESS_H

#include <linux/types.h>
#include <stdint.h>

#include "loader/collect.h"
#include "loader/options.h"
#include "loader/probes.h"

/*
 * Shows it where there is a terminal (log__progress), for the time since the start. Not beside a
 * command, whose terminal it is: its own lines would be overwritten.
 */
void progress__show(const struct options *options, const struct collect *collect,
		    const struct probes *probes, uint64_t elapsed_ns);

#endif
