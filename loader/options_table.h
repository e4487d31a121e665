/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The options as argp describes them, and as options.c has getopt read them. */
#ifndef OPTIONS_TABLE_H
#define OPTIONS_TABLE_H

#include <argp.h>

/* Keys of those without a letter. */
enum {
	OPT_METRIC = 1000,
	OPT_CGROUP,
	OPT_INJECT,
	OPT_DRY_RUN,
	OPT_NO_INJECT,
	OPT_NO_CPU,
	OPT_NO_GPU,
	OPT_ANNOTATE,
	OPT_NATIVE_PYTHON,
	OPT_NO_INLINES,
	OPT_DEBUGINFOD,
	OPT_PER_THREAD,
	OPT_JSON,
	OPT_LAUNCHES,
	OPT_OVERHEAD,
	OPT_VERSION,
};

/* At most OPTIONS_MAX with its end, which has neither a name nor, as headings have, a text. */
#define OPTIONS_MAX 64
extern const struct argp_option options__table[];

#endif
