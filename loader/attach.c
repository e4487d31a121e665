// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu_timing/reader.h"
#include "loader/base/log.h"
#include "loader/base/table.h"
#include "loader/driver.h"
#include "loader/injection.h"

/* A file that has probes, in all processes (tgid -1) or in one. */
struct probed {
	dev_t device;
	ino_t inode;
	pid_t tgid;
};

struct attach {
	struct attach_config config;
	struct probed *probed;
	size_t nr;
	struct table *looked_at;	/* processes with a driver, by their index */
};

struct attach *attach__new(const struct attach_config *config)
{
	struct attach *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->config = *config;
	a->looked_at = table__new();
	if (a->looked_at)
		return a;
	free(a);
	return NULL;
}

void attach__free(struct attach *a)
{
	if (!a)
		return;
	table__free(a->looked_at);
	free(a->probed);
	free(a);
}

static bool is_probed(const struct attach *a, const struct stat *st, pid_t tgid)
{
	size_t i;

	for (i = 0; i < a->nr; i++)
		if (a->probed[i].device == st->st_dev && a->probed[i].inode == st->st_ino &&
		    (a->probed[i].tgid == tgid || a->probed[i].tgid == -1))
			return true;
	return false;
}

static int remember(struct attach *a, const struct stat *st, pid_t tgid)
{
	struct probed *grown = realloc(a->probed, (a->nr + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	a->probed = grown;
	grown[a->nr].device = st->st_dev;
	grown[a->nr].inode = st->st_ino;
	grown[a->nr++].tgid = tgid;
	return 0;
}

struct entries {
	uint64_t offset[NR_LAUNCH_ENTRIES];
	uint64_t entry[NR_LAUNCH_ENTRIES];
	size_t nr;
};

static void on_entry(void *ctx, uint32_t entry, uint64_t offset)
{
	struct entries *e = ctx;
	size_t i;

	if (e->nr == NR_LAUNCH_ENTRIES)
		return;
	/* Two names of one place would count its launches twice. */
	for (i = 0; i < e->nr; i++)
		if (e->offset[i] == offset)
			return;
	e->offset[e->nr] = offset;
	e->entry[e->nr++] = entry;
}

/* Probes on all launch entries of the driver behind fd, once. */
static int attach_driver(struct attach *a, int fd, const char *name, pid_t tgid)
{
	struct entries e = {};
	char path[64];
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return -errno;
	if (!probes__per_process(a->config.probes))
		tgid = -1;
	if (is_probed(a, &st, tgid))
		return 0;
	/* Once, also where it fails: it is asked for whenever the process maps something. */
	err = remember(a, &st, tgid);
	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = driver__entries(fd, on_entry, &e);
	if (!err)
		err = probes__attach_launches(a->config.probes, path, e.offset, e.entry, e.nr, tgid);
	if (err) {
		log_warn_some("launches in %s can't be probed: %s", name, driver__error(err));
		return err;
	}
	log_debug("%zu probes on %s", e.nr, name);
	return 0;
}

int attach__before(struct attach *a)
{
	const struct options *o = a->config.options;
	char **paths;
	size_t i;

	if (!o->all && !(o->command && !a->config.library))
		return 0;
	paths = driver__candidates(a->config.library_path);
	if (!paths)
		return -ENOMEM;
	for (i = 0; paths[i]; i++) {
		struct caller_saved saved;
		int fd;

		if (caller__enter(a->config.caller, &saved))
			continue;
		fd = open(paths[i], O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		caller__leave(&saved);
		if (fd < 0)
			continue;
		attach_driver(a, fd, paths[i], -1);
		close(fd);
	}
	driver__free_candidates(paths);
	return 0;
}

static void attach_mapped(struct attach *a, const struct process *p, pid_t tgid)
{
	uint32_t i;

	for (i = 0; i < p->nr_mappings; i++) {
		uint32_t file = p->mappings[i].file;
		const char *path = file ? files__path(a->config.files, file) : "";

		if (driver__is_named(path) && files__open(a->config.files, file) >= 0)
			attach_driver(a, files__fd(a->config.files, file), path, tgid);
	}
}

static void count_by_probes(struct attach *a, struct process *p)
{
	processes__probe(a->config.processes, p);
	attach_mapped(a, p, p->tgid);
}

static bool maps_driver(const struct attach *a, const struct process *p)
{
	uint32_t i;

	for (i = 0; i < p->nr_mappings; i++)
		if (p->mappings[i].file && driver__is_named(files__path(a->config.files, p->mappings[i].file)))
			return true;
	return false;
}

/* A process that the library can't get into: a container's, or one with an environment of its own. */
static void look_for_library(struct attach *a, struct process *p)
{
	const char *why;
	uint64_t once;

	if (!maps_driver(a, p) || table__get(a->looked_at, p->index, &once))
		return;
	if (table__set(a->looked_at, p->index, 1) ||
	    injection__reaches(p->tgid, a->config.library, &why))
		return;
	log_warn_some("no GPU times in process %d (%s): the timing library does not get in, since %s; its "
		      "launches are counted from now on", (int)p->tgid, p->comm, why);
	count_by_probes(a, p);
}

void attach__process(struct attach *a, struct process *p)
{
	const struct options *o = a->config.options;

	if (a->config.library)
		look_for_library(a, p);
	else
		attach_mapped(a, p, o->all || o->command ? -1 : p->tgid);
}

void attach__refused(struct attach *a, struct process *p, enum channel_reason reason,
		     uint32_t detail)
{
	char why[CHANNEL_REFUSAL];

	log_warn_some("no GPU times in process %d: %s; its launches are counted", (int)p->tgid,
		      channel__refusal(why, reason, detail));
	count_by_probes(a, p);
}
