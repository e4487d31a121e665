// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What goes together: pure functions of the parsed options. */
#include "loader/options.h"

#include <string.h>

struct rule {
	bool (*broken)(const struct options *o);
	const char *message;
};

static bool attaches(const struct options *o)
{
	return o->nr_pids || o->all;
}

static bool no_target(const struct options *o)
{
	return !attaches(o) && !o->command;
}

static bool pids_and_all(const struct options *o)
{
	return o->nr_pids && o->all;
}

static bool pids_and_command(const struct options *o)
{
	return o->nr_pids && o->command;
}

static bool all_and_command(const struct options *o)
{
	return o->all && o->command;
}

static bool nothing_left(const struct options *o)
{
	return o->no_cpu && o->no_gpu;
}

static bool gpu_without_gpu(const struct options *o)
{
	return o->metric == METRIC_GPU && o->no_gpu;
}

static bool launches_without_gpu(const struct options *o)
{
	return o->metric == METRIC_LAUNCHES && o->no_gpu;
}

static bool cpu_without_cpu(const struct options *o)
{
	return o->metric == METRIC_CPU && o->no_cpu;
}

static bool gpu_without_library(const struct options *o)
{
	return o->metric == METRIC_GPU && o->no_inject;
}

static bool gpu_of_pids(const struct options *o)
{
	return o->metric == METRIC_GPU && o->nr_pids;
}

static bool gpu_of_all(const struct options *o)
{
	return o->metric == METRIC_GPU && o->all;
}

static bool frequency_without_cpu(const struct options *o)
{
	return o->frequency_given && o->no_cpu;
}

static bool quiet_and_verbose(const struct options *o)
{
	return o->quiet && o->verbose;
}

/* The first that is broken is the one that is told. */
static const struct rule rules[] = {
	{ no_target,
	  "no target. Name one of\n"
	  "  gpucollect -p PID[,PID...]     processes that run already\n"
	  "  gpucollect -a -d 30s           the whole machine\n"
	  "  gpucollect -- CMD ARGS...      a command" },
	{ pids_and_all, "-p with -a: -a takes every process, those of -p included: leave one out" },
	{ pids_and_command, "-p with a command: one run has one target: leave out -p, or the "
			    "command behind --" },
	{ all_and_command, "-a with a command: one run has one target: leave out -a, or the "
			   "command behind --" },
	{ nothing_left, "--no-cpu with --no-gpu: nothing is left to record: leave one out" },
	{ gpu_without_gpu, "--metric gpu with --no-gpu: no GPU time is recorded: leave --no-gpu "
			   "out, or use --metric cpu" },
	{ launches_without_gpu, "--metric launches with --no-gpu: no launches are recorded: leave "
				"--no-gpu out, or use --metric cpu" },
	{ cpu_without_cpu, "--metric cpu with --no-cpu: no CPU time is recorded: leave --no-cpu "
			   "out, or use --metric launches" },
	{ gpu_of_pids, "--metric gpu with -p: GPU time is measured by a library that gets into a "
		       "process only when gpucollect starts it: use gpucollect -- CMD, or --metric "
		       "launches or cpu" },
	{ gpu_of_all, "--metric gpu with -a: GPU time is measured by a library that gets into a "
		      "process only when gpucollect starts it: use gpucollect -- CMD, or --metric "
		      "launches or cpu" },
	{ gpu_without_library, "--metric gpu with --no-inject: without the library launches are "
			       "counted, not timed: leave --no-inject out, or use --metric "
			       "launches" },
	{ frequency_without_cpu, "-F with --no-cpu: -F is the rate of CPU samples, and none are "
				 "taken: leave one out" },
	{ quiet_and_verbose, "-q with -v: leave one out" },
};

const char *options__check(const struct options *o)
{
	size_t i;

	for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].broken(o))
			return rules[i].message;
	return NULL;
}

enum options_metric options__default_metric(const struct options *o)
{
	if (attaches(o))
		return o->no_cpu ? METRIC_LAUNCHES : METRIC_CPU;
	if (o->no_gpu)
		return METRIC_CPU;
	return o->no_inject ? METRIC_LAUNCHES : METRIC_GPU;
}

enum options_destination options__destination(const struct options *o, bool stdout_is_terminal)
{
	if (o->output)
		return strcmp(o->output, "-") ? DESTINATION_FILE : DESTINATION_STDOUT;
	if (o->command)
		return DESTINATION_OWN_FILE;
	return stdout_is_terminal && o->format == FORMAT_DEFAULT ? DESTINATION_SUMMARY :
								   DESTINATION_STDOUT;
}
