/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Folded stacks: "comm (pid N);outermost;…;innermost weight", as flamegraph.pl, inferno and
 * speedscope read them. Aggregated and sorted by the bytes of the stack; docs/output.md has the
 * rules.
 */
#ifndef OUTPUT_FOLDED_H
#define OUTPUT_FOLDED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "loader/profile/profile.h"

struct folded_options {
	enum profile_metric metric;
	bool annotate;		/* _[k] kernel, _[i] inlined, _[j] generated code, _[G] GPU */
	bool per_thread;	/* a frame "tid N name" under each process */
};

struct folded_stats {
	uint64_t lines;		/* distinct stacks */
	uint64_t bytes;
	uint64_t total;		/* sum of the weights */
};

/* 0 or a negative errno, -ENOSPC and -EPIPE included. *stats (may be NULL) only on success. */
int folded__write(const struct profile *p, const struct folded_options *options, FILE *f,
		  struct folded_stats *stats);

#endif
