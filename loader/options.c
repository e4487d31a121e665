// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* getopt reads the options, and not argp, so that errors are ours. */
#include "loader/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/array.h"
#include "loader/base/parse.h"
#include "loader/base/text.h"
#include "loader/options_table.h"

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
		[METRIC_BYTES] = "bytes", [METRIC_WAIT] = "wait",
	};
	size_t i;

	for (i = METRIC_GPU; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(s, names[i])) {
			r->o->metric = (enum options_metric)i;
			return 0;
		}
	return usage_error(r, "--metric %s: no such metric: give gpu, cpu, launches, bytes or wait", s);
}

static int read_launches(struct reading *r, const char *s)
{
	uint64_t every;

	r->o->launches_given = true;
	r->o->launches_every = !strcmp(s, "all");
	if (!strcmp(s, "all") || !strcmp(s, "auto"))
		return 0;
	if (parse__u64(s, 1, OPTIONS_MAX_EVERY, &every))
		return usage_error(r, "--launches %s: which ones? Give auto, all, or N from 1 to %u for one "
				   "of N", s, OPTIONS_MAX_EVERY);
	r->o->launches_every = (uint32_t)every;
	return 0;
}

static int read_overhead(struct reading *r, const char *s)
{
	uint64_t whole, part = 0, scale = 10000;
	const char *dot = strchr(s, '.');
	char digits[8];
	size_t len = dot ? (size_t)(dot - s) : strlen(s);

	if (len && len < sizeof(digits) && (!dot || (dot[1] && strlen(dot + 1) <= 4))) {
		memcpy(digits, s, len);
		digits[len] = '\0';
		for (size_t i = 1; dot && dot[i]; i++)
			scale /= 10;
		if (!parse__u64(digits, 0, 100, &whole) &&
		    (!dot || !parse__u64(dot + 1, 0, 9999, &part))) {
			whole = whole * 10000 + part * scale;
			if (whole >= 100 && whole <= 1000000) {
				r->o->overhead_ppm = (uint32_t)whole;
				r->o->overhead_given = true;
				return 0;
			}
		}
	}
	return usage_error(r, "--overhead %s: not a share of the time: give 0.01 to 100, in percent", s);
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
	case OPT_LAUNCHES:
		return read_launches(r, value);
	case OPT_OVERHEAD:
		return read_overhead(r, value);
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

/* What getopt wants, from the one table. */
static void getopt_tables(struct option *longs, char *shorts)
{
	const struct argp_option *t;

	*shorts++ = '+';	/* stop at the first word that is no option */
	*shorts++ = ':';	/* tell a missing value from an unknown option */
	for (t = options__table; t->name || t->doc; t++) {
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
	if (len == strlen("device") && !strncmp(word + 2, "device", len))
		return usage_error(r, "--device: it goes with calibrate alone: gpucollect calibrate "
				   "--device N");
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
	if (!strcmp(*rest, "calibrate"))
		return usage_error(r, "calibrate: it stands before all options: gpucollect calibrate "
				   "[--device N] [--json] [-q]");
	return usage_error(r, "%s: a command stands behind --, with its arguments: gpucollect "
			   "[OPTION...] -- %s ...", *rest, *rest);
}

static int read_words(struct reading *r, int argc, char **argv)
{
	struct option longs[OPTIONS_MAX];
	char shorts[2 * OPTIONS_MAX + 3];
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
	o->overhead_ppm = OPTIONS_OVERHEAD_PPM;
	*message = NULL;
	if (argc > 1 && !strcmp(argv[1], "calibrate"))
		err = options__parse_calibrate(argc - 1, argv + 1, o, &r.message);
	else
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
