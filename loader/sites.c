// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/sites.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/array.h"
#include "loader/base/clock.h"
#include "loader/base/fault.h"
#include "loader/base/log.h"
#include "loader/library.h"

#define MAX_FILE (16 << 20)	/* a library has some 100 KiB */
#define WARM_CALLS 400		/* the kernel turns a nop5 probe into a call after some hits */
#define TIMED_CALLS 400

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
	enum channel_site cheapest;
	bool only_nop1;		/* the kernel refuses the others */
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
	s->cheapest = SITE_NOP1;
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

enum channel_site sites__cheapest(const struct sites *s)
{
	return s->cheapest;
}

/* Offsets in the file, by enum channel_site. It may be cut meanwhile: so it is read, not mapped. */
static int find_sites(int fd, uint64_t offset[NR_CHANNEL_SITES])
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
	    !library__offset_in(bytes, (size_t)st.st_size, "gpucollect_site_nop1",
				&offset[SITE_NOP1]) &&
	    !library__offset_in(bytes, (size_t)st.st_size, "gpucollect_site_nop5",
				&offset[SITE_NOP5]))
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

/* The hello comes through nop1, so that one is enough, and needed. */
static int attach(struct sites *s, int fd, const uint64_t *offset, struct probe **probe)
{
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!s->only_nop1) {
		err = probes__attach_sites(s->probes, path, &offset[SITE_NOP1], NR_CHANNEL_SITES - 1,
					   probe);
		if (!err)
			return 0;
		log_debug("not all probe sites can be attached: %s", strerror(-err));
	}
	err = probes__attach_sites(s->probes, path, &offset[SITE_NOP1], 1, probe);
	s->only_nop1 |= !err;
	return err;
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
	uint64_t offset[NR_CHANNEL_SITES] = {};
	int err = find_sites(fd, offset);
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

/* ns for a call of the site with its probe; the program ignores this process. */
static uint64_t time_site(void (*site)(uint64_t, const void *))
{
	struct channel_launch launch = { .id = 1 };
	uint64_t start;
	int i;

	for (i = 0; i < WARM_CALLS; i++)
		site(1, &launch);
	start = clock__now_ns();
	for (i = 0; i < TIMED_CALLS; i++)
		site(1, &launch);
	return (clock__now_ns() - start) / TIMED_CALLS;
}

void sites__compare(struct sites *s, int fd)
{
	uint64_t ns[NR_CHANNEL_SITES] = {}, offset[NR_CHANNEL_SITES] = {};
	struct stat st;
	char *image;
	int n;

	if (s->only_nop1 || find_sites(fd, offset) || fstat(fd, &st))
		return;
	image = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (image == MAP_FAILED)
		return;
	for (n = 1; n < NR_CHANNEL_SITES; n++) {
		void (*site)(uint64_t, const void *);
		char *at = image + offset[n];

		memcpy(&site, &at, sizeof(site));
		ns[n] = time_site(site);
		if (ns[n] < ns[s->cheapest])
			s->cheapest = (enum channel_site)n;
	}
	log_debug("probe site: nop1 %" PRIu64 " ns, nop5 %" PRIu64 " ns", ns[SITE_NOP1],
		  ns[SITE_NOP5]);
	munmap(image, (size_t)st.st_size);
	FAULT_POINT("site-chosen");
}
