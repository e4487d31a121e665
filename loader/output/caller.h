/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who called us, also where sudo made us root: files are opened with that user's rights. */
#ifndef OUTPUT_CALLER_H
#define OUTPUT_CALLER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CALLER_FAILS "finding out who calls from SUDO_UID and SUDO_GID, which sudo sets (unset them where " \
	"there is no sudo)"

struct caller {
	bool other;		/* not the user that this process runs as */
	uid_t uid;
	gid_t gid;
	gid_t *groups;		/* supplementary ones; only where `other` */
	size_t nr_groups;
	char *home;		/* of the passwd entry; NULL: none, or not `other` */
	char *name;		/* the same */
};

/*
 * From SUDO_UID and SUDO_GID where the effective user is root, else the process's own ids.
 * 0, -ENOMEM, or -EINVAL where the variables are no ids.
 */
int caller__get(struct caller *c);
void caller__free(struct caller *c);

/*
 * In a process of its own: it is the caller's from now on, for good. Where that is whom it runs as
 * already, nothing changes. Async-signal-safe. 0 or a negative errno: then it must not go on.
 */
int caller__become(const struct caller *c);

struct caller_saved {
	bool changed;
	uid_t fsuid;
	gid_t fsgid;
	gid_t *groups;
	int nr_groups;
};

/*
 * Between these two the calling thread, and it alone, opens, renames and unlinks files as the
 * caller. 0 or a negative errno; on failure nothing has changed. leave aborts the process where
 * the old rights can't be had back: going on with mixed rights is worse.
 */
int caller__enter(const struct caller *c, struct caller_saved *saved);
void caller__leave(struct caller_saved *saved);

#endif
