/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Launches: their stacks come through the BPF ring, their times and names through the channel of
 * the process; here they meet by launch id and are added to the tally.
 */
#ifndef LOADER_LAUNCHES_H
#define LOADER_LAUNCHES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "bpf/gpucollect.h"
#include "gpu_timing/channel.h"
#include "loader/processes.h"
#include "loader/tally.h"

struct launches;
struct graphs;
struct shapes;
struct runs;

/* The library in a process says that it can't time there (enum channel_reason, detail). */
typedef void (*launches_refused)(void *ctx, struct process *p, enum channel_reason reason,
				 uint32_t detail);

/* It times from now on. */
typedef void (*launches_armed)(void *ctx, struct process *p);
/* Its library can't be reached, for that errno: launches that it tells of are left out from now on. */
typedef void (*launches_unreached)(void *ctx, struct process *p, int err);
/* Another gpucollect is at work in it, whose pid is this. */
typedef void (*launches_taken)(void *ctx, struct process *p, pid_t holder);

struct calibrations;

struct launches_config {
	struct tally *tally;
	const struct calibrations *calibrations;	/* must outlive it; NULL: none */
	enum channel_site site;		/* to be used by every library */
	uint32_t every, budget_ppm;	/* which launches are looked at: channel__set_sampling */
	/* One of them for each process that says hello, once. */
	launches_refused refused;
	launches_armed armed;
	launches_unreached unreached;
	launches_taken taken;
	void *ctx;
};

/* What does not stand in the tally, or stands there without a time. */
struct launches_counters {
	uint64_t by_cause[NR_LAUNCH_CAUSES];	/* results; [CAUSE_NONE]: with a time */
	uint64_t copies_by_cause[NR_LAUNCH_CAUSES];	/* those of copies, which by_cause has not */
	uint64_t without_library;	/* launches seen by a probe on the driver */
	uint64_t no_end;		/* launches and copies that never got a result */
	uint64_t no_stack;		/* results whose launch record was lost */
	uint64_t copies_no_stack;	/* the same of copies */
	uint64_t waits_no_stack;	/* the same of waits */
	uint64_t waits_no_end;		/* waits whose end was not told, and which were not under way */
	uint64_t waiting;		/* waits under way at the end */
	uint64_t lost_results;		/* channel full: these launches have no time */
	uint64_t lost_names;
	uint64_t lost_graphs;		/* graphs of which it isn't known what they run, for want of room */
	uint64_t graphs;		/* graph launches timed as a whole */
	uint64_t graphs_whole;		/* those of them of which it isn't known what they run */
	uint64_t in_runs;		/* launches that have a time together with others */
	uint64_t libraries;		/* processes that had the library */
	uint64_t bad_channels;		/* channels that held nonsense */
	uint64_t gave_up;		/* libraries that took us for dead */
};

struct launches *launches__new(const struct launches_config *config);
void launches__free(struct launches *l);	/* NULL is fine */

/*
 * Only launches made from `from` on and before `to` are of the capture, CLOCK_MONOTONIC ns; of others
 * neither the record nor the result counts. At first all are.
 */
void launches__only(struct launches *l, uint64_t from, uint64_t to);

/* A record of the ring, its stack as a number (STACKS_NONE: lost). 0 or -ENOMEM. */
int launches__record(struct launches *l, struct process *p, const struct rec_launch *rec,
		     uint32_t stack);
/* The library in a process says hello. */
void launches__hello(struct launches *l, struct process *p, int fd);

/* Reads all channels and shows them a sign of life: every 50 ms or so. */
void launches__poll(struct launches *l);
/* The sign of life alone. */
void launches__heartbeat(struct launches *l);
/*
 * The process is over, since `time` (CLOCK_MONOTONIC, ns): what its channel still holds is read, the rest has
 * no end.
 */
void launches__exited(struct launches *l, struct process *p, uint64_t time);
/* Tells all libraries to stop; they answer within half a second, if their process runs at all. */
void launches__stop(struct launches *l);
/* True once all have answered: no launch will fire a probe any more. */
bool launches__stopped(const struct launches *l);
/* All records are read: what has lost its other half by now has lost it for good. */
void launches__finish(struct launches *l);

void launches__counters(const struct launches *l, struct launches_counters *c);

/*
 * Of a launch that has no time: it ran, and the cause says nothing about how long, so that the mean of
 * its kernel may stand for it.
 */
bool launches__by_mean(enum launch_cause cause);

/* Those that have a time together, by the tally's entries. */
const struct runs *launches__runs(const struct launches *l);

/* Names of the tally's `work`: mangled, as the driver has them. "" for 0 and for nameless ones. */
const char *launches__name(const struct launches *l, uint32_t work);
/* The same of a copy: "memcpy HtoD". */
const char *launches__copy_name(uint32_t work);
/* What graphs run, by `work` of their entries, and how long kernels take. As long as the launches live. */
const struct graphs *launches__graphs(const struct launches *l);
const struct shapes *launches__shapes(const struct launches *l);
/* What the records stand for; as long as the launches live. */
struct strata *launches__strata(const struct launches *l);

#endif
