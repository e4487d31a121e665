/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For programs that measure the BPF side: everything that it asks for is in its maps before it runs. */
#ifndef TESTS_WARM_H
#define TESTS_WARM_H

#include <linux/types.h>

#include <bpf/libbpf.h>

#include "bpf/python_frames.h"
#include "loader/processes.h"
#include "unwind/rows.h"

struct warm {
	struct bpf_object *obj;		/* loaded, with the maps of the product */
	struct processes_maps maps;
	struct unwind_row *rows;
	struct unwind_rule *rules;
	struct python_layout *pythons;
	struct python_freed *freed;
	struct files *files;
	struct processes *processes;
	struct unwind_store *store;
};

/* 0 or negative errno; to be freed in either case. */
int warm__init(struct warm *w, struct bpf_object *obj);
void warm__free(struct warm *w);

/* The process's mappings, and rows for all of their code. NULL: see errno. */
struct process *warm__process(struct warm *w, pid_t tgid);

int warm__compare(const void *a, const void *b);	/* of doubles, for qsort */
/* Sorts them. */
double warm__median(double *values, size_t nr);
/* Of a report: what, measured, first budget, goal. */
void warm__row(const char *what, double value, const char *first, const char *goal);

#endif
