/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is recorded, summed by what it was recorded under, before names are looked up: stacks,
 * processes and kernels are numbers here.
 */
#ifndef LOADER_TALLY_H
#define LOADER_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally;

enum tally_kind {
	TALLY_SAMPLE = 0,	/* CPU samples */
	TALLY_LAUNCH = 1,	/* launches of a kernel or a graph */
	TALLY_COPY = 2,		/* copies and sets of memory */
	TALLY_WAIT = 3,		/* of the host for a device; `ns` is its time */
};

enum tally_flags {
	TALLY_UNCALIBRATED = 1,	/* its time is a raw bracket */
	TALLY_GRAPH = 2,
};

struct tally_key {
	uint32_t kind;		/* enum tally_kind */
	uint32_t process;	/* index, see processes.h */
	uint32_t tid;
	uint32_t user;		/* stacks.h */
	uint32_t kernel;	/* stacks.h; STACKS_NONE: the sample hit user code, or a launch */
	/* Launches: number of the kernel's name (works.h) or of the graph (graphs.h), 0: unknown. Copies:
	 * enum copy_kind. */
	uint32_t work;
	uint32_t flags;		/* enum tally_flags */
	int32_t device;		/* ordinal in the process; -1: unknown */
	uint64_t stream;
	uint32_t stratum;	/* strata.h; 0: each record stands for itself alone */
	uint32_t sizes;		/* of a kernel, works__sizes(); 0: not known, or none */
};

/* All but `records` and the `seen` ones are sums of what the records stand for. Sums stop at UINT64_MAX. */
struct tally_value {
	struct tally_key key;
	uint64_t records;
	uint64_t count;		/* samples, launches, copies or waits */
	uint64_t bytes;		/* of copies */
	uint64_t timed;		/* launches (here and below: or copies) that have a time */
	uint64_t ns;		/* their device time; of waits the host's */
	uint64_t seen_timed, seen_ns;	/* of the records themselves */
	/* Of those with a time: how different they are, and how uneven what they stand for. */
	double squares, others_squares;	/* sums of w x ns^2, w x others x ns^2 */
	/* of w^2, w^2 x others, w^2 x others^2 */
	double weights2, weights2_others, weights2_others2;
	uint64_t untimed;	/* that ran without a time: their kernel's mean may stand for it */
	uint64_t left_out;	/* those of them that chance left out */
	uint64_t chanced, others, others_ns;	/* see estimate.h */
	/*
	 * Variances of `count` and `ns`, unbiased: from the differences of the two records of each block in
	 * what they add to this entry.
	 */
	double count_variance, ns_variance;
};

/* What one record adds: of the launch itself, which stands for `weight` of them. */
struct tally_add {
	uint32_t weight;	/* 0 is 1 */
	uint32_t block;		/* of its stratum: two records have the same */
	uint64_t count;
	uint64_t bytes;
	uint64_t timed;
	uint64_t ns;
	uint64_t untimed;
	uint64_t left_out;
	uint64_t others;	/* that a timed one stands for: 1 / its chance, less 1 */
};

struct tally *tally__new(void);		/* NULL: out of memory */
void tally__free(struct tally *t);	/* NULL is fine */
/* 0 or -ENOMEM. */
int tally__add(struct tally *t, const struct tally_key *key, const struct tally_add *add);
/* No more is to come: records whose blocks have no second one stand alone. */
void tally__settle(struct tally *t);
/* Where the values of this key stand or, all 0 as yet, are to stand: for tally__at. 0 or -ENOMEM. */
int tally__index(struct tally *t, const struct tally_key *key, uint32_t *i);
size_t tally__count(const struct tally *t);
const struct tally_value *tally__at(const struct tally *t, size_t i);
/*
 * What the sum of the times of a stratum's entries has more variance than these have together, 0 or less: its
 * launches are known, so where one entry is taken for more than it has, another is for less. Strata from
 * tally__nr_strata on have none.
 */
double tally__covariance(const struct tally *t, uint32_t stratum);
size_t tally__nr_strata(const struct tally *t);

#endif
