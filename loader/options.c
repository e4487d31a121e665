// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* argp describes the options and prints the help; getopt reads them, so that errors are ours. */
#include "loader/options.h"

#include <argp.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/array.h"
#include "loader/base/parse.h"
#include "loader/base/text.h"
#include "loader/exit_codes.h"
#include "loader/kept_out.h"

enum {
	OPT_METRIC = 1000,
	OPT_CGROUP,
	OPT_INJECT,
	OPT_DRY_RUN,
	OPT_NO_INJECT,
	OPT_NO_CPU,
	OPT_NO_GPU,
	OPT_ANNOTATE,
	OPT_NATIVE_PYTHON,
	OPT_NO_INLINES,
	OPT_DEBUGINFOD,
	OPT_PER_THREAD,
	OPT_JSON,
	OPT_VERSION,
};

#define STRING_(x) #x
#define STRING(x) STRING_(x)

static const struct argp_option table[] = {
	{ .doc = "What to watch:" },
	{ "pid", 'p', "PID[,PID...]", 0, "processes that run already, with their children; may be "
	  "repeated", 0 },
	{ "cgroup", OPT_CGROUP, "PATH", 0, "all processes of a control group (version 2) and below "
	  "it, as of a container: a directory, or a path below /sys/fs/cgroup", 0 },
	{ "all", 'a', NULL, 0, "the whole machine", 0 },
	{ .doc = "How:" },
	{ "duration", 'd', "TIME", 0, "stop after 10, 1.5s, 500ms, 2m or 1h (bare: seconds); "
	  "default: when the target ends, or at Ctrl-C", 0 },
	{ "frequency", 'F', "HZ", 0, "samples a second on each CPU, 1 to 10000; default 20", 0 },
	{ "no-cpu", OPT_NO_CPU, NULL, 0, "take no CPU samples", 0 },
	{ "no-gpu", OPT_NO_GPU, NULL, 0, "watch no launches", 0 },
	{ "inject", OPT_INJECT, NULL, 0, "with -a: load the timing library into every process that "
	  "uses CUDA; else it is the default", 0 },
	{ "no-inject", OPT_NO_INJECT, NULL, 0, "load no library into any process: launches are "
	  "counted by probes, not timed", 0 },
	{ "dry-run", OPT_DRY_RUN, NULL, 0, "only print which processes would be touched, and how", 0 },
	{ .doc = "Output:" },
	{ "output", 'o', "FILE", 0, "write here (- is stdout); a command's default is "
	  "gpucollect-NAME-PID.folded, else stdout", 0 },
	{ "format", 'f', "FORMAT", 0, "folded; default: by the suffix of FILE", 0 },
	{ "metric", OPT_METRIC, "METRIC", 0, "what the stacks weigh: gpu (ns of GPU time), cpu "
	  "(ns of CPU time) or launches (a number). Default: gpu, with --no-inject launches, with "
	  "--no-gpu cpu; of -a cpu, with --no-cpu launches", 0 },
	{ "per-thread", OPT_PER_THREAD, NULL, 0, "a frame for each thread under its process", 0 },
	{ "annotate", OPT_ANNOTATE, NULL, 0, "mark frames: _[k] kernel, _[i] inlined, _[j] made at "
	  "run time, _[G] GPU", 0 },
	{ "native-python", OPT_NATIVE_PYTHON, NULL, 0, "keep the Python interpreter's own frames", 0 },
	{ "no-inlines", OPT_NO_INLINES, NULL, 0, "do not read debug information for the functions "
	  "that the compiler inlined", 0 },
	{ "debuginfod", OPT_DEBUGINFOD, NULL, 0, "ask the servers of DEBUGINFOD_URLS for names that "
	  "this machine doesn't have", 0 },
	{ "force", 'y', NULL, 0, "replace an existing FILE", 0 },
	{ "quiet", 'q', NULL, 0, "no progress and no closing summary on stderr", 0 },
	{ "verbose", 'v', NULL, 0, "more on stderr: what is probed, and what libbpf says", 0 },
	{ "json", OPT_JSON, NULL, 0, "messages and closing summary on stderr as JSON, an object a "
	  "line (docs/output.md)", 0 },
	{ "help", 'h', NULL, 0, "print this text", -1 },
	{ "version", OPT_VERSION, NULL, 0, "print the version", -1 },
	{ 0 },
};

static const char usage[] = "-p PID[,PID...]\n--cgroup PATH\n-a\n-- CMD [ARG...]";

