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

/* A file that has probes, in all processes or in one. */
struct probed {
	dev_t device;
	ino_t inode;
	const struct process *process;	/* NULL: in all */
	pid_t tgid;			/* of it: it may have executed another program since */
	struct probe *probe;		/* NULL: that could not be done */
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

static struct probed *find(const struct entries *e, const struct stat *st, const struct process *p)
{
	struct probed *d;
	size_t i;

	for (i = 0; i < e->nr; i++) {
		d = &e->probed[i];
		if (d->device == st->st_dev && d->inode == st->st_ino &&
		    (!d->process || (p && d->tgid == p->tgid)))
			return d;
	}
	return NULL;
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

static void attach(struct entries *e, int fd, const char *name, struct probed *d)
{
	struct places p = {};
	char path[64];
	int err = driver__entries(fd, on_entry, &p);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!err)
		err = probes__attach_launches(e->probes, path, p.offset, p.entry, p.nr,
					      d->process ? d->tgid : -1, &d->probe);
	if (err)
		log_warn_some("launches in %s can't be probed: %s", name, driver__error(err));
	else
		log_debug("%zu probes on %s", p.nr, name);
}

/* Probes on all launch entries of the driver behind fd, once; p: in this process, or NULL. */
static void probe_file(struct entries *e, int fd, const char *name, const struct process *p)
{
	struct probed *d;
	struct stat st;

	if (fstat(fd, &st))
		return;
	d = find(e, &st, p);
	if (d && (!d->process || d->process == p))
		return;
	/* The kernel's limit is the task, whatever it executes: so it is probed already. */
	if (d) {
		d->process = p;
		return;
	}
	if (array__reserve((void **)&e->probed, &e->size, e->nr, sizeof(*e->probed)))
		return;
	/* Once, also where it fails: it is asked for whenever the process maps something. */
	d = &e->probed[e->nr++];
	*d = (struct probed){ st.st_dev, st.st_ino, p, p ? p->tgid : -1, NULL };
	attach(e, fd, name, d);
}

void entries__sweep(struct entries *e)
{
	size_t i, kept = 0;

	for (i = 0; i < e->nr; i++) {
		const struct probed *d = &e->probed[i];

		if (!d->process || !d->process->exited)
			e->probed[kept++] = *d;
		else if (d->probe)
			probes__drop(e->probes, d->probe);
	}
	e->nr = kept;
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
	probe_file(e, fd, path, NULL);
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
	const struct process *limit = probes__per_process(e->probes) ? p : NULL;
	uint32_t i;

	for (i = 0; i < p->nr_mappings; i++) {
		uint32_t file = p->mappings[i].file;
		const char *path = file ? files__path(e->files, file) : "";

		if (driver__is_named(path) && files__open(e->files, file) >= 0)
			probe_file(e, files__fd(e->files, file), path, limit);
	}
}
