/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The command line: from argv to one struct, and what goes together. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define OPTIONS_DEFAULT_FREQUENCY 20u
#define OPTIONS_MAX_FREQUENCY 10000u
#define OPTIONS_MAX_PID 4194304u	/* PID_MAX_LIMIT of 64-bit kernels */
#define OPTIONS_MIN_DURATION_NS 1000000ull
#define OPTIONS_MAX_DURATION_NS (366ull * 86400 * 1000000000)	/* leaves room for sums */

enum options_metric {
	METRIC_DEFAULT = 0,	/* not given; never left after options__parse */
	METRIC_GPU,		/* ns of device time */
	METRIC_CPU,		/* ns of CPU time */
	METRIC_LAUNCHES,	/* number of launches */
	METRIC_BYTES,		/* copied or set in memory of devices */
	METRIC_WAIT,		/* ns of the host's time that it waits for devices */
};

enum options_format {
	FORMAT_DEFAULT = 0,	/* not given */
	FORMAT_FOLDED,
};

/* What to do at all. */
enum options_action {
	ACTION_RECORD = 0,
	ACTION_HELP,		/* text for stdout: options__print_help */
	ACTION_VERSION,
	ACTION_CALIBRATE,
};

struct options {
	enum options_action action;
	pid_t *pids;		/* sorted, without doubles */
	size_t nr_pids;
	bool all;
	const char *cgroup;	/* in argv; NULL: not given */
	char **command;		/* in argv, NULL-terminated; NULL: none */
	unsigned int frequency;	/* Hz; the kernel's own limit may be lower */
	bool frequency_given;
	uint64_t duration_ns;	/* 0: until the target ends or a signal comes */
	const char *output;	/* in argv; "-": stdout; NULL: not given */
	enum options_format format;
	enum options_metric metric;
	bool inject;		/* also into processes that nobody named, with -a */
	bool no_inject;
	uint32_t launches_every;	/* 0: by overhead_ppm; 1: all; N: one of N */
	uint32_t overhead_ppm;	/* millionths of a thread's and a device's time */
	bool launches_given, overhead_given;
	bool dry_run;
	bool no_cpu;
	bool no_gpu;
	bool native_python;
	bool annotate;
	bool no_inlines;
	bool debuginfod;
	bool per_thread;
	bool force;
	bool quiet;
	unsigned int verbose;
	bool json;		/* messages and closing summary for scripts */
	int device;		/* to be calibrated; -1: one of each kind */
};

/*
 * 0: *o is ready and consistent; METRIC_DEFAULT was replaced by what the target implies.
 * -EINVAL: usage error, *message says flag, value and mend (malloc'd, one line or more).
 * -ENOMEM. After an error only o->json holds: how it is to be told. argv must outlive *o. Prints
 * nothing, never exits.
 */
int options__parse(int argc, char **argv, struct options *o, char **message);
void options__free(struct options *o);

/*
 * The words behind "calibrate", which is argv[0] here: as options__parse, but nothing is freed and *o
 * only added to. The error is a text of its own.
 */
struct text;
int options__parse_calibrate(int argc, char **argv, struct options *o, struct text *message);

#define OPTIONS_MAX_EVERY 1000000u
#define OPTIONS_OVERHEAD_PPM 10000u

/* Pure: whether only the library can give what is asked for. */
bool options__needs_library(const struct options *o);
/* Pure: what is wrong with this combination (a constant), or NULL. METRIC_DEFAULT is allowed. */
const char *options__check(const struct options *o);
/*
 * Pure: the metric that these options imply where none was given: the first that the run can have of
 * gpu, launches, cpu; for -a cpu, or launches with --no-cpu.
 */
enum options_metric options__default_metric(const struct options *o);

/* Where the result goes. */
enum options_destination {
	DESTINATION_STDOUT,	/* folded on stdout */
	DESTINATION_SUMMARY,	/* the short table on stdout, which is a terminal */
	DESTINATION_FILE,	/* o->output */
	DESTINATION_OWN_FILE,	/* gpucollect-NAME-PID.folded: stdout belongs to the command */
};
enum options_destination options__destination(const struct options *o, bool stdout_is_terminal);

/* To stdout; 0 or a negative errno (full disk, closed pipe). */
int options__print_help(void);
int options__print_version(void);

#endif
