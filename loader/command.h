/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The command that is started under the profiler: as the caller, held until probes are in place. */
#ifndef LOADER_COMMAND_H
#define LOADER_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

#include "loader/inherited.h"
#include "loader/output/caller.h"

struct command;

struct command_request {
	char **argv;			/* NULL-terminated */
	char **environment;		/* NAME=VALUE, NULL-terminated */
	const struct caller *caller;
	const struct inherited *inherited;	/* it starts with this */
};

/* Forks; the child waits. 0 or negative errno. */
int command__new(const struct command_request *request, struct command **out);
/* Not released: the child ends without having run anything. NULL is fine. */
void command__free(struct command *c);

pid_t command__pid(const struct command *c);
/* Readable when the command has ended. */
int command__pidfd(const struct command *c);

/*
 * Lets the child execute the command; returns once it does. 0, or the negative errno of exec: -ENOENT
 * not found, -EACCES, -ENOEXEC … not executable.
 */
int command__release(struct command *c);

void command__signal(struct command *c, int signal);
/* Once pidfd is readable (or at any time): true if it has ended; *status is wait(2)'s. */
bool command__ended(struct command *c, int *status);

#endif
