/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where the result goes and how: file, pipe, terminal, rescue; and the closing summary. */
#ifndef LOADER_RESULT_H
#define LOADER_RESULT_H

#include <stdbool.h>
#include <sys/types.h>

#include "loader/options.h"
#include "loader/output/caller.h"
#include "loader/profile/profile.h"

struct result;

/*
 * Checks that the output can be written, before anything is captured. `command` is the pid of
 * the started command or 0; writing ends early when abort_fd gets readable. 0 or a negative errno
 * with *why (malloc'd sentence or NULL). Options and caller must outlive it.
 */
int result__new(const struct options *options, const struct caller *caller, int abort_fd,
		pid_t command, struct result **out, char **why);
void result__free(struct result *r);	/* NULL is fine */

/* The same check alone, by which not even a moment's file is made. */
int result__check(const struct options *options, const struct caller *caller, char **why);
/* An error of these two as an exit code: whose mistake it was. */
int result__refusal(const struct options *options, int err);

/* Whether it can be written more than once. */
bool result__is_file(const struct result *r);

/*
 * Writes result and closing summary; an exit code: EXIT_COMPLETE, _PARTIAL, _EMPTY, … A result that
 * can't be written to its place is saved elsewhere, unless the user aborted it.
 */
int result__write(struct result *r, const struct profile *p);

/* In the middle of a capture, to a file: what there is so far. What fails is said and tried later. */
void result__write_now(struct result *r, const struct profile *p);

#endif
