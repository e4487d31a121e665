/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether a capture of processes that run already is worth its beginning; said the same way in a dry run. */
#ifndef LOADER_VERDICT_H
#define LOADER_VERDICT_H

#include <stdbool.h>

#include "loader/attach.h"
#include "loader/options.h"

/*
 * By what became of those that were named: `left`, that some of them are not left out; `pending`, that the
 * library is not yet in all that will have it. 0 or an exit code; says why.
 */
int verdict__targets(const struct options *options, const struct attach_counts *counts, bool left,
		     bool pending);

#endif
