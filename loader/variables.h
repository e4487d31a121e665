/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The environment of a command. sudo takes PATH, VIRTUAL_ENV, LD_LIBRARY_PATH and more away before it
 * starts us, but its own process still has what its caller gave it. That is for the command alone,
 * which runs as that caller: what root does never goes by it.
 */
#ifndef LOADER_VARIABLES_H
#define LOADER_VARIABLES_H

#include <stddef.h>

#include "loader/output/caller.h"

struct variables {
	char **list;		/* "NAME=VALUE", NULL-terminated */
	size_t nr, size;
};

/*
 * Our own, or where sudo made us root its caller's, with what was set since on the way to us (sudo
 * NAME=VALUE, a script). Where those can't be read: our own with the caller's HOME, USER and LOGNAME.
 * 0 or -ENOMEM.
 */
int variables__new(const struct caller *caller, struct variables *v);
void variables__free(struct variables *v);

/* The value of the first of that name, or NULL. */
const char *variables__get(const struct variables *v, const char *name);
/* In the place of one of that name, or added. 0 or -ENOMEM. */
int variables__set(struct variables *v, const char *name, const char *value);

/*
 * The pure part: `data` is what /proc/PID/environ of sudo holds, `own` our environment. 0 or -ENOMEM.
 */
int variables__merge(struct variables *v, const char *data, size_t len, char *const *own);

#endif
