// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/dry_run.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/log.h"
#include "loader/base/table.h"
#include "loader/base/text.h"
#include "loader/cgroup.h"
#include "loader/driver.h"
#include "loader/exit_codes.h"
#include "loader/kept_out.h"
#include "loader/mapped_file.h"
#include "loader/maps.h"
#include "loader/output/caller.h"
#include "loader/pids.h"
#include "loader/precheck.h"
#include "loader/preset.h"
#include "loader/variables.h"

struct dry {
	const struct options *options;
	struct text out;
	struct table *seen;
	unsigned int shown;
	unsigned int without_driver;	/* not shown, with -a */
};

/* --- one process ------------------------------------------------------------------------------ */

/* The first libcuda that it maps. */
struct look {
	pid_t pid;
	char *path;
	int fd;
};

static int find_driver(const struct maps_line *line, void *arg)
{
	struct mapped_file file;
	struct look *l = arg;

	if (!driver__is_named(line->path) || mapped_file__open(NULL, l->pid, line, &file))
		return 0;
	l->fd = file.fd;
	l->path = mapped_file__name(l->pid, line, file.unlinked);
	return 1;
}

static unsigned int count_threads(pid_t pid)
{
	const struct dirent *d;
	unsigned int n = 0;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && (d = readdir(dir)))
		n += isdigit((unsigned char)d->d_name[0]) != 0;
	if (dir)
		closedir(dir);
	return n;
}

static void add_name(struct dry *d, pid_t pid)
{
	char path[64], comm[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	f = fopen(path, "re");
	if (f && fgets(comm, sizeof(comm), f))
		comm[strcspn(comm, "\n")] = '\0';
	if (f)
		fclose(f);
	text__add_clean(&d->out, comm, strlen(comm), TEXT_TERMINAL);
}

static void on_name(void *ctx, const char *name)
{
	struct text *t = ctx;

	text__printf(t, " %s", name);
}

static void add_symbols(struct dry *d, int fd, bool library)
{
	int err = driver__exports(fd, library, on_name, &d->out);

	if (err)
		text__printf(&d->out, " none: %s", driver__error(err));
	text__add_string(&d->out, "\n");
}

static bool wants_library(const struct options *o)
{
	return !o->no_inject && (!o->all || o->inject);
}

/* How its launches would be seen; `by` is how the library would come. */
static void add_way(struct dry *d, int fd, const char *by)
{
	const char *entry = NULL;
	int err = wants_library(d->options) ? driver__check(fd, &entry) : 0;

	if (wants_library(d->options) && !err) {
		text__printf(&d->out, "  timing library, %s; it swaps the slots of:", by);
		add_symbols(d, fd, true);
		return;
	}
	if (err)
		text__printf(&d->out, "  no timing library: %s%s%s\n", entry ? entry : "",
			     entry ? ": " : "", driver__error(err));
	text__add_string(&d->out, "  uprobes on:");
	add_symbols(d, fd, false);
}

static void add_driver(struct dry *d, const char *path)
{
	text__add_string(&d->out, "  driver ");
	text__add_clean(&d->out, path, strlen(path), TEXT_TERMINAL);
	text__add_string(&d->out, "\n");
}

static int show(void *ctx, pid_t pid)
{
	struct dry *d = ctx;
	struct look l = { .pid = pid, .fd = -1 };
	const char *why;
	uint64_t once;

	if (pid == getpid() || table__get(d->seen, (uint64_t)pid, &once))
		return 0;
	if (table__set(d->seen, (uint64_t)pid, 1))
		return -ENOMEM;
	maps__read(pid, find_driver, &l);
	if (l.fd < 0 && d->options->all) {
		d->without_driver++;
		return 0;
	}
	d->shown++;
	text__printf(&d->out, "process %d (", (int)pid);
	add_name(d, pid);
	text__add_string(&d->out, "), ");
	text__add_count(&d->out, count_threads(pid), "thread", "threads");
	text__add_string(&d->out, "\n");
	why = d->options->no_gpu || l.fd < 0 ? NULL : kept_out__why(pid);
	if (l.path && !d->options->no_gpu)
		add_driver(d, l.path);
	if (l.fd < 0 || d->options->no_gpu || why)
		text__printf(&d->out, "  CPU samples only%s%s\n", why ? ": it is left alone, since " : "",
			     why ? why : l.fd < 0 ? ", unless it loads the CUDA driver" : "");
	else
		add_way(d, l.fd, "brought by a borrowed thread and a memfd");
	if (l.fd >= 0)
		close(l.fd);
	free(l.path);
	return 0;
}

/* --- the targets ------------------------------------------------------------------------------ */

static int show_pids(struct dry *d)
{
	const struct options *o = d->options;
	size_t i;
	int err = 0;

	for (i = 0; i < o->nr_pids && !err; i++) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/%d", (int)o->pids[i]);
		if (access(path, F_OK)) {
			log_error("there is no process %d; ps -e lists those that run", (int)o->pids[i]);
			return -ESRCH;
		}
		err = show(d, o->pids[i]);
		if (!err)
			err = pids__descendants(o->pids[i], show, d);
	}
	return err;
}

