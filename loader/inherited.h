/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What we got from whoever started us and change for ourselves: the command is to get it unchanged. */
#ifndef LOADER_INHERITED_H
#define LOADER_INHERITED_H

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>

struct inherited {
	sigset_t mask;
	struct sigaction pipe, too_large, quit;	/* of SIGPIPE, SIGXFSZ and SIGQUIT */
	struct rlimit files;		/* RLIMIT_NOFILE */
	bool hangup_ignored;		/* as nohup(1) does */
};

/* Before anything is changed. 0 or negative errno. */
int inherited__save(struct inherited *i);
/*
 * A reader that has gone, a file that gets too large: errors of a write, not our death. A terminal's
 * SIGQUIT is a command's own business, which may only show its stacks and go on.
 */
void inherited__ignore(bool command);
/* Async-signal-safe. 0 or negative errno. */
int inherited__restore(const struct inherited *i);

#endif
