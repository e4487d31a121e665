/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The short table for a terminal: what took the GPU's and the CPU's time, and what was copied. */
#ifndef OUTPUT_SUMMARY_H
#define OUTPUT_SUMMARY_H

#include <stdbool.h>
#include <stdio.h>

#include "loader/profile/profile.h"

struct summary_options {
	unsigned int rows;	/* of each table; 0: 10 */
	unsigned int columns;	/* width of the terminal; 0: 80 */
	bool bytes;		/* those that were copied or set are asked for */
	const char *again;	/* how to see all: "gpucollect -p 42 | speedscope -"; or NULL */
};

/* 0 or a negative errno. Shows what the run records; names can't control the terminal. */
int summary__write(const struct profile *p, const struct summary_options *options, FILE *f);

#endif