static const char doc[] =
	"Shows which lines of code the GPU and the CPU work for, as folded stacks.\n\n"
	"  sudo gpucollect -o train.folded -- python3 train.py\n"
	"  speedscope train.folded\n\n"
	"  sudo gpucollect -p 4242 -d 10s | speedscope -\n"
	"  sudo gpucollect -a -d 30s --metric launches -o all.folded\n"
	"\v"
	"GPU time counts for the path that launched the work; kernels that overlap are each "
	"counted in full. Only data goes to stdout, all else to stderr. The first Ctrl-C stops "
	"and writes; while a command runs the first is the command's own. SIGUSR1 writes a file "
	"and goes on.\n\n"
	"GPU work is timed by a library that gpucollect loads into the processes that it was pointed "
	"at. A variable GPUCOLLECT_DISABLE in a process's environment, or a file "
	KEPT_OUT_FILE " (the machine's, or one in the process's root directory), keeps it and all "
	"probes out.\n\nExit status:\n"
#define X(name, code, meaning) "  " #code "\t" meaning "\n"
	EXIT_CODES(X)
#undef X
	"With a command: its own status, or " STRING(EXIT_SIGNAL) " + the number of the signal "
	"that ended it.";

static const struct argp argp = { .options = table, .args_doc = usage, .doc = doc };

int options__print_help(void)
{
	errno = 0;
	/* argp does not change the name it is given. */
	argp_help(&argp, stdout, ARGP_HELP_SHORT_USAGE | ARGP_HELP_PRE_DOC | ARGP_HELP_LONG |
		  ARGP_HELP_POST_DOC, (char *)(uintptr_t)"gpucollect");
	return fflush(stdout) || ferror(stdout) ? (errno ? -errno : -EIO) : 0;
}

int options__print_version(void)
{
	errno = 0;
	printf("gpucollect %s\n", OPTIONS_VERSION);
	return fflush(stdout) || ferror(stdout) ? (errno ? -errno : -EIO) : 0;
}

/* --- reading --- */

struct reading {
	struct options *o;
	struct text message;
	size_t pids_size;
};

#define usage_error(r, ...) (text__printf(&(r)->message, __VA_ARGS__), -EINVAL)

static int add_pid(struct reading *r, const char *list, const char *item, size_t len)
{
	struct options *o = r->o;
	char number[32];
	uint64_t pid;
	int err = -EINVAL;

	if (len && len < sizeof(number)) {
		memcpy(number, item, len);
		number[len] = '\0';
		err = parse__u64(number, 1, OPTIONS_MAX_PID, &pid);
	}
	if (err == -ERANGE)
		return usage_error(r, "-p %s: no process id, they go from 1 to %u: give the id of "
				   "a process that runs", list, OPTIONS_MAX_PID);
	if (err)
		return usage_error(r, "-p %s: not a list of process ids: give numbers, as in -p "
				   "4242 or -p 4242,4243", list);
	if (array__reserve((void **)&o->pids, &r->pids_size, o->nr_pids, sizeof(*o->pids)))
		return -ENOMEM;
	o->pids[o->nr_pids++] = (pid_t)pid;
	return 0;
}

static int add_pids(struct reading *r, const char *list)
{
	const char *s = list;
	size_t len;
	int err;

	for (;; s += len + 1) {
		len = strcspn(s, ",");
		err = add_pid(r, list, s, len);
		if (err || !s[len])
			return err;
	}
}

static int read_duration(struct reading *r, const char *s)
{
	uint64_t ns;
	int err = parse__duration(s, &ns);

	if (err == -EINVAL)
		return usage_error(r, "-d %s: not a time: give 10, 1.5s, 500ms, 2m or 1h", s);
	if (!err && ns < OPTIONS_MIN_DURATION_NS)
		return usage_error(r, "-d %s: too short, 1ms at least: leave -d out to record "
				   "until the target ends or Ctrl-C", s);
	if (err || ns > OPTIONS_MAX_DURATION_NS)
		return usage_error(r, "-d %s: too long, 366 days at most: leave -d out to record "
				   "until the target ends or Ctrl-C", s);
	r->o->duration_ns = ns;
	return 0;
}

