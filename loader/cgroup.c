// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "loader/base/text.h"

#define MAX_DEPTH 64

static int open_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Where the groups are mounted: beside those of version 1 it is not /sys/fs/cgroup itself. */
static bool find_mount(char *path, size_t room)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	const struct mntent *m;
	bool found = false;

	while (f && !found && (m = getmntent(f)))
		if (!strcmp(m->mnt_type, "cgroup2"))
			found = snprintf(path, room, "%s", m->mnt_dir) < (int)room;
	if (f)
		endmntent(f);
	return found;
}

static bool is_group(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && fs.f_type == CGROUP2_SUPER_MAGIC;
}

/* That there is none, however the kernel puts it. */
static bool is_missing(int err)
{
	return err == -ENOENT || err == -ENOTDIR || err == -ENAMETOOLONG || err == -ELOOP;
}

int cgroup__open(const char *path, char **why)
{
	char mount[PATH_MAX], below[2 * PATH_MAX], name[TEXT_NAME], place[TEXT_NAME];
	int fd = *path == '/' ? open_dir(path) : -ENOENT;

	*why = NULL;
	text__name(name, path);
	if (fd >= 0 && is_group(fd))
		return fd;
	if (fd >= 0)
		close(fd);
	if (!find_mount(mount, sizeof(mount)))
		return text__why(why, -EINVAL, "--cgroup %s: no control groups of version 2 are "
				 "mounted here: take -p PID", name);
	snprintf(below, sizeof(below), "%s/%s", mount, path);
	fd = open_dir(below);
	if (fd >= 0 && is_group(fd))
		return fd;
	if (fd >= 0)
		close(fd);
	if (fd < 0 && !is_missing(fd))
		return text__why(why, fd, "--cgroup %s: %s: %s", name, text__name(place, below),
				 strerror(-fd));
	return text__why(why, -ENOENT, "--cgroup %s: there is no such control group of version 2, also "
			 "not in %s; the line 0:: of /proc/PID/cgroup shows that of a process", name,
			 text__name(place, mount));
}

static int each_here(int dir, cgroup_fn fn, void *ctx)
{
	int fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC), pid, err = 0;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	if (!f && fd >= 0)
		close(fd);
	while (f && !err && fscanf(f, "%d", &pid) == 1)
		if (pid > 0)	/* 0: of another PID namespace */
			err = fn(ctx, pid);
	if (f)
		fclose(f);
	return err;
}

static int each_below(int fd, cgroup_fn fn, void *ctx, int depth)
{
	DIR *dir = fdopendir(fd);
	const struct dirent *d;
	int err;

	if (!dir) {
		close(fd);
		return 0;
	}
	err = each_here(fd, fn, ctx);
	while (!err && depth && (d = readdir(dir))) {
		int child;

		if (d->d_type != DT_DIR || d->d_name[0] == '.')
			continue;
		child = openat(fd, d->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (child >= 0)
			err = each_below(child, fn, ctx, depth - 1);
	}
	closedir(dir);
	return err;
}

int cgroup__each(int fd, cgroup_fn fn, void *ctx)
{
	/* Its own position, so that it can be read again and again. */
	int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return own < 0 ? 0 : each_below(own, fn, ctx, MAX_DEPTH);
}
