// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/pids.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "loader/base/array.h"

#define MAX_DESCENDANTS (1u << 16)

struct found {
	pid_t *pid;
	size_t nr, size;
};

static int add(struct found *f, pid_t pid)
{
	int err = array__reserve((void **)&f->pid, &f->size, f->nr, sizeof(*f->pid));

	if (!err)
		f->pid[f->nr++] = pid;
	return err;
}

/* Of one thread: each has its own list. */
static int add_children(struct found *f, pid_t pid, const char *thread)
{
	char path[64];
	int child, err = 0;
	FILE *list;

	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/children", (int)pid, thread);
	list = fopen(path, "re");
	if (!list)
		return 0;
	while (!err && f->nr < MAX_DESCENDANTS && fscanf(list, "%d", &child) == 1)
		err = add(f, child);
	fclose(list);
	return err;
}

static int add_all_children(struct found *f, pid_t pid)
{
	const struct dirent *d;
	char path[64];
	int err = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return 0;
	while (!err && (d = readdir(dir)))
		if (isdigit((unsigned char)d->d_name[0]))
			err = add_children(f, pid, d->d_name);
	closedir(dir);
	return err;
}

int pids__descendants(pid_t pid, pids_fn fn, void *ctx)
{
	struct found f = {};
	size_t i;
	int err = add_all_children(&f, pid);

	/* Known to fn first: whoever follows its children from then on misses none. */
	for (i = 0; i < f.nr && !err; i++) {
		err = fn(ctx, f.pid[i]);
		if (!err)
			err = add_all_children(&f, f.pid[i]);
	}
	free(f.pid);
	return err;
}

int pids__all(pids_fn fn, void *ctx)
{
	DIR *dir = opendir("/proc");
	const struct dirent *d;
	int err = 0;

	if (!dir)
		return -errno;
	while (!err && (d = readdir(dir)))
		if (isdigit((unsigned char)d->d_name[0]))
			err = fn(ctx, (pid_t)strtol(d->d_name, NULL, 10));
	closedir(dir);
	return err;
}