static int read_frequency(struct reading *r, const char *s)
{
	uint64_t hz;
	int err = parse__u64(s, 1, OPTIONS_MAX_FREQUENCY, &hz);

	if (err == -EINVAL)
		return usage_error(r, "-F %s: not a frequency: give a whole number of Hz, 1 "
				   "to %u", s, OPTIONS_MAX_FREQUENCY);
	if (err)
		return usage_error(r, "-F %s: out of range: give 1 to %u Hz%s", s,
				   OPTIONS_MAX_FREQUENCY, strspn(s, "0") == strlen(s) ?
				   ", or --no-cpu for no samples" : "");
	r->o->frequency = (unsigned int)hz;
	r->o->frequency_given = true;
	return 0;
}

static int read_metric(struct reading *r, const char *s)
{
	static const char *const names[] = {
		[METRIC_GPU] = "gpu", [METRIC_CPU] = "cpu", [METRIC_LAUNCHES] = "launches",
	};
	size_t i;

	for (i = METRIC_GPU; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(s, names[i])) {
			r->o->metric = (enum options_metric)i;
			return 0;
		}
	return usage_error(r, "--metric %s: no such metric: give gpu, cpu or launches", s);
}

static int read_format(struct reading *r, const char *s)
{
	if (strcmp(s, "folded"))
		return usage_error(r, "-f %s: no such format: the only one is folded", s);
	r->o->format = FORMAT_FOLDED;
	return 0;
}

/* A suffix that promises another format than we write would mislead whoever opens the file. */
static int check_suffix(struct reading *r)
{
	const char *path = r->o->output, *name, *dot;

	if (!path || r->o->format != FORMAT_DEFAULT)
		return 0;
	if (!*path)
		return usage_error(r, "-o '': no name: give a file, or - for stdout");
	name = strrchr(path, '/');
	name = name ? name + 1 : path;
	dot = strrchr(name, '.');
	if (!dot || dot == name || !dot[1] || !strcmp(dot, ".folded"))
		return 0;
	return usage_error(r, "-o %s: no format has the suffix %s: name it *.folded, or add "
			   "-f folded", path, dot);
}

static int read_option(struct reading *r, int key, const char *value)
{
	struct options *o = r->o;

	switch (key) {
	case 'p':
		return add_pids(r, value);
	case 'a':
		o->all = true;
		return 0;
	case 'd':
		return read_duration(r, value);
	case 'F':
		return read_frequency(r, value);
	case 'o':
		o->output = value;
		return 0;
	case 'f':
		return read_format(r, value);
	case OPT_METRIC:
		return read_metric(r, value);
	case OPT_CGROUP:
		o->cgroup = value;
		return 0;
	case OPT_INJECT:
		o->inject = true;
		return 0;
	case OPT_NO_INJECT:
		o->no_inject = true;
		return 0;
	case OPT_DRY_RUN:
		o->dry_run = true;
		return 0;
	case OPT_NO_CPU:
		o->no_cpu = true;
		return 0;
	case OPT_NO_GPU:
		o->no_gpu = true;
		return 0;
	case OPT_ANNOTATE:
		o->annotate = true;
		return 0;
	case OPT_NATIVE_PYTHON:
		o->native_python = true;
		return 0;
	case OPT_NO_INLINES:
		o->no_inlines = true;
		return 0;
	case OPT_DEBUGINFOD:
		o->debuginfod = true;
		return 0;
	case OPT_PER_THREAD:
		o->per_thread = true;
		return 0;
	case 'y':
		o->force = true;
		return 0;
	case 'q':
		o->quiet = true;
		return 0;
	case 'v':
		o->verbose++;
		return 0;
	case OPT_JSON:
		o->json = true;
		return 0;
	default:
		return -EINVAL;
	}
}

#define NR_OPTIONS (sizeof(table) / sizeof(table[0]))

/* What getopt wants, from the one table. */
static void getopt_tables(struct option *longs, char *shorts)
{
	size_t i;

	*shorts++ = '+';	/* stop at the first word that is no option */
	*shorts++ = ':';	/* tell a missing value from an unknown option */
	for (i = 0; i < NR_OPTIONS; i++) {
		const struct argp_option *t = &table[i];

		if (!t->name)
			continue;
		*longs++ = (struct option){
			.name = t->name, .val = t->key,
			.has_arg = t->arg ? required_argument : no_argument,
		};
		if (t->key > 0 && t->key < 128) {
			*shorts++ = (char)t->key;
			if (t->arg)
				*shorts++ = ':';
		}
	}
	*longs = (struct option){ 0 };
	*shorts = '\0';
}

