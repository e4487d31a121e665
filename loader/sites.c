// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/sites.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/array.h"
#include "loader/base/fault.h"
#include "loader/library.h"

#define MAX_FILE (16 << 20)	/* a library has some 100 KiB */

struct file {
	dev_t device;
	ino_t inode;
	struct probe *probe;	/* NULL: nobody used it any more */
	uint32_t users;		/* processes that live */
};

struct user {
	const struct process *process;
	uint32_t file;
};

struct sites {
	struct probes *probes;
	struct file *file;
	size_t nr, size;
	struct user *user;
	size_t nr_users, users_size;
};

struct sites *sites__new(struct probes *probes)
{
	struct sites *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->probes = probes;
	return s;
}

void sites__free(struct sites *s)
{
	if (!s)
		return;
	free(s->file);
	free(s->user);
	free(s);
}

/*
 * Where the site is in the file. That may be cut meanwhile: so it is read, not mapped. Of the two sites
 * only nop1 is used: Linux 6.18 turns a nop5 with a probe into a call while threads run through it, and
 * some of them came out one byte behind the breakpoint, which there is no instruction.
 */
static int find_site(int fd, uint64_t *offset)
{
	struct stat st;
	char *bytes;
	int err = -ENOEXEC;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > MAX_FILE)
		return -ENOEXEC;
	bytes = malloc((size_t)st.st_size);
	if (!bytes)
		return -ENOMEM;
	if (pread(fd, bytes, (size_t)st.st_size, 0) == (ssize_t)st.st_size &&
	    !library__offset_in(bytes, (size_t)st.st_size, "gpucollect_site_nop1", offset))
		err = 0;
	free(bytes);
	return err;
}

/* The file's number, or s->nr. */
static uint32_t find(const struct sites *s, const struct stat *st)
{
	uint32_t i;

	for (i = 0; i < s->nr; i++)
		if (s->file[i].device == st->st_dev && s->file[i].inode == st->st_ino)
			break;
	return i;
}

bool sites__has(const struct sites *s, int fd)
{
	struct stat st;

	return !fstat(fd, &st) && find(s, &st) < s->nr;
}

static int attach(struct sites *s, int fd, uint64_t offset, struct probe **probe)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return probes__attach_sites(s->probes, path, &offset, 1, probe);
}

/* Finds the file among those known, or adds it without a probe. */
static int know(struct sites *s, const struct stat *st, uint32_t *file)
{
	int err = 0;

	*file = find(s, st);
	if (*file == s->nr)
		err = array__reserve((void **)&s->file, &s->size, s->nr, sizeof(*s->file));
	if (!err && *file == s->nr)
		s->file[s->nr++] = (struct file){ .device = st->st_dev, .inode = st->st_ino };
	return err;
}

int sites__attach(struct sites *s, int fd, const struct process *p)
{
	uint64_t offset = 0;
	int err = find_site(fd, &offset);
	struct stat st;
	uint32_t file;

	if (err || fstat(fd, &st))
		return err ? err : -errno;
	err = know(s, &st, &file);
	if (!err)
		err = array__reserve((void **)&s->user, &s->users_size, s->nr_users,
				     sizeof(*s->user));
	if (!err && !s->file[file].probe)
		err = attach(s, fd, offset, &s->file[file].probe);
	if (err)
		return err;
	s->user[s->nr_users++] = (struct user){ p, file };
	s->file[file].users++;
	FAULT_POINT("sites-probed");
	return 0;
}

void sites__sweep(struct sites *s)
{
	size_t i, kept = 0;

	for (i = 0; i < s->nr_users; i++) {
		const struct user *u = &s->user[i];
		struct file *f = &s->file[u->file];

		if (!u->process || !u->process->exited) {
			s->user[kept++] = *u;
		} else if (!--f->users) {
			probes__drop(s->probes, f->probe);
			f->probe = NULL;
		}
	}
	s->nr_users = kept;
}
