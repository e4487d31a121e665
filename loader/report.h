/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From the tally to the model: numbers become names. */
#ifndef LOADER_REPORT_H
#define LOADER_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/files.h"
#include "loader/jit.h"
#include "loader/launches.h"
#include "loader/processes.h"
#include "loader/profile/profile.h"
#include "loader/python_names.h"
#include "loader/sites.h"
#include "loader/stacks.h"
#include "loader/tally.h"
#include "symbols/cache.h"

struct report_input {
	const struct tally *tally;
	const struct stacks *stacks;
	const struct processes *processes;
	const struct files *files;
	const struct launches *launches;	/* NULL: none recorded */
	struct jit *jit;		/* NULL: code made at run time stays without names */
	struct symbols *symbols;	/* knows all files */
	const struct python *python;	/* NULL: nothing is known of Python */
	const struct python_names *python_names;
	bool native_python;		/* the interpreter's own frames are kept */
	const struct sites *sites;	/* knows the timing library: its frames are cut; NULL: none */
	uint64_t period_ns;		/* a CPU sample's weight */
	/* Called now and then, since names may take seconds: true gives up. NULL is fine. */
	bool (*pulse)(void *ctx);
	void *ctx;
};

/*
 * Adds everything to the model, which knows the names of threads already. 0, -ENOMEM or, given up,
 * -ECANCELED.
 */
int report__build(const struct report_input *in, struct profile *p);

#endif