/* `word` is what getopt stumbled over, `c` the letter in it, if it was a short option. */
static int unknown_option(struct reading *r, const struct option *longs, const char *word, int c)
{
	size_t len, i, matches = 0;

	if (strncmp(word, "--", 2))
		return usage_error(r, "-%c: no such option: gpucollect --help lists them", c);
	len = strcspn(word + 2, "=");
	for (i = 0; longs[i].name; i++) {
		if (strncmp(longs[i].name, word + 2, len))
			continue;
		matches++;
		if (longs[i].has_arg == no_argument && word[2 + len] == '=' &&
		    strlen(longs[i].name) == len)
			return usage_error(r, "%s: this option has no value: use --%s", word,
					   longs[i].name);
	}
	if (matches > 1)
		return usage_error(r, "%s: several options begin like this: "
				   "write it in full", word);
	return usage_error(r, "%s: no such option: gpucollect --help lists them", word);
}

/* What follows the options: a command behind "--", or a mistake. */
static int read_rest(struct reading *r, char **rest, bool separated)
{
	uint64_t pid;

	if (separated && !*rest)
		return usage_error(r, "--: no command behind it: gpucollect [OPTION...] -- CMD "
				   "[ARG...]");
	if (separated && !**rest)
		return usage_error(r, "-- '': the command has no name: gpucollect -- CMD [ARG...]");
	if (separated) {
		r->o->command = rest;
		return 0;
	}
	if (!*rest)
		return 0;
	if (!parse__u64(*rest, 1, OPTIONS_MAX_PID, &pid))
		return usage_error(r, "%s: what is it? For a process that runs use "
				   "-p %s", *rest, *rest);
	return usage_error(r, "%s: a command stands behind --, with its arguments: gpucollect "
			   "[OPTION...] -- %s ...", *rest, *rest);
}

static int read_words(struct reading *r, int argc, char **argv)
{
	struct option longs[NR_OPTIONS + 1];
	char shorts[2 * NR_OPTIONS + 3];
	int key, before, err;

	getopt_tables(longs, shorts);
	optind = 0;	/* glibc: begin anew */
	opterr = 0;
	for (;;) {
		before = optind ? optind : 1;
		key = getopt_long(argc, argv, shorts, longs, NULL);
		if (key == -1)
			break;
		if (key == 'h' || key == OPT_VERSION) {
			r->o->action = key == 'h' ? ACTION_HELP : ACTION_VERSION;
			return 0;
		}
		if (key == ':')
			return usage_error(r, "%s: a value is missing: gpucollect --help "
					   "shows which", argv[optind - 1]);
		if (key == '?')
			return unknown_option(r, longs, argv[before], optopt);
		err = read_option(r, key, optarg);
		if (err)
			return err;
	}
	/* "--" as the value of an option is not the separator: only getopt knows. */
	return read_rest(r, argv + optind, optind == before + 1);
}

static int pid_cmp(const void *a, const void *b)
{
	const pid_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void sort_pids(struct options *o)
{
	size_t i, kept = 0;

	if (!o->nr_pids)
		return;
	qsort(o->pids, o->nr_pids, sizeof(*o->pids), pid_cmp);
	for (i = 0; i < o->nr_pids; i++)
		if (!kept || o->pids[i] != o->pids[kept - 1])
			o->pids[kept++] = o->pids[i];
	o->nr_pids = kept;
}

/* Errors are to be told as asked, wherever on the command line that stands. */
static bool wants_json(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--"); i++)
		if (!strcmp(argv[i], "--json"))
			return true;
	return false;
}

int options__parse(int argc, char **argv, struct options *o, char **message)
{
	struct reading r = { .o = o };
	const char *wrong;
	int err;

	memset(o, 0, sizeof(*o));
	o->frequency = OPTIONS_DEFAULT_FREQUENCY;
	*message = NULL;
	err = argc > 0 ? read_words(&r, argc, argv) : 0;
	if (!err && o->action != ACTION_RECORD)
		return 0;
	if (!err)
		err = check_suffix(&r);
	wrong = err ? NULL : options__check(o);
	if (wrong)
		err = usage_error(&r, "%s", wrong);
	if (err) {
		if (err == -EINVAL)
			*message = text__take(&r.message);
		options__free(o);
		o->json = wants_json(argc, argv);
		return err == -EINVAL && !*message ? -ENOMEM : err;
	}
	sort_pids(o);
	if (o->metric == METRIC_DEFAULT)
		o->metric = options__default_metric(o);
	return 0;
}

void options__free(struct options *o)
{
	free(o->pids);
	memset(o, 0, sizeof(*o));
}
