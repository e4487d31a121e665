/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether a command can be given the timing library, found out before it is started. */
#ifndef LOADER_PRECHECK_H
#define LOADER_PRECHECK_H

#include <stdbool.h>

#include "loader/options.h"
#include "loader/output/caller.h"
#include "loader/variables.h"

/*
 * Whether the command's environment lets its GPU work be seen: -ECANCELED: it is kept out of
 * (kept_out.h); -EBUSY, where it is to get the library: another tool's stands there already. 0 or one of
 * these, and *why (malloc'd or NULL).
 */
int precheck__environment(const struct variables *v, bool library, char **why);
/* Whether with such an answer nothing would come of what is asked for, so that it isn't begun. */
bool precheck__refuses(const struct options *o, int err);

/*
 * Whether the driver that a program started from here would load can be timed: 0; -ENOENT: there is
 * none; -EOPNOTSUPP: its entry points have a shape that the library would leave alone; or -ENOMEM. *why
 * is then a sentence. Neither is certain: a command may set LD_LIBRARY_PATH, a program may bring its own.
 */
int precheck__driver(const struct variables *v, const struct caller *caller, char **why);

#endif
