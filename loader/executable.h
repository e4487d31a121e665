/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether a command can be executed, found out without executing it. */
#ifndef LOADER_EXECUTABLE_H
#define LOADER_EXECUTABLE_H

#include "loader/output/caller.h"
#include "loader/variables.h"

/*
 * What execvp(3) would come to, with that environment and the caller's rights, in the current directory: 0,
 * or a negative errno as command__release has it: -ENOENT: it, or what it names as its interpreter, is not
 * there. What a file holds otherwise is not looked at.
 */
int executable__check(const char *name, const struct variables *variables, const struct caller *caller);

#endif
