// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A file is written beside its final name and renamed; everything that looks up a name is done
 * with the rights of the caller, relative to a directory that was opened once.
 */
#include "loader/output/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/log.h"
#include "loader/base/parse.h"
#include "loader/base/text.h"
#include "loader/output/stream.h"

#define MAX_NUMBER 1000
#define TEMP_NAME 40

enum file_kind {
	KIND_DESCRIPTOR,	/* stdout, or another one that we were given */
	KIND_SPECIAL,		/* a device or a pipe: opened for each writing */
	KIND_REGULAR,
};

struct output_file {
	enum file_kind kind;
	const struct caller *caller;
	int abort_fd;
	bool force;
	bool numbered;
	bool is_stdout;
	char *given;		/* the name for messages; with the number, if one was needed */
	char *path;		/* without symlinks, if it had some */
	int fd;			/* KIND_DESCRIPTOR: the descriptor; KIND_REGULAR: the directory */
	char *base;		/* KIND_REGULAR: name in the directory */
	int mine;		/* what we wrote last, open so that its inode stays its; or -1 */
};

/* --- messages --- */

static const char *hint(const struct output_file *f, int err, struct text *t)
{
	switch (-err) {
	case EEXIST:
		return "it exists: add -y to replace it, or choose another name";
	case EISDIR:
		return "it is a directory: name a file in it";
	case ENOENT:
		return "there is no such directory: make it, or choose another name";
	case ENOTDIR:
		return "a part of the path is no directory: choose another name";
	case ENXIO:
		return "it is a link to nothing: choose another name";
	case ENOTBLK:
		return "it is a disk or a socket: choose a file";
	case EACCES:
	case EPERM:
		text__printf(t, "user %u may not write there: choose another directory",
			     f->caller->uid);
		return t->failed ? strerror(-err) : t->data;
	case EROFS:
		return "the file system is read-only: choose another directory";
	case ENOSPC:
	case EDQUOT:
		return "no space left: make some, or choose another file system";
	case EFBIG:
		return "files may not get so large: allow it with ulimit -f";
	case EIO:
		return "its device or terminal is gone or broken: choose another place";
	case EPIPE:
		return "its reader has gone";
	case ECANCELED:
		return "writing was aborted";
	default:
		return strerror(-err);
	}
}

/* Hands err back; the sentence into *why. */
static int explain(const struct output_file *f, int err, char **why)
{
	struct text t = { 0 }, detail = { 0 };

	if (!err)
		return 0;
	text__printf(&t, "can't write %s: %s", f->given, hint(f, err, &detail));
	text__free(&detail);
	*why = text__take(&t);
	return err;
}

/* --- names --- */

/* Our own descriptor that a path stands for, or -1. */
static int named_descriptor(const char *path)
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

/* NAME-2 for number 2, before a suffix; number 1 is the name itself. */
static char *numbered_name(const char *name, unsigned int number)
{
	const char *suffix = ".folded";
	size_t len = strlen(name);
	struct text t = { 0 };

	if (number == 1)
		return strdup(name);
	if (len > strlen(suffix) && !strcmp(name + len - strlen(suffix), suffix))
		len -= strlen(suffix);
	else
		suffix = "";
	text__add(&t, name, len);
	text__printf(&t, "-%u%s", number, suffix);
	return text__take(&t);
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

/* A new file beside the final one; its descriptor or a negative errno. As the caller. */
static int open_temporary(const struct output_file *f, char name[TEMP_NAME])
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

/* --- checking --- */

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
	}
	fd = open_temporary(f, temp);
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

int output_file__new(const struct output_request *request, struct output_file **out, char **why)
{
	int descriptor = named_descriptor(request->path), err;
	struct output_file *f = calloc(1, sizeof(*f));
	struct caller_saved saved;

	*why = NULL;
	if (!f)
		return -ENOMEM;
	f->caller = request->caller;
	f->abort_fd = request->abort_fd;
	f->force = request->force;
	f->numbered = request->numbered;
	f->fd = -1;
	f->mine = -1;
	f->path = strdup(request->path);
	f->given = strdup(descriptor == STDOUT_FILENO ? "standard output" : request->path);
	if (!f->path || !f->given) {
		err = -ENOMEM;
	} else if (descriptor >= 0) {
		err = check_descriptor(f, descriptor);
	} else {
		err = caller__enter(f->caller, &saved);
		if (!err) {
			err = check_path(f);
			caller__leave(&saved);
		}
	}
	if (err) {
		if (f->given)
			explain(f, err, why);
		output_file__free(f);
		return err;
	}
	*out = f;
	return 0;
}

void output_file__free(struct output_file *f)
{
	if (!f)
		return;
	if (f->fd >= 0)
		close(f->fd);
	if (f->mine >= 0)
		close(f->mine);
	free(f->given);
	free(f->path);
	free(f->base);
	free(f);
}

/* --- writing --- */

