/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs: launches of one thread, one after the other in one stream, with one bracket around them all. An
 * event in front of a programmatic dependent launch ends its overlap with the launch before, and one
 * that comes can't be foreseen: so behind a kernel that had one behind it before, and behind every dependent
 * launch, the bracket is left open. A dependent launch joins it; whatever else shows that the chain is
 * over, by the same thread, has the end recorded in front of it. Each of these takes the run out of
 * its stream first, by one exchange, so that one thread has it at a time, as it has a bracket of its own.
 *
 * Runs are only made where every launch is looked at, so that the stream's count of these tells whether
 * others put something in between two launches of a run, and crowd.h whether they did while one was under
 * way. What is still open when that ends is lost.
 *
 * Nothing tells when the last launch of an open run was over. A run counts only if the stream can't
 * have been idle inside of it: run__judge.
 *
 * A few launches that may overlap have a bracket of their own nonetheless, with runs and where there are
 * none: they tell what the kernels take one by one.
 */
#ifndef LIBRARY_RUN_H
#define LIBRARY_RUN_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu_timing/channel.h"
#include "gpu_timing/cuda_types.h"

/* At the next one the overlap of two launches is given up for an end and a new begin. */
#define RUN_MOST 256
#define MAX_RUNS 1024		/* open ones, and those whose end is still to come */
#define RUN_KERNELS 1024

struct bracket;
struct call;
struct stream;
struct thread;

struct run {
	const struct thread *owner;
	struct stream *of;
	CUstream stream;	/* as given to the driver's calls */
	uint32_t seq;		/* of the stream, by its last launch */
	uint32_t nr;		/* launches */
	bool counted;		/* among the closers of its stream */
	bool sure;		/* its begin was still to come when its end had been recorded */
	/* CLOCK_MONOTONIC ns */
	uint64_t behind;	/* the begin was still to come; of an idle stream: the first was launched */
	uint64_t last;		/* the last had been launched */
	uint64_t closed;	/* the end had been recorded */
	struct channel_member launches[RUN_MOST];
};

struct run_table {
	uint64_t used[MAX_RUNS / 64];	/* bit set */
	/* Of kernels, by hash. */
	uint8_t heads[RUN_KERNELS];	/* bool: it had a dependent launch behind it */
	uint8_t first[RUN_KERNELS];	/* launches that were bracketed by themselves as it was new */
	struct run runs[MAX_RUNS];
};

/* What stands last in a stream, as far as that matters for an event behind it. */
enum stream_place {
	PLACE_OTHER = 0,	/* no kernel: an event parts nothing. Or not known */
	PLACE_KERNEL = 1,
	PLACE_END = 2,		/* our own event */
};

/*
 * A launch that is looked at begins in its stream. Takes the run that is open there: the launch joins it, or
 * it is to be closed (t->closing) or void. Else, whether a bracket is to be taken, and whether that stays
 * open: a cause, or CAUSE_NONE.
 */
enum launch_cause run__meet(struct call *call);
/* A session begins, nobody is inside: it learns of the kernels anew. */
void run__begin(void);
/* For a bracket that is to stay open. False: there is no room. */
bool run__new(struct bracket *b);
void run__free(struct bracket *b);
/* Records the end of t->closing. */
void run__end(struct thread *t);
/*
 * The legacy stream and most others of its context wait for each other: what is put into one ends a run that
 * is open in the other. In front of a launch or other work of t in s; t NULL: behind it, so that it is void.
 */
void run__part(struct stream *s, struct thread *t);
/* Instead of an end: the call's launch was made, and its bracket stays open. */
void run__stay(struct call *call);
/* Then, the bracket filled in if it is the first: the launch is added, the run goes back. */
void run__keep(struct call *call, uint32_t name);
/* The launch that was to join it failed. */
void run__return(struct call *call);
/* What t holds of runs is given up. */
void run__lose(struct thread *t, bool forget);

/*
 * Ends an open run of a stream, as given to the driver, in front of a call of the program's by which the
 * chain is over. From a signal handler inside of a launch nothing is recorded: its bracket is under way.
 */
void run__close(CUstream handle, bool per_thread);
/*
 * After a wait that the driver has taken: the stream may have been unknown before, as nothing may be asked
 * about one that may not be. What should have been ended in front of it is void.
 */
void run__parted(CUstream handle, bool per_thread);
/* Behind work that was put into a stream by a call that is never bracketed: what it may be in is void. */
void run__disturb(CUstream handle);
/* All of the calling thread in that context; NULL: in its current one. */
void run__close_own(CUcontext ctx);
/*
 * Before the stream, or its context, goes, with no run open in it: until nobody is inside of the driver to
 * end one there, which is as long as a record takes.
 */
void run__await(const struct stream *s);
/* It was not ended and never will be: its launches get that cause. What is left open for long, likewise. */
void run__void(struct stream *s, enum launch_cause cause);
void run__void_old(struct stream *s);
void run__void_all(enum launch_cause cause);
/* Not every launch is looked at any more: nobody would know of what comes into those that are open. */
void run__lose_all(void);

/*
 * Of a bracket that has ended, ns after its begin: false if it is a run's and the stream may have been empty
 * inside of it. What comes into the stream next is treated accordingly.
 */
bool run__judge(struct stream *s, const struct bracket *b, uint64_t ns);
/* How many launches a bracket holds; *more: all but the first. */
uint32_t run__launches(const struct bracket *b, const struct channel_member **more);
/* A launch from inside of another hook, to a place (crowd.h): no stream counts it. Voids what may hold it. */
void run__nested(uint64_t place);
/* Is any run open? Then lib.memory->crowd.runs is not 0. */
bool run__any(void);

#endif
