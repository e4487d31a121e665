/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Probes on the sites of the timing library (gpu_timing/channel.h), in every file that holds one. */
#ifndef LOADER_SITES_H
#define LOADER_SITES_H

#include <linux/types.h>
#include <stdbool.h>

#include "gpu_timing/channel.h"
#include "loader/probes.h"
#include "loader/processes.h"

struct sites;

struct sites *sites__new(struct probes *probes);	/* NULL: out of memory */
void sites__free(struct sites *s);	/* NULL is fine; the probes go with struct probes */

/*
 * Attaches to the site in a file with a library, of any build, unless that was done. The file may be a
 * target's. `p` maps it, and stays `kept`; NULL: it is our own. 0; -ENOEXEC: it has no sites; or another
 * negative errno.
 */
int sites__attach(struct sites *s, int fd, const struct process *p);
/* Detaches from those that nobody uses any more. */
void sites__sweep(struct sites *s);
/* Whether that was done for this file: it is a library. */
bool sites__has(const struct sites *s, int fd);

#endif
