// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A file is written beside its final name and renamed; everything that looks up a name is done
 * with the rights of the caller, relative to a directory that was opened once.
 */
#include "loader/output/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/log.h"
#include "loader/base/text.h"
#include "loader/output/file_state.h"
#include "loader/output/stream.h"

#define MAX_NUMBER 1000

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
	case EBADF:
		return "it is no descriptor that is open for writing: choose a file";
	case ENAMETOOLONG:
		return "the name is too long: choose a shorter one";
	case ELOOP:
		return "it is a link that leads to itself: choose another name";
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

int output_file__new(const struct output_request *request, struct output_file **out, char **why)
{
	int descriptor = output_file__descriptor(request->path), err;
	struct output_file *f = calloc(1, sizeof(*f));

	*why = NULL;
	if (!f)
		return -ENOMEM;
	f->caller = request->caller;
	f->abort_fd = request->abort_fd;
	f->force = request->force;
	f->numbered = request->numbered;
	f->look_only = request->look_only;
	f->fd = -1;
	f->mine = -1;
	f->path = strdup(request->path);
	f->given = strdup(descriptor == STDOUT_FILENO ? "standard output" : request->path);
	err = f->path && f->given ? output_file__check(f, descriptor) : -ENOMEM;
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
	fd = output_file__open_temporary(f, temp);
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
