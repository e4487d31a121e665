/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether a command can be given the timing library, found out before it is started. */
#ifndef LOADER_PRECHECK_H
#define LOADER_PRECHECK_H

/*
 * Whether the environment leaves room for the library: -EBUSY: another tool's stands there already;
 * -ECANCELED: GPUCOLLECT_DISABLE keeps it out. 0 or one of these, and *why (malloc'd or NULL).
 */
int precheck__environment(char **why);

/*
 * Whether the driver that the command would load can be timed: 0, or -EOPNOTSUPP and *why: there is
 * none, or its entry points have a shape that the library would leave alone.
 */
int precheck__driver(char **why);

#endif