static int show_all(struct dry *d)
{
	int err = pids__all(show, d);

	text__printf(&d->out, "%u other processes: CPU samples only, unless they load the CUDA driver\n",
		     d->without_driver);
	return err;
}

static int show_cgroup(struct dry *d)
{
	char *why = NULL;
	int fd = cgroup__open(d->options->cgroup, &why), err;

	if (fd < 0) {
		log_error("%s", why ? why : strerror(-fd));
		free(why);
		return fd == -ENOENT ? -ESRCH : fd;
	}
	err = cgroup__each(fd, show, d);
	close(fd);
	if (err || d->shown)
		return err;
	log_error("there is no process in --cgroup %s or below it", d->options->cgroup);
	return -ESRCH;
}

/* With the environment that it would get. */
static int show_command(struct dry *d)
{
	const char *name = d->options->command[0];
	struct variables variables = {};
	struct caller caller = {};
	char **paths = NULL, *why = NULL;
	int fd = -1, err = caller__get(&caller);

	if (!err)
		err = variables__new(&caller, &variables);
	if (!err)
		paths = driver__candidates(variables__get(&variables, "LD_LIBRARY_PATH"));
	text__add_string(&d->out, "command ");
	text__add_clean(&d->out, name, strlen(name), TEXT_TERMINAL);
	text__add_string(&d->out, "\n");
	if (paths && paths[0] && !d->options->no_gpu) {
		add_driver(d, paths[0]);
		fd = open(paths[0], O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	}
	if (fd < 0)
		text__add_string(&d->out, "  CPU samples only, unless it loads the CUDA driver\n");
	else if (precheck__environment(&variables, wants_library(d->options), &why))
		text__printf(&d->out, "  %s\n", why ? why : "no timing library");
	else
		add_way(d, fd, "loaded by the driver as " PRESET_VARIABLE " tells it");
	if (fd >= 0)
		close(fd);
	free(why);
	driver__free_candidates(paths);
	variables__free(&variables);
	caller__free(&caller);
	return err;
}

int dry_run(const struct options *options)
{
	struct dry d = { .options = options, .seen = table__new() };
	int err = d.seen ? 0 : -ENOMEM;

	if (!err && options->command)
		err = show_command(&d);
	else if (!err && options->all)
		err = show_all(&d);
	else if (!err)
		err = options->cgroup ? show_cgroup(&d) : show_pids(&d);
	if (!err)
		err = text__write(&d.out, stdout);
	if (err && err != -ESRCH && err != -EINVAL)
		log_error("looking at what would be touched: %s", strerror(-err));
	text__free(&d.out);
	table__free(d.seen);
	return !err ? EXIT_COMPLETE : err == -ESRCH ? EXIT_EMPTY : err == -EINVAL ? EXIT_USAGE :
	       EXIT_OWN_FAILURE;
}
