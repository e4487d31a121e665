/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The closing summary on stderr: what was seen, what is missing and why, and what it cost. */
#ifndef OUTPUT_CLOSING_H
#define OUTPUT_CLOSING_H

#include <stdbool.h>
#include <stdio.h>

#include "loader/output/folded.h"
#include "loader/profile/profile.h"

enum closing_result {
	CLOSING_WRITTEN = 0,
	CLOSING_SAVED,		/* not where it was wanted */
	CLOSING_EMPTY,		/* nothing to write */
	CLOSING_FAILED,
};

struct closing_options {
	bool json;			/* one object on one line, as in docs/output.md; else text */
	enum closing_result result;
	enum profile_metric metric;	/* what the output weighs */
	const char *written;		/* name of the file, or NULL: not a file */
	const struct folded_stats *stats;	/* of the folded output, or NULL: none written */
};

/* 0 or a negative errno. */
int closing__write(const struct profile *p, const struct closing_options *options, FILE *f);

/*
 * For closing*.c: the one form; GPU time of the values that have exactly these of the flags in `mask`,
 * and their launches or copies.
 */
int closing__write_json(const struct profile *p, const struct closing_options *options, FILE *f);
struct closing_part {
	uint64_t ns, launches;
	double variance;	/* of ns */
};
/* The same of waits: how many, and the host's time. */
struct closing_part closing__wait_part(const struct profile *p, unsigned int flags, unsigned int mask);
struct closing_part closing__gpu_part(const struct profile *p, unsigned int flags, unsigned int mask);

#endif
