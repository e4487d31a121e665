/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Probes on the driver's own entry points, for processes without the timing library: which files,
 * limited to which process.
 */
#ifndef LOADER_ATTACH_H
#define LOADER_ATTACH_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu_timing/channel.h"
#include "loader/files.h"
#include "loader/options.h"
#include "loader/probes.h"
#include "loader/processes.h"

struct attach;

struct attach_config {
	struct probes *probes;
	struct files *files;
	struct processes *processes;
	const struct options *options;
	const char *library_path;	/* LD_LIBRARY_PATH of what is started; NULL: not set */
	const struct caller *caller;	/* whose choice that is */
	const char *library;	/* path of the timing library that the command gets; NULL: none */
};

struct attach *attach__new(const struct attach_config *config);	/* NULL: out of memory */
void attach__free(struct attach *a);	/* NULL is fine; the probes go with struct probes */

/*
 * Before a command runs, or for the whole system: probes on every libcuda that a program started
 * from here would load, in all processes (the BPF side looks at targets only): a fast program
 * launches before probes could follow its mapping. 0 or negative errno.
 */
int attach__before(struct attach *a);

/*
 * The process mapped something: a libcuda that has no probes yet gets them. With the library only
 * where that can't get in, which is said.
 */
void attach__process(struct attach *a, struct process *p);

/* The library in this process can't time: says so, and counts by probes from now on. */
void attach__refused(struct attach *a, struct process *p, enum channel_reason reason,
		     uint32_t detail);

#endif
