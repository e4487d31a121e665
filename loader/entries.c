// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/entries.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu_timing/channel.h"
#include "loader/base/array.h"
#include "loader/base/log.h"
#include "loader/driver.h"

/* A file that has probes, in all processes (tgid -1) or in one. */
struct probed {
	dev_t device;
	ino_t inode;
	pid_t tgid;
};

struct entries {
	struct probes *probes;
	struct files *files;
	struct probed *probed;
	size_t nr, size;
};

struct entries *entries__new(struct probes *probes, struct files *files)
{
	struct entries *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->probes = probes;
	e->files = files;
	return e;
}

void entries__free(struct entries *e)
{
	if (!e)
		return;
	free(e->probed);
	free(e);
}

static bool is_probed(const struct entries *e, const struct stat *st, pid_t tgid)
{
	size_t i;

	for (i = 0; i < e->nr; i++)
		if (e->probed[i].device == st->st_dev && e->probed[i].inode == st->st_ino &&
		    (e->probed[i].tgid == tgid || e->probed[i].tgid == -1))
			return true;
	return false;
}

struct places {
	uint64_t offset[NR_LAUNCH_ENTRIES];
	uint64_t entry[NR_LAUNCH_ENTRIES];
	size_t nr;
};

static void on_entry(void *ctx, uint32_t entry, uint64_t offset)
{
	struct places *p = ctx;
	size_t i;

	if (p->nr == NR_LAUNCH_ENTRIES)
		return;
	/* Two names of one place would count its launches twice. */
	for (i = 0; i < p->nr; i++)
		if (p->offset[i] == offset)
			return;
	p->offset[p->nr] = offset;
	p->entry[p->nr++] = entry;
}

/* Probes on all launch entries of the driver behind fd, once. */
static int probe_file(struct entries *e, int fd, const char *name, pid_t tgid)
{
	struct places p = {};
	char path[64];
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return -errno;
	if (is_probed(e, &st, tgid))
		return 0;
	/* Once, also where it fails: it is asked for whenever the process maps something. */
	err = array__reserve((void **)&e->probed, &e->size, e->nr, sizeof(*e->probed));
	if (err)
		return err;
	e->probed[e->nr++] = (struct probed){ st.st_dev, st.st_ino, tgid };
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = driver__entries(fd, on_entry, &p);
	if (!err)
		err = probes__attach_launches(e->probes, path, p.offset, p.entry, p.nr, tgid);
	if (err)
		log_warn_some("launches in %s can't be probed: %s", name, driver__error(err));
	else
		log_debug("%zu probes on %s", p.nr, name);
	return err;
}

/* The path is the caller's choice, so it is opened with the caller's rights. */
static void probe_path(struct entries *e, const char *path, const struct caller *caller)
{
	struct caller_saved saved;
	int fd;

	if (caller__enter(caller, &saved))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	caller__leave(&saved);
	if (fd < 0)
		return;
	probe_file(e, fd, path, -1);
	close(fd);
}

int entries__before(struct entries *e, const char *library_path, const struct caller *caller)
{
	char **paths = driver__candidates(library_path);
	size_t i;

	if (!paths)
		return -ENOMEM;
	for (i = 0; paths[i]; i++)
		probe_path(e, paths[i], caller);
	driver__free_candidates(paths);
	return 0;
}

const char *entries__driver(const struct entries *e, const struct process *p)
{
	uint32_t i;

	for (i = 0; i < p->nr_mappings; i++)
		if (p->mappings[i].file &&
		    driver__is_named(files__path(e->files, p->mappings[i].file)))
			return files__path(e->files, p->mappings[i].file);
	return NULL;
}

void entries__probe(struct entries *e, const struct process *p)
{
	pid_t tgid = probes__per_process(e->probes) ? p->tgid : -1;
	uint32_t i;

	for (i = 0; i < p->nr_mappings; i++) {
		uint32_t file = p->mappings[i].file;
		const char *path = file ? files__path(e->files, file) : "";

		if (driver__is_named(path) && files__open(e->files, file) >= 0)
			probe_file(e, files__fd(e->files, file), path, tgid);
	}
}
