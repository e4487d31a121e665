/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From the records of the BPF ring to the tally: stacks that come unwound, stacks that come as raw
 * copies, samples, launches, and the life of processes.
 */
#ifndef LOADER_COLLECT_H
#define LOADER_COLLECT_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/files.h"
#include "loader/jit.h"
#include "loader/launches.h"
#include "loader/probes.h"
#include "loader/processes.h"
#include "loader/python_frees.h"
#include "loader/python_names.h"
#include "loader/recent.h"
#include "loader/stacks.h"
#include "loader/tally.h"
#include "loader/thread_names.h"

struct collect;

/* A process got mappings that were not known before, or new ones. */
typedef void (*collect_mapped)(void *ctx, struct process *p);

struct collect_config {
	struct probes *probes;		/* its reader is set here */
	struct files *files;
	struct processes *processes;
	struct stacks *stacks;
	struct tally *tally;
	struct launches *launches;	/* NULL: none are recorded */
	struct jit *jit;		/* NULL: code made at run time stays without names */
	const struct python *python;
	struct python_names *names;	/* of Python's functions */
	struct python_frees *frees;	/* NULL: none are counted */
	struct thread_names *threads;
	bool all;
	collect_mapped mapped;
	void (*catch_up)(void *ctx);	/* has `recent` filled with all that the kernel told */
	const struct recent *recent;
	void *ctx;
};

struct collect_counters {
	uint64_t samples;		/* in the tally */
	uint64_t launches;		/* that records stand for, those without the library too */
	uint64_t raw;			/* stacks unwound here */
	uint64_t no_stack;		/* records whose stack was lost */
	uint64_t unreadable_records;	/* of a size or type that can't be */
	uint64_t no_memory;
};

/* 0 or negative errno. */
int collect__new(const struct collect_config *config, struct collect **out);
void collect__free(struct collect *c);	/* NULL is fine */

/* Samples taken before this time (CLOCK_MONOTONIC, ns) don't count; till it is called none does. */
void collect__begin(struct collect *c, uint64_t from);

/*
 * Reads what the ring holds, but not for ever where it fills as fast: some thousand records. Their
 * number, or a negative errno.
 */
int collect__read(struct collect *c);
/*
 * A new executable mapping in some process: its mappings are read again if they have been needed
 * before, or with `now`. To be told before the records of the same time are read.
 */
void collect__mapped(struct collect *c, const struct sampling_event *event, bool now);
/* After a batch of collect__mapped. */
void collect__refresh(struct collect *c);

void collect__counters(const struct collect *c, struct collect_counters *out);

#endif
