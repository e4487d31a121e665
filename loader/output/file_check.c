// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/output/file_state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/parse.h"

int output_file__descriptor(const char *path)
{
	static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };
	uint64_t fd;
	size_t i;

	if (!strcmp(path, "-") || !strcmp(path, "/dev/stdout"))
		return STDOUT_FILENO;
	if (!strcmp(path, "/dev/stderr"))
		return STDERR_FILENO;
	for (i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (!strncmp(path, folders[i], strlen(folders[i])) &&
		    !parse__u64(path + strlen(folders[i]), 0, INT_MAX, &fd))
			return (int)fd;
	return -1;
}

/* Fills f->base and opens its directory; as the caller. */
static int open_directory(struct output_file *f)
{
	char *slash = strrchr(f->path, '/');

	f->base = strdup(slash ? slash + 1 : f->path);
	if (!f->base)
		return -ENOMEM;
	if (!*f->base || !strcmp(f->base, ".") || !strcmp(f->base, ".."))
		return -EISDIR;
	if (slash)
		*slash = '\0';
	f->fd = open(!slash ? "." : slash == f->path ? "/" : f->path,
		     O_PATH | O_DIRECTORY | O_CLOEXEC);
	return f->fd < 0 ? -errno : 0;
}

int output_file__open_temporary(const struct output_file *f, char name[TEMP_NAME])
{
	int tries, fd, flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	uint64_t random;

	for (tries = 0; tries < 100; tries++) {
		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return -EIO;
		snprintf(name, TEMP_NAME, ".gpucollect-%016" PRIx64 ".tmp", random);
		fd = openat(f->fd, name, flags, 0666);
		if (fd >= 0 || errno != EEXIST)
			return fd >= 0 ? fd : -errno;
	}
	return -EEXIST;
}

/* Whether renaming over an existing file would be refused: known before the capture. */
static int check_sticky(const struct output_file *f, const struct stat *st)
{
	struct stat dir;

	if (fstat(f->fd, &dir))
		return -errno;
	if (!(dir.st_mode & S_ISVTX) || !f->caller->uid)
		return 0;
	return st->st_uid == f->caller->uid || dir.st_uid == f->caller->uid ? 0 : -EPERM;
}

static int check_regular(struct output_file *f)
{
	char temp[TEMP_NAME];
	struct stat st;
	int err, fd;

	err = open_directory(f);
	if (err)
		return err;
	if (!fstatat(f->fd, f->base, &st, AT_SYMLINK_NOFOLLOW)) {
		if (!f->force && !f->numbered)
			return -EEXIST;
		err = f->force ? check_sticky(f, &st) : 0;
		if (err)
			return err;
	} else if (errno != ENOENT) {
		return -errno;
	}
	if (f->look_only)
		return faccessat(f->fd, ".", W_OK | X_OK, AT_EACCESS) ? -errno : 0;
	fd = output_file__open_temporary(f, temp);
	if (fd < 0)
		return fd;
	close(fd);
	return unlinkat(f->fd, temp, 0) ? -errno : 0;
}

/* Finds out what the path is; as the caller. */
static int check_path(struct output_file *f)
{
	struct stat st;

	if (!lstat(f->path, &st) && S_ISLNK(st.st_mode)) {
		/* What it points to is written: to rename over a link would only replace it. */
		char *real = realpath(f->path, NULL);

		if (!real)
			return errno == ENOENT ? -ENXIO : -errno;
		free(f->path);
		f->path = real;
	}
	f->kind = KIND_REGULAR;
	if (stat(f->path, &st) || S_ISREG(st.st_mode))
		return check_regular(f);
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISCHR(st.st_mode) && !S_ISFIFO(st.st_mode))
		return -ENOTBLK;
	f->kind = KIND_SPECIAL;
	return faccessat(AT_FDCWD, f->path, W_OK, AT_EACCESS) ? -errno : 0;
}

static int check_descriptor(struct output_file *f, int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	if ((flags & O_ACCMODE) == O_RDONLY)
		return -EBADF;
	f->kind = KIND_DESCRIPTOR;
	f->is_stdout = fd == STDOUT_FILENO;
	f->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return f->fd < 0 ? -errno : 0;
}

int output_file__check(struct output_file *f, int descriptor)
{
	struct caller_saved saved;
	int err;

	if (descriptor >= 0)
		return check_descriptor(f, descriptor);
	err = caller__enter(f->caller, &saved);
	if (!err) {
		err = check_path(f);
		caller__leave(&saved);
	}
	return err;
}
