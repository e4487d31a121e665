/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Gets the timing library into processes that run: by the tracer, a few at a time, in the order in
 * which they were asked for.
 */
#ifndef LOADER_INJECTION_H
#define LOADER_INJECTION_H

#include <linux/types.h>
#include <stdint.h>

#include "loader/processes.h"
#include "loader/sites.h"

struct injection;

/*
 * How it went for a process. 0: the library says hello any moment. -EBUSY: `holder` is the pid of
 * another gpucollect that is at work in it. -EAGAIN: not now, perhaps later. -ESRCH: it is gone. Any
 * other: it can't be. `why` is for a message ("…, since %s").
 */
typedef void (*injection_done)(void *ctx, struct process *p, int err, pid_t holder, const char *why);

struct injection_config {
	struct sites *sites;
	int epoll_fd;		/* tracers are added here */
	uint64_t epoll_data;	/* with this as their data */
	injection_done done;	/* not called by injection__begin */
	void *ctx;
};

/*
 * How it would go for a process, as far as that shows without changing anything: the same, but 0 for what
 * would be tried. `why` has room for `size` bytes.
 */
int injection__foresee(pid_t pid, pid_t *holder, char *why, size_t size);

/* 0 or a negative errno. */
int injection__new(const struct injection_config *config, struct injection **out);
/* Cancels what is under way: true when nothing is. No injection__step after that. */
bool injection__give_up(struct injection *i);
/* As by injection__give_up, and waits for it. NULL is fine. */
void injection__free(struct injection *i);

/* Never for a process that it was begun for and not done. 0 or -ENOMEM. */
int injection__begin(struct injection *i, struct process *p);
/* To be called when there are events, and now and then. */
void injection__step(struct injection *i);

#endif
