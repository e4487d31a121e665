// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/calibrate/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/fault.h"

#define AGAIN "sudo gpucollect calibrate writes it anew"
#define MAX_PATH 4096

/* --- reading ---------------------------------------------------------------------------------- */

/* Only root may have written it. */
static int check_file(int fd, const char *path, char **why)
{
	struct stat st;

	if (fstat(fd, &st))
		return text__why(why, -errno, "%s: %m", path);
	if (!S_ISREG(st.st_mode))
		return text__why(why, -EPERM, "%s is no plain file: not used; remove it, then " AGAIN, path);
	if (st.st_uid || st.st_mode & (S_IWGRP | S_IWOTH))
		return text__why(why, -EPERM, "%s belongs to user %u and has the mode %03o: not used, for "
				 "others than root can write it; " AGAIN, path, st.st_uid,
				 st.st_mode & 07777);
	return 0;
}

/* Up to CALIBRATIONS_MAX_FILE bytes and one more, which says that there are too many. */
static ssize_t read_all(int fd, char *buf)
{
	size_t len = 0;
	ssize_t n;

	do {
		n = read(fd, buf + len, CALIBRATIONS_MAX_FILE + 1 - len);
		if (n > 0)
			len += (size_t)n;
	} while ((n > 0 && len <= CALIBRATIONS_MAX_FILE) || (n < 0 && errno == EINTR));
	return n < 0 ? -errno : (ssize_t)len;
}

static int read_file(int fd, const char *path, struct calibrations *c, char **why)
{
	char *buf = malloc(CALIBRATIONS_MAX_FILE + 1);
	unsigned int line = 0;
	ssize_t len;
	int err;

	if (!buf)
		return -ENOMEM;
	len = read_all(fd, buf);
	err = len < 0 ? (int)len : calibrations__parse(c, buf, (size_t)len, &line);
	free(buf);
	if (len < 0)
		return text__why(why, err, "%s: %s", path, strerror(-err));
	if (err == -EINVAL)
		return text__why(why, err, "%s is not whole, or not gpucollect's (line %u): not used; "
				 AGAIN, path, line);
	return err;
}

int calibration_store__read(const char *path, struct calibrations *c, char **why)
{
	/* A pipe that somebody has put there must not hold us. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY), err;

	memset(c, 0, sizeof(*c));
	*why = NULL;
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 && errno == ELOOP)
		return text__why(why, -EPERM, "%s is a symbolic link: not used; " AGAIN,
				 path);
	if (fd < 0)
		return text__why(why, -errno, "%s: %m", path);
	err = check_file(fd, path, why);
	if (!err)
		err = read_file(fd, path, c, why);
	close(fd);
	return err;
}

/* --- saving ----------------------------------------------------------------------------------- */

static int open_folder(const char *folder, char **why)
{
	bool made = !mkdir(folder, 0755);
	struct stat st;
	int fd, err;

	if (!made && errno != EEXIST)
		return text__why(why, -errno, "%s can't be made: %m", folder);
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return text__why(why, -errno, "%s: %m", folder);
	/* Whatever the umask is. */
	if ((made && fchmod(fd, 0755)) || fstat(fd, &st)) {
		err = text__why(why, -errno, "%s: %m", folder);
	} else if (st.st_uid || st.st_mode & (S_IWGRP | S_IWOTH)) {
		err = text__why(why, -EPERM, "%s belongs to user %u and has the mode %03o, but root alone "
				"may write there; chown root and chmod 755 mend it", folder, st.st_uid,
				st.st_mode & 07777);
	} else {
		return fd;
	}
	close(fd);
	return err;
}

static int write_all(int fd, const struct text *t)
{
	size_t done = 0;
	ssize_t n;

	while (done < t->len) {
		n = write(fd, t->data + done, t->len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	return fchmod(fd, 0644) || fsync(fd) ? -errno : 0;
}

/* Under another name first: whoever reads meanwhile has the old file or the new one. */
static int replace(int folder, const struct text *t)
{
	static const char temporary[] = "." CALIBRATION_STORE_NAME;
	int fd, err;

	/* The lock on the folder is ours: what is left of this name is of one that was killed. */
	unlinkat(folder, temporary, 0);
	fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = write_all(fd, t);
	FAULT_POINT("calibration-written");
	if (close(fd) && !err)
		err = -errno;
	if (!err && renameat(folder, temporary, folder, CALIBRATION_STORE_NAME))
		err = -errno;
	if (err)
		unlinkat(folder, temporary, 0);
	else
		fsync(folder);
	return err;
}

static int merge(struct calibrations *old, const struct calibrations *more)
{
	int err = 0;
	size_t i;

	for (i = 0; !err && i < more->nr; i++)
		err = calibrations__set(old, &more->entry[i]);
	return err;
}

int calibration_store__save(const char *folder, const struct calibrations *more, char **why)
{
	char path[MAX_PATH], *doubt = NULL;
	struct calibrations all = { 0 };
	struct text t = { 0 };
	int fd, err;

	*why = NULL;
	fd = open_folder(folder, why);
	if (fd < 0)
		return fd;
	snprintf(path, sizeof(path), "%s/" CALIBRATION_STORE_NAME, folder);
	/* Two at a time would each lose what the other has found. */
	while (flock(fd, LOCK_EX) && errno == EINTR)
		;
	if (calibration_store__read(path, &all, &doubt))
		calibrations__free(&all);
	err = merge(&all, more);
	if (!err) {
		calibrations__print(&all, &t);
		err = t.failed ? -ENOMEM : t.len > CALIBRATIONS_MAX_FILE ? -EFBIG : replace(fd, &t);
	}
	if (err)
		text__why(why, err, "%s can't be written: %s", path, strerror(-err));
	else if (doubt)
		text__why(why, 0, "what %s held was replaced: %s", path, doubt);
	free(doubt);
	text__free(&t);
	calibrations__free(&all);
	close(fd);
	return err;
}