static int fill(const struct output_file *f, int fd, output_writer write, void *arg)
{
	struct stream s;
	FILE *out = stream__open(&s, fd, f->abort_fd);
	int err;

	if (!out)
		return -errno;
	err = write(out, arg);
	if (fclose(out) && !err)
		err = s.err ? s.err : -EIO;
	/* The stream knows better than what came through stdio. */
	if (s.err)
		err = s.err;
	/* File systems that find out late about a full disk say so here. */
	if (!err && s.regular && fdatasync(fd) && errno != EINVAL && errno != EROFS)
		err = -errno;
	return err;
}

static bool is_ours(const struct output_file *f)
{
	struct stat st, mine;

	return f->mine >= 0 && !fstat(f->mine, &mine) &&
	       !fstatat(f->fd, f->base, &st, AT_SYMLINK_NOFOLLOW) &&
	       st.st_dev == mine.st_dev && st.st_ino == mine.st_ino;
}

/* Never over an existing file. */
static int rename_new(const struct output_file *f, const char *temp, const char *base)
{
	struct stat st;

	if (!renameat2(f->fd, temp, f->fd, base, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* A file system without that: a moment stays in which somebody else may come first. */
	if (!fstatat(f->fd, base, &st, AT_SYMLINK_NOFOLLOW))
		return -EEXIST;
	return renameat(f->fd, temp, f->fd, base) ? -errno : 0;
}

/* Gives the temporary file its name; a number in the name is kept for later writings. */
static int publish(struct output_file *f, const char *temp)
{
	unsigned int number;
	int err = -EEXIST;

	if (f->force || is_ours(f))
		return renameat(f->fd, temp, f->fd, f->base) ? -errno : 0;
	for (number = 1; err == -EEXIST && number <= (f->numbered ? MAX_NUMBER : 1); number++) {
		char *base = numbered_name(f->base, number);
		char *given = numbered_name(f->given, number);

		err = base && given ? rename_new(f, temp, base) : -ENOMEM;
		if (!err) {
			char *old_base = f->base, *old_given = f->given;

			f->base = base;
			f->given = given;
			base = old_base;
			given = old_given;
		}
		free(base);
		free(given);
	}
	return err;
}

static int write_regular(struct output_file *f, output_writer write, void *arg)
{
	struct caller_saved saved;
	char temp[TEMP_NAME];
	int err, fd, mine = -1;

	err = caller__enter(f->caller, &saved);
	if (err)
		return err;
	fd = open_temporary(f, temp);
	caller__leave(&saved);
	if (fd < 0)
		return fd;
	err = fill(f, fd, write, arg);
	if (!err) {
		mine = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		err = mine < 0 ? -errno : 0;
	}
	if (close(fd) && !err && errno != EINTR)
		err = -errno;
	if (caller__enter(f->caller, &saved)) {
		err = err ? err : -EPERM;
	} else {
		if (!err)
			err = publish(f, temp);
		if (err)
			unlinkat(f->fd, temp, 0);
		caller__leave(&saved);
	}
	if (!err) {
		int last = f->mine;

		f->mine = mine;
		mine = last;
	}
	if (mine >= 0)
		close(mine);
	return err;
}

/* A pipe without a reader is waited for; its descriptor or a negative errno. */
static int open_special(const struct output_file *f)
{
	struct pollfd abort_poll = { .fd = f->abort_fd, .events = POLLIN };
	struct caller_saved saved;
	bool said = false;
	int fd, err;

	for (;; said = true) {
		err = caller__enter(f->caller, &saved);
		if (err)
			return err;
		fd = open(f->path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		err = fd < 0 ? -errno : 0;
		caller__leave(&saved);
		if (err != -ENXIO)
			return err ? err : fd;
		if (!said)
			log_warn("waiting for a reader of %s; Ctrl-C gives the result up", f->given);
		if (poll(&abort_poll, 1, 100) > 0)
			return -ECANCELED;
	}
}

static int write_special(const struct output_file *f, output_writer write, void *arg)
{
	int fd = open_special(f), err;
	struct stat st;

	if (fd < 0)
		return fd;
	/* Should a file stand there by now, it isn't overwritten. */
	if (fstat(fd, &st))
		err = -errno;
	else if (!S_ISCHR(st.st_mode) && !S_ISFIFO(st.st_mode))
		err = -EEXIST;
	else
		err = fill(f, fd, write, arg);
	if (close(fd) && !err && errno != EINTR)
		err = -errno;
	return err;
}

int output_file__write(struct output_file *f, output_writer write, void *arg, char **why)
{
	*why = NULL;
	switch (f->kind) {
	case KIND_DESCRIPTOR:
		return explain(f, fill(f, f->fd, write, arg), why);
	case KIND_SPECIAL:
		return explain(f, write_special(f, write, arg), why);
	default:
		return explain(f, write_regular(f, write, arg), why);
	}
}

const char *output_file__name(const struct output_file *f)
{
	return f->given;
}

bool output_file__is_stdout(const struct output_file *f)
{
	return f->is_stdout;
}

bool output_file__is_regular(const struct output_file *f)
{
	return f->kind == KIND_REGULAR;
}
