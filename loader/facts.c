// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/facts.h"

#include <stdio.h>
#include <stdlib.h>

#include "gpu_timing/reader.h"
#include "loader/base/clock.h"

struct count {
	enum profile_counter_kind kind;
	const char *what;
	uint64_t n;
};

static int add_counts(struct profile *p, const struct count *counts, size_t nr)
{
	size_t i;
	int err = 0;

	for (i = 0; i < nr && !err; i++)
		if (counts[i].n)
			err = profile__count(p, counts[i].kind, counts[i].what, counts[i].n);
	return err;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Of `l` those whose record was lost, but whose time came: they stand under [no stack]. */
static int add_ring(const struct facts_input *in, struct profile *p, const struct launches_counters *l)
{
	struct collect_counters c;
	uint64_t n[NR_COUNTERS];

	probes__counters(in->probes, n);
	collect__counters(in->collect, &c);
	const struct count counts[] = {
		{ PROFILE_LOST_SAMPLES, "ring buffer full", n[LOST_SAMPLE] },
		{ PROFILE_LOST_LAUNCHES, "ring buffer full", minus(n[LOST_LAUNCH], l->no_stack) },
		{ PROFILE_LOST_OTHER, "copies lost, ring buffer full",
		  minus(n[LOST_COPY], l->copies_no_stack) },
		{ PROFILE_LOST_OTHER, "waits lost, ring buffer full",
		  minus(n[LOST_WAIT], l->waits_no_stack) },
		{ PROFILE_LOST_OTHER, "stacks lost, ring buffer full", n[LOST_STACK] },
		{ PROFILE_LOST_OTHER, "stack copies lost, ring buffer full", n[LOST_RAW] },
		{ PROFILE_LOST_OTHER, "process events lost, ring buffer full", n[LOST_PROCESS] },
		{ PROFILE_LOST_OTHER, "stacks lost, probes interrupted each other", n[LOST_NESTED] },
		{ PROFILE_LOST_OTHER, "processes not followed, too many", n[LOST_PROCS_FULL] },
		{ PROFILE_LOST_OTHER, "launch arguments unreadable", n[LOST_ARGS] },
		{ PROFILE_LOST_OTHER, "Python functions told of late, ring buffer full", n[LOST_CODE] },
		{ PROFILE_LOST_OTHER,
		  "stacks that may lack Python frames, over 1,024 thread states or 4 of a thread",
		  n[LOST_STATES] },
		{ PROFILE_LOST_OTHER, "mapping events lost", in->mappings_lost },
		{ PROFILE_INFO, "CPUs that came up, without samples for up to a second", in->cpus_came },
		{ PROFILE_LOST_OTHER, "processes with too many mappings: some are left out",
		  processes__limited(in->processes, LIMIT_OWN_MAPPINGS) },
		{ PROFILE_LOST_OTHER, "files not opened, too few descriptors (ulimit -n)",
		  files__too_many(in->files) },
		{ PROFILE_INFO, "processes beyond the limit, all their stacks unwound from copies",
		  processes__limited(in->processes, LIMIT_PROCESSES) +
		  processes__limited(in->processes, LIMIT_MAPPINGS) },
		{ PROFILE_LOST_OTHER, "records unreadable", c.unreadable_records },
		{ PROFILE_LOST_OTHER, "records lost, out of memory", c.no_memory },
		{ PROFILE_INFO, "stacks unwound from a copy", c.raw },
	};

	return add_counts(p, counts, sizeof(counts) / sizeof(counts[0]));
}

static int add_cause(struct profile *p, enum launch_cause cause, uint64_t n)
{
	const char *text = channel__cause_text(cause);
	char line[128];

	if (launches__by_mean(cause)) {
		/* How many of them got an estimate stands beside the launches. */
		snprintf(line, sizeof(line), "launches not timed themselves, %s", text);
		return profile__count(p, PROFILE_INFO_GPU, line, n);
	}
	/* Not executed now, or not at all: no launch that lacks a time. */
	if (cause == CAUSE_CAPTURED || cause == CAUSE_LAUNCH_FAILED)
		return profile__count(p, PROFILE_INFO_GPU, text, n);
	return profile__count(p, PROFILE_UNTIMED, text, n);
}

static int add_launches(const struct launches_counters *l, bool cpu, struct profile *p)
{
	int cause, err = 0;

	for (cause = CAUSE_NONE + 1; cause < NR_LAUNCH_CAUSES && !err; cause++)
		if (l->by_cause[cause])
			err = add_cause(p, (enum launch_cause)cause, l->by_cause[cause]);
	if (err)
		return err;
	const struct count counts[] = {
		{ PROFILE_UNTIMED, "seen at the driver, without the timing library",
		  l->without_library },
		{ PROFILE_LOST_OTHER, "launch times lost, channel full", l->lost_results },
		{ PROFILE_LOST_OTHER, "kernel names lost", l->lost_names },
		{ PROFILE_LOST_OTHER, "channels unusable", l->bad_channels },
		{ PROFILE_LOST_OTHER, "processes not watched to their end", l->gave_up },
		{ PROFILE_INFO_GPU, "launches whose stack was lost, shown under [no stack]",
		  l->no_stack },
		{ PROFILE_LOST_OTHER, "graphs whose kernels are not known, too many", l->lost_graphs },
		{ PROFILE_INFO_GPU, "graph launches, each timed as a whole", l->graphs },
		{ PROFILE_LOST_OTHER, "waits whose end was not told", l->waits_no_end },
		{ PROFILE_INFO_GPU, "waits whose stack was lost, shown under [no stack]",
		  l->waits_no_stack },
		{ PROFILE_INFO_GPU, "waits under way at the end, shown up to there", l->waiting },
		{ PROFILE_INFO_GPU, "graph launches of which it is not known what they run",
		  l->graphs_whole },
		{ PROFILE_INFO_GPU, "launches timed in runs of several, their time split by an estimate",
		  l->in_runs },
	};

	if (l->without_library && !cpu)
		err = profile__note(p, "launches seen at the driver: those into a stream capture are "
				    "counted, too; they can't be told apart there");
	return err ? err : add_counts(p, counts, sizeof(counts) / sizeof(counts[0]));
}

/* Beside those of launches, which are what is lost or lacks a time where no more is said. */
static int add_copies(const struct launches_counters *l, struct profile *p)
{
	int cause, err = 0;
	char line[128];

	for (cause = CAUSE_NONE + 1; cause < NR_LAUNCH_CAUSES && !err; cause++) {
		const char *text = channel__cause_text((enum launch_cause)cause);

		if (!l->copies_by_cause[cause])
			continue;
		if (cause == CAUSE_LAUNCH_FAILED)
			snprintf(line, sizeof(line), "copies that failed");
		else if (cause == CAUSE_CAPTURED)
			snprintf(line, sizeof(line), "copies %s", text);
		else
			snprintf(line, sizeof(line), "copies not timed%s, %s",
				 launches__by_mean((enum launch_cause)cause) ? " themselves" : "", text);
		err = profile__count(p, PROFILE_INFO_GPU, line, l->copies_by_cause[cause]);
	}
	if (!err && l->copies_no_stack)
		err = profile__count(p, PROFILE_INFO_GPU,
				     "copies whose stack was lost, shown under [no stack]",
				     l->copies_no_stack);
	return err;
}

static uint64_t own_memory(const struct probes *probes)
{
	uint64_t kib = 0;
	char line[256];
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f)) {
		unsigned long long n;

		if (sscanf(line, "RssAnon: %llu kB", &n) == 1)
			kib = n;
	}
	if (f)
		fclose(f);
	return kib * 1024 + probes__memory(probes);
}

static void add_cost(const struct facts_input *in, struct profile *p)
{
	struct profile_run *run = profile__run(p);

	run->own_cpu_ns = in->own_cpu_ns;
	run->own_rest_ns = clock__ns(CLOCK_PROCESS_CPUTIME_ID) - in->own_cpu_ns;
	run->own_bpf_ns = probes__run_time(in->probes);
	run->own_memory = own_memory(in->probes);
}

int facts__add(const struct facts_input *in, struct profile *p)
{
	struct launches_counters l = {};
	int err;

	if (in->launches)
		launches__counters(in->launches, &l);
	err = add_ring(in, p, &l);
	if (!err)
		err = add_launches(&l, in->cpu, p);
	if (!err)
		err = add_copies(&l, p);
	add_cost(in, p);
	return err;
}
