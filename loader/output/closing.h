/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The closing summary on stderr: what was seen, what is missing and why, and what it cost. */
#ifndef OUTPUT_CLOSING_H
#define OUTPUT_CLOSING_H

#include <stdio.h>

#include "loader/output/folded.h"
#include "loader/profile/profile.h"

struct closing_options {
	enum profile_metric metric;	/* what the output weighs */
	const char *written;		/* name of the file, or NULL: not a file */
	const struct folded_stats *stats;	/* of the folded output, or NULL: none written */
};

/* 0 or a negative errno. */
int closing__write(const struct profile *p, const struct closing_options *options, FILE *f);

#endif
