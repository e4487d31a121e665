// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "loader/base/far.h"

#define SETTLED_S 2	/* a file that didn't change for so long was the same when it was mapped */

/*
 * What the kernel knows of the file behind a descriptor is enough: asking the server of a network's file
 * system could take for ever.
 */
static int stat_of(int fd, struct statx *st, struct mapped_file *out)
{
	const unsigned int mask = STATX_TYPE | STATX_INO | STATX_NLINK | STATX_CTIME |
				  STATX_SIZE;

	out->fd = -1;
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, mask, st))
		return -errno;
	if (!S_ISREG(st->stx_mode))
		return -EINVAL;
	out->id.device = (uint64_t)st->stx_dev_major << 32 | st->stx_dev_minor;
	out->id.inode = st->stx_ino;
	out->unlinked = !st->stx_nlink;
	return 0;
}

/* An O_PATH descriptor of `path` below `root`; nothing there leads out of it. */
static int open_below(const char *root, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

	if (dir < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	if (fd < 0)
		fd = -errno;
	close(dir);
	return fd;
}

/*
 * Whether what a name leads to is what was mapped. The number of a file that is gone may be given to a new
 * one, which can't have been there for long.
 */
static int check(int fd, const struct maps_line *line)
{
	struct timespec now;
	struct statx st;
	struct mapped_file found;
	int err = stat_of(fd, &st, &found);

	if (err)
		return err;
	clock_gettime(CLOCK_REALTIME, &now);
	if (found.id.inode != line->inode || st.stx_ctime.tv_sec > now.tv_sec - SETTLED_S)
		return -ESTALE;
	if (found.id.device == ((uint64_t)line->dev_major << 32 | line->dev_minor))
		return 0;
	/* These have one device for the file system and others for its parts. */
	return line->dev_major || st.stx_dev_major ? -ESTALE : 0;
}

static int open_by_name(const char *root, const struct maps_line *line)
{
	int fd, err;

	if (line->path[0] != '/')
		return -ENOENT;
	fd = open_below(root, line->path);
	if (fd < 0)
		return fd;
	err = check(fd, line);
	if (!err)
		return fd;
	close(fd);
	return err;
}

static void link_of(char *to, size_t size, pid_t tgid, const struct maps_line *line)
{
	snprintf(to, size, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)tgid, line->start, line->end);
}

/*
 * Whether something else is mapped there by now. A disk's numbers are those of /proc/PID/maps; of other
 * file systems it is certain only where the device is the same.
 */
static bool is_another(int fd, const struct maps_line *line)
{
	struct mapped_file found;
	struct statx st;

	if (stat_of(fd, &st, &found))
		return false;
	if (found.id.device == ((uint64_t)line->dev_major << 32 | line->dev_minor))
		return found.id.inode != line->inode;
	return st.stx_dev_major;
}

/* An O_PATH descriptor: opening it has asked nobody anything. */
static int open_handle(pid_t tgid, const struct maps_line *line)
{
	char path[96];
	int fd, err;

	link_of(path, sizeof(path), tgid, line);
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd >= 0 && !is_another(fd, line))
		return fd;
	err = fd < 0 ? errno : ESTALE;
	if (fd >= 0)
		close(fd);
	snprintf(path, sizeof(path), "/proc/%d/root", (int)tgid);
	fd = open_by_name(path, line);
	if (fd < 0)
		fd = open_by_name("/", line);	/* the process may be gone, or have moved its root */
	return fd < 0 ? -err : fd;
}

int mapped_file__stat(pid_t tgid, const struct maps_line *line, struct mapped_file *out)
{
	int handle = open_handle(tgid, line), err;
	struct statx st;

	if (handle < 0)
		return handle;
	err = stat_of(handle, &st, out);
	close(handle);
	return err;
}

static int open_near(int handle)
{
	char self[64];
	int fd;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", handle);
	/* Without O_NONBLOCK it would wait for whoever holds a lease on the file. */
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

int mapped_file__open(struct file_systems *f, pid_t tgid, const struct maps_line *line,
		      struct mapped_file *out)
{
	int handle = open_handle(tgid, line), err;
	struct statx st;

	if (handle < 0)
		return handle;
	err = stat_of(handle, &st, out);
	if (!err) {
		out->fd = !f || file_systems__is_near(f, tgid, handle) ? open_near(handle) :
			  far__open(handle, out->id.device, st.stx_size);
		err = out->fd < 0 ? out->fd : 0;
	}
	close(handle);
	return err;
}

char *mapped_file__name(pid_t tgid, const struct maps_line *line, bool unlinked)
{
	static const char suffix[] = " (deleted)";
	char link[96], path[PATH_MAX + sizeof(suffix)];
	const char *name = line->path;
	size_t len;
	ssize_t n;

	if (strchr(name, '\n')) {
		link_of(link, sizeof(link), tgid, line);
		n = readlink(link, path, sizeof(path) - 1);
		if (n > 0) {
			path[n] = '\0';
			name = path;
		}
	}
	len = strlen(name);
	if (unlinked && len > sizeof(suffix) && !strcmp(name + len + 1 - sizeof(suffix), suffix))
		len -= sizeof(suffix) - 1;
	return strndup(name, len);
}
