/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How the launches of each process are seen: by the timing library, that the driver loads or that the
 * tracer brings in, by probes on the driver's entries, or, where it is kept out, not at all.
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
#include "loader/sites.h"

struct attach;

struct attach_config {
	struct probes *probes;
	struct files *files;
	struct processes *processes;
	const struct options *options;
	const char *library_path;	/* LD_LIBRARY_PATH of what is started; NULL: not set */
	const struct caller *caller;	/* whose choice that is */
	struct sites *sites;	/* NULL: no process gets the library */
	const char *library;	/* its file, which the driver of a command is told; NULL: isn't */
	int epoll_fd;		/* what is to be waited for is added here */
	uint64_t epoll_data;	/* with this as its data: then attach__step */
};

int attach__new(const struct attach_config *config, struct attach **out);	/* 0 or negative errno */
/* Ends what is under way; to be called until it returns true, and nothing is. */
bool attach__give_up(struct attach *a);
/* As by attach__give_up, and waits for it. NULL is fine. */
void attach__free(struct attach *a);

/* Before a command runs, or for the whole system: what processes that start will need. */
int attach__before(struct attach *a);

/* The process mapped something, or was seen for the first time: if there is a driver, it is decided on. */
void attach__process(struct attach *a, struct process *p);
/* Goes on with what is under way: at its events and at every tick. */
void attach__step(struct attach *a);
/* Some process is not decided on yet, or its library does not time yet. Second tries are not waited for. */
bool attach__pending(const struct attach *a);

/* The library in this process times; can't time; can't be reached; or it is another gpucollect's. */
void attach__armed(struct attach *a, struct process *p);
void attach__refused(struct attach *a, struct process *p, enum channel_reason reason,
		     uint32_t detail);
void attach__unreached(struct attach *a, struct process *p, int err);
/* `holder` 0: which one can't be seen. */
void attach__taken(struct attach *a, struct process *p, pid_t holder);

struct attach_counts {
	unsigned int timed;	/* processes whose library has begun to time */
	unsigned int taken;	/* left out, since they are recorded by another */
	unsigned int untimed;	/* with a driver, but without a library that times */
	unsigned int decided;	/* processes with a driver */
	unsigned int kept_out;	/* those of them that are left alone, and of which that was said */
	unsigned int later;	/* not entered at the first try, which is not the last */
};
void attach__counts(const struct attach *a, struct attach_counts *counts);

#endif
