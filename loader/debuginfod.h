/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Debug files from the servers that DEBUGINFOD_URLS names, by elfutils' libdebuginfod, where that is
 * installed. A process of its own does it, as the caller, whose cache it fills; where the caller is
 * root, as nobody, with a cache that goes with it. What it hands over is only a descriptor, and time is
 * limited: the network never keeps a result from being written.
 */
#ifndef LOADER_DEBUGINFOD_H
#define LOADER_DEBUGINFOD_H

#include <stdbool.h>

#include "loader/output/caller.h"
#include "loader/variables.h"
#include "symbols/separate.h"

#define DEBUGINFOD_FILE_MS 30000u	/* for one file */
#define DEBUGINFOD_TOTAL_MS 90000u	/* for all */

struct debuginfod;

/*
 * `caller` must outlive it. 0; -EOPNOTSUPP with *why (to be freed): not installed, or no server named;
 * other negative errno.
 */
int debuginfod__new(const struct caller *caller, const struct variables *variables,
		    struct debuginfod **out, char **why);
void debuginfod__free(struct debuginfod *d);	/* NULL is fine */
/* Called some times a second while a file is awaited; true gives up. */
void debuginfod__set_pulse(struct debuginfod *d, bool (*pulse)(void *ctx), void *ctx);

/* For symbols__set_fetch; ctx is the struct debuginfod. A descriptor, or -1. */
int debuginfod__fetch(void *ctx, const struct build_id *id);

#endif
