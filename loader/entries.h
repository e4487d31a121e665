/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Probes on the driver's own entry points, for processes without the timing library: which files,
 * limited to which process.
 */
#ifndef LOADER_ENTRIES_H
#define LOADER_ENTRIES_H

#include <linux/types.h>

#include "loader/files.h"
#include "loader/output/caller.h"
#include "loader/probes.h"
#include "loader/processes.h"

struct entries;

struct entries *entries__new(struct probes *probes, struct files *files);	/* NULL: no memory */
void entries__free(struct entries *e);	/* NULL is fine; the probes go with struct probes */

/*
 * Probes on every libcuda that a program started from here would load, in all processes (the BPF side
 * looks at targets only): a fast program launches before probes could follow its mapping. library_path:
 * LD_LIBRARY_PATH of what is started, or NULL, and `caller` whose choice that is. 0 or -ENOMEM.
 */
int entries__before(struct entries *e, const char *library_path, const struct caller *caller);

/* The path of a libcuda that the process maps; NULL: none. */
const char *entries__driver(const struct entries *e, const struct process *p);

/*
 * Probes on each libcuda that the process maps and that has none yet; limited to this process, if
 * that was asked for when the probes were made.
 */
void entries__probe(struct entries *e, const struct process *p);
/* Detaches those that are limited to processes that have ended. */
void entries__sweep(struct entries *e);

#endif
