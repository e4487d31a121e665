// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/roots.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "loader/base/array.h"

struct root {
	dev_t device;
	ino_t inode;
	ino_t namespace;
	int fd;
	char *path;		/* as we see it: "" where it is the namespace's own */
};

struct roots {
	struct root *root;
	size_t nr, size;
};

struct roots *roots__new(void)
{
	return calloc(1, sizeof(struct roots));
}

void roots__free(struct roots *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->nr; i++) {
		close(r->root[i].fd);
		free(r->root[i].path);
	}
	free(r->root);
	free(r);
}

static uint32_t add(struct roots *r, struct root *new, const char *proc)
{
	char path[PATH_MAX];
	ssize_t len = readlink(proc, path, sizeof(path));

	if (len <= 0 || len == sizeof(path) || r->nr == ROOTS_MAX)
		return ROOTS_NONE;
	new->path = strndup(path, len == 1 ? 0 : (size_t)len);
	new->fd = open(proc, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (new->path && new->fd >= 0 &&
	    !array__reserve((void **)&r->root, &r->size, r->nr, sizeof(*new))) {
		r->root[r->nr++] = *new;
		return (uint32_t)r->nr;
	}
	if (new->fd >= 0)
		close(new->fd);
	free(new->path);
	return ROOTS_NONE;
}

uint32_t roots__of(struct roots *r, pid_t tgid)
{
	char proc[64];
	struct root new = { .fd = -1 };
	struct stat ns;
	struct statx st;

	snprintf(proc, sizeof(proc), "/proc/%d/ns/mnt", (int)tgid);
	if (stat(proc, &ns))
		return ROOTS_NONE;
	snprintf(proc, sizeof(proc), "/proc/%d/root", (int)tgid);
	/* A root may lie behind a server that doesn't answer. */
	if (statx(AT_FDCWD, proc, AT_STATX_DONT_SYNC, STATX_INO, &st))
		return ROOTS_NONE;
	new.device = makedev(st.stx_dev_major, st.stx_dev_minor);
	new.inode = st.stx_ino;
	new.namespace = ns.st_ino;
	for (size_t i = 0; i < r->nr; i++)
		if (r->root[i].namespace == new.namespace && r->root[i].inode == new.inode &&
		    r->root[i].device == new.device)
			return (uint32_t)i + 1;
	return add(r, &new, proc);
}

int roots__fd(const struct roots *r, uint32_t root)
{
	return root && root <= r->nr ? r->root[root - 1].fd : -1;
}

const char *roots__path(const struct roots *r, uint32_t root, const char *path)
{
	const char *prefix = root && root <= r->nr ? r->root[root - 1].path : "";
	size_t len = strlen(prefix);

	return !strncmp(path, prefix, len) && path[len] == '/' ? path + len : path;
}
