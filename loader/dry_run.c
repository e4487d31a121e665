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

#include "loader/base/far.h"
#include "loader/base/log.h"
#include "loader/base/proc.h"
#include "loader/base/table.h"
#include "loader/base/text.h"
#include "loader/cgroup.h"
#include "loader/driver.h"
#include "loader/executable.h"
#include "loader/exit_codes.h"
#include "loader/holder.h"
#include "loader/injection.h"
#include "loader/kept_out.h"
#include "loader/mapped_file.h"
#include "loader/maps.h"
#include "loader/named.h"
#include "loader/output/caller.h"
#include "loader/pids.h"
#include "loader/precheck.h"
#include "loader/preset.h"
#include "loader/python.h"
#include "loader/result.h"
#include "loader/variables.h"
#include "loader/verdict.h"
#include "unwind/python_runtime.h"

struct dry {
	const struct options *options;
	struct caller caller;
	struct text out;
	struct table *seen;
	unsigned int shown;
	unsigned int without_driver;	/* not shown, with -a */
	unsigned int denied;		/* of which we can't tell */
	struct attach_counts counts;	/* what a run would come to */
	int refused;			/* exit code of one that would not begin, which is said; or 0 */
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

/* What it is; its state where nothing happens in it until somebody helps. */
static void add_process(struct dry *d, pid_t pid, const struct proc_stat *stat)
{
	text__printf(&d->out, "process %d (", (int)pid);
	text__add_clean(&d->out, stat->name, strlen(stat->name));
	text__add_string(&d->out, "), ");
	text__add_count(&d->out, count_threads(pid), "thread", "threads");
	if (stat->state == 'T')
		text__printf(&d->out, ", stopped by a signal: kill -CONT %d lets it go on", (int)pid);
	text__add_string(&d->out, "\n");
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

static void add_probes(struct dry *d, int fd)
{
	text__add_string(&d->out, "  uprobes on:");
	add_symbols(d, fd, false);
}

static void add_no_library(struct dry *d, int fd, const char *why)
{
	d->counts.untimed++;
	text__add_string(&d->out, "  no timing library: ");
	text__add_clean(&d->out, why, strlen(why));
	text__add_string(&d->out, "\n");
	add_probes(d, fd);
}

/* How its launches would be seen; `by` is how the library would come. */
static void add_way(struct dry *d, int fd, const char *by)
{
	const char *entry = NULL;
	char why[160];
	int err;

	if (!wants_library(d->options)) {
		add_probes(d, fd);
		return;
	}
	err = driver__check(fd, &entry);
	if (!err) {
		d->counts.timed++;
		text__printf(&d->out, "  timing library, %s; it swaps the slots of:", by);
		add_symbols(d, fd, true);
		return;
	}
	snprintf(why, sizeof(why), "%s%s%s", entry ? entry : "", entry ? ": " : "", driver__error(err));
	add_no_library(d, fd, why);
}

/* An interpreter whose functions have no versions; see python_frees.h. */
static int find_python(const struct maps_line *line, void *arg)
{
	struct python_runtime runtime;
	struct mapped_file file;
	struct look *l = arg;

	if (!python__is_named(line->path) || mapped_file__open(NULL, l->pid, line, &file))
		return 0;
	if (!python_runtime__find(file.fd, &runtime, NULL) &&
	    runtime.offsets.layout.code_version == PYTHON_ABSENT)
		l->path = mapped_file__name(l->pid, line, file.unlinked);
	far__close(file.fd);
	return l->path != NULL;
}

static void add_python(struct dry *d, pid_t pid)
{
	struct look l = { .pid = pid };

	maps__read(pid, find_python, &l);
	if (!l.path)
		return;
	text__add_string(&d->out, "  uprobe, while it launches, on what frees code objects in ");
	text__add_clean(&d->out, l.path, strlen(l.path));
	text__add_string(&d->out, "\n");
	free(l.path);
}

static void add_driver(struct dry *d, const char *path)
{
	text__add_string(&d->out, "  driver ");
	text__add_clean(&d->out, path, strlen(path));
	text__add_string(&d->out, "\n");
}

/* Why launches of it would not be seen; NULL: they would. */
static const char *unseen(const struct dry *d, const struct look *l, bool kernel)
{
	if (d->options->no_gpu)
		return "";
	if (kernel)
		return ": it is a thread of the kernel";
	return l->fd < 0 ? ", unless it loads the CUDA driver" : NULL;
}

static const char *denial(void)
{
	return geteuid() ? "mappings can't be read: run with sudo" :
			   "mappings can't be read: permission denied";
}

static void add_taken(struct dry *d, pid_t pid, pid_t holder)
{
	d->counts.taken++;
	text__printf(&d->out, "  %s: it is already recorded by ",
		     d->options->all ? "CPU samples only" : "left out");
	if (holder)
		text__printf(&d->out, "gpucollect, pid %d\n", (int)holder);
	else
		text__add_string(&d->out, "a gpucollect\n");
	holder__say(d->options, pid, holder);
}

/* What maps a driver, and isn't left alone. */
static void add_launching(struct dry *d, pid_t pid, int fd)
{
	char why[256] = "";
	pid_t holder = 0;
	int err = wants_library(d->options) ? injection__foresee(pid, &holder, why, sizeof(why)) : 0;

	if (err == -EBUSY) {
		add_taken(d, pid, holder);
		return;
	}
	/* One that is stopped is waited for. */
	if (err && err != -EAGAIN)
		add_no_library(d, fd, why);
	else
		add_way(d, fd, "brought by a borrowed thread and a memfd");
	add_python(d, pid);
}

/* What would become of it. */
static void add_fate(struct dry *d, pid_t pid, const struct look *l, bool kernel)
{
	const char *why = unseen(d, l, kernel);
	const char *kept_out = why ? NULL : kept_out__why(pid);

	if (l->path && !d->options->no_gpu)
		add_driver(d, l->path);
	if (why) {
		text__printf(&d->out, "  CPU samples only%s\n", why);
	} else if (kept_out) {
		d->counts.untimed++;
		d->counts.kept_out++;
		text__printf(&d->out, "  CPU samples only: it is left alone, since %s\n", kept_out);
	} else {
		add_launching(d, pid, l->fd);
	}
}

/* With -a only those that something would be done to. */
static void show_known(struct dry *d, pid_t pid, const struct look *l, bool denied)
{
	struct proc_stat stat;

	if (proc__stat(pid, 0, &stat))
		memset(&stat, 0, sizeof(stat));		/* it has ended just now */
	denied = denied && !stat.kernel && !d->options->no_gpu;
	d->denied += denied;
	if (l->fd < 0 && d->options->all) {
		d->without_driver += !denied;
		return;
	}
	d->shown++;
	add_process(d, pid, &stat);
	if (denied)
		text__printf(&d->out, "  %s\n", denial());
	else
		add_fate(d, pid, l, stat.kernel);
}

static int show(void *ctx, pid_t pid)
{
	struct dry *d = ctx;
	struct look l = { .pid = pid, .fd = -1 };
	uint64_t once;
	int err;

	if (pid == getpid() || table__get(d->seen, (uint64_t)pid, &once))
		return 0;
	if (table__set(d->seen, (uint64_t)pid, 1))
		return -ENOMEM;
	err = maps__read(pid, find_driver, &l);
	show_known(d, pid, &l, err == -EACCES || err == -EPERM);
	if (l.fd >= 0)
		close(l.fd);
	free(l.path);
	return 0;
}

/* --- the targets ------------------------------------------------------------------------------ */

static int show_all(struct dry *d)
{
	int err = pids__all(show, d);

	text__printf(&d->out, "%u other processes: CPU samples only, unless they load the CUDA driver\n",
		     d->without_driver);
	if (d->denied) {
		text__add_count(&d->out, d->denied, "process", "processes");
		text__printf(&d->out, ": %s\n", denial());
	}
	return err;
}

static int show_cgroup(struct dry *d)
{
	char *why = NULL, name[TEXT_NAME];
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
	log_error("there is no process in --cgroup %s or below it", text__name(name, d->options->cgroup));
	return -ESRCH;
}

/* Each of these: 0, or the exit code of a run that would not begin, whose reason is said. */
static int judge_output(const struct dry *d)
{
	char *why = NULL;
	int err = result__check(d->options, &d->caller, &why);

	if (err)
		log_error("%s", why ? why : strerror(-err));
	free(why);
	return err ? result__refusal(d->options, err) : 0;
}

static int judge_command(const struct dry *d, const struct variables *variables, int kept, const char *why)
{
	const char *name = d->options->command[0];
	int code, err;

	if (!d->options->no_gpu && precheck__refuses(d->options, kept)) {
		log_error("%s", why ? why : strerror(ENOMEM));
		return EXIT_NO_PERMISSION;
	}
	code = judge_output(d);
	if (code)
		return code;
	err = executable__check(name, variables, &d->caller);
	if (!err)
		return 0;
	log_error("can't run %s: %s", name, strerror(-err));
	return err == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

static void add_command(struct dry *d, const struct variables *variables, int kept, const char *why)
{
	char **paths = driver__candidates(variables__get(variables, "LD_LIBRARY_PATH"));
	const char *name = d->options->command[0];
	int fd = -1;

	text__add_string(&d->out, "command ");
	text__add_clean(&d->out, name, strlen(name));
	text__add_string(&d->out, "\n");
	if (paths && paths[0] && !d->options->no_gpu) {
		add_driver(d, paths[0]);
		fd = open(paths[0], O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	}
	if (fd < 0)
		text__add_string(&d->out, "  CPU samples only, unless it loads the CUDA driver\n");
	else if (kept)
		text__printf(&d->out, "  %s\n", why ? why : "no timing library");
	else
		add_way(d, fd, "loaded by the driver as " PRESET_VARIABLE " tells it");
	if (fd >= 0)
		close(fd);
	driver__free_candidates(paths);
}

/* With the environment that it would get. */
static int show_command(struct dry *d)
{
	struct variables variables = {};
	int kept, err = variables__new(&d->caller, &variables);
	char *why = NULL;

	if (err)
		return err;
	kept = precheck__environment(&variables, wants_library(d->options), &why);
	d->refused = judge_command(d, &variables, kept, why);
	if (!d->refused)
		add_command(d, &variables, kept, why);
	free(why);
	variables__free(&variables);
	return 0;
}

/* Of the whole machine there may be some that not even root can look at: a run can't, either. */
static bool lacks_rights(const struct dry *d)
{
	return d->denied && (geteuid() || !d->options->all);
}

/* What the run itself would find before it begins. */
static int foresee(const struct dry *d)
{
	if (d->refused)
		return d->refused;
	if (lacks_rights(d))
		return EXIT_NO_PERMISSION;
	if (d->options->all || d->options->command || d->options->no_gpu)
		return EXIT_COMPLETE;
	return verdict__targets(d->options, &d->counts, d->shown > d->counts.taken, false);
}

static int exit_code(const struct dry *d, int err)
{
	switch (err) {
	case 0:
		return foresee(d);
	case -ESRCH:
		return EXIT_EMPTY;
	case -EINVAL:
		return EXIT_USAGE;
	default:
		return EXIT_OWN_FAILURE;
	}
}

static int show_targets(struct dry *d)
{
	const struct options *o = d->options;
	int err;

	if (o->command)
		return show_command(d);
	err = o->all ? show_all(d) : o->cgroup ? show_cgroup(d) : named__each(o, show, d);
	if (!err && !lacks_rights(d))
		d->refused = judge_output(d);
	return err;
}

int dry_run(const struct options *options)
{
	struct dry d = { .options = options, .seen = table__new() };
	int err = d.seen ? 0 : -ENOMEM, code;

	if (!err && caller__get(&d.caller)) {
		log_error(CALLER_FAILS ": %s", strerror(EINVAL));
		table__free(d.seen);
		return EXIT_OWN_FAILURE;
	}
	if (!err)
		err = show_targets(&d);
	if (!err)
		err = text__write(&d.out, stdout);
	if (err && err != -ESRCH && err != -EINVAL)
		log_error("looking at what would be touched: %s", strerror(-err));
	code = exit_code(&d, err);
	text__free(&d.out);
	table__free(d.seen);
	caller__free(&d.caller);
	return code;
}
