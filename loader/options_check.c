// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What goes together: pure functions of the parsed options. */
#include "loader/options.h"

#include <string.h>

struct rule {
	bool (*broken)(const struct options *o);
	const char *message;
};

static bool no_target(const struct options *o)
{
	return !o->nr_pids && !o->all && !o->cgroup && !o->command;
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

static bool cgroup_and_pids(const struct options *o)
{
	return o->cgroup && o->nr_pids;
}

static bool cgroup_and_all(const struct options *o)
{
	return o->cgroup && o->all;
}

static bool cgroup_and_command(const struct options *o)
{
	return o->cgroup && o->command;
}

static bool empty_cgroup(const struct options *o)
{
	return o->cgroup && !*o->cgroup;
}

static bool inject_and_not(const struct options *o)
{
	return o->inject && o->no_inject;
}

static bool inject_without_gpu(const struct options *o)
{
	return o->inject && o->no_gpu;
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

static bool bytes_without_gpu(const struct options *o)
{
	return o->metric == METRIC_BYTES && o->no_gpu;
}

static bool bytes_without_library(const struct options *o)
{
	return o->metric == METRIC_BYTES && (o->no_inject || (o->all && !o->inject));
}

static bool wait_without_gpu(const struct options *o)
{
	return o->metric == METRIC_WAIT && o->no_gpu;
}

static bool wait_without_library(const struct options *o)
{
	return o->metric == METRIC_WAIT && (o->no_inject || (o->all && !o->inject));
}

static bool gpu_without_library(const struct options *o)
{
	return o->metric == METRIC_GPU && o->no_inject;
}

static bool gpu_of_all(const struct options *o)
{
	return o->metric == METRIC_GPU && o->all && !o->inject;
}

static bool launches_chosen_without_gpu(const struct options *o)
{
	return (o->launches_given || o->overhead_given) && o->no_gpu;
}

static bool launches_chosen_without_library(const struct options *o)
{
	return ((o->launches_given && o->launches_every != 1) || o->overhead_given) &&
	       (o->no_inject || (o->all && !o->inject));
}

static bool overhead_and_number(const struct options *o)
{
	return o->overhead_given && o->launches_every;
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
	  "  gpucollect --cgroup PATH       the processes of a control group\n"
	  "  gpucollect -a -d 30s           the whole machine\n"
	  "  gpucollect -- CMD ARGS...      a command" },
	{ pids_and_all, "-p with -a: -a takes every process, those of -p included: leave one out" },
	{ pids_and_command, "-p with a command: one run has one target: leave out -p, or the "
			    "command behind --" },
	{ all_and_command, "-a with a command: one run has one target: leave out -a, or the "
			   "command behind --" },
	{ empty_cgroup, "--cgroup '': no path: give a directory, or a path below /sys/fs/cgroup" },
	{ cgroup_and_pids, "--cgroup with -p: one run has one target: leave one out" },
	{ cgroup_and_all, "--cgroup with -a: -a takes every process: leave one out" },
	{ cgroup_and_command, "--cgroup with a command: one run has one target: leave out --cgroup, "
			      "or the command behind --" },
	{ inject_and_not, "--inject with --no-inject: leave one out" },
	{ inject_without_gpu, "--inject with --no-gpu: the library watches GPU work: leave one "
			      "out" },
	{ nothing_left, "--no-cpu with --no-gpu: nothing is left to record: leave one out" },
	{ gpu_without_gpu, "--metric gpu with --no-gpu: no GPU time is recorded: leave --no-gpu "
			   "out, or use --metric cpu" },
	{ launches_without_gpu, "--metric launches with --no-gpu: no launches are recorded: leave "
				"--no-gpu out, or use --metric cpu" },
	{ bytes_without_gpu, "--metric bytes with --no-gpu: no copies are recorded: leave --no-gpu "
			     "out, or use --metric cpu" },
	{ bytes_without_library, "--metric bytes without the library: only it sees copies: leave "
				 "--no-inject out (with -a, add --inject), or use --metric launches" },
	{ wait_without_gpu, "--metric wait with --no-gpu: no waits are recorded: leave --no-gpu out, or use "
			    "--metric cpu" },
	{ wait_without_library, "--metric wait without the library: only it sees waits: leave --no-inject "
				"out (with -a, add --inject), or use --metric cpu" },
	{ cpu_without_cpu, "--metric cpu with --no-cpu: no CPU time is recorded: leave --no-cpu "
			   "out, or use --metric launches" },
	{ gpu_without_library, "--metric gpu with --no-inject: without the library launches are "
			       "counted, not timed: leave --no-inject out, or use --metric "
			       "launches" },
	{ gpu_of_all, "--metric gpu with -a: GPU time takes a library in every process, and nobody "
		      "named them: add --inject to load it all the same, or use --metric launches or "
		      "cpu" },
	{ launches_chosen_without_gpu, "--launches or --overhead with --no-gpu: no launches are recorded: "
				       "leave one out" },
	{ launches_chosen_without_library, "--launches or --overhead without the library: only it can leave "
					   "launches out; probes see all: leave it out, or --no-inject "
					   "(with -a, add --inject)" },
	{ overhead_and_number, "--overhead with --launches all or N: these say how many are looked at: leave "
			       "one out" },
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

bool options__needs_library(const struct options *o)
{
	return o->metric == METRIC_GPU || o->metric == METRIC_BYTES || o->metric == METRIC_WAIT;
}

enum options_metric options__default_metric(const struct options *o)
{
	if (o->all)
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
