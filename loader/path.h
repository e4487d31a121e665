/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From the words of stacks to frames of the model: one path at a time, outermost frame first. */
#ifndef LOADER_PATH_H
#define LOADER_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/files.h"
#include "loader/jit.h"
#include "loader/processes.h"
#include "loader/profile/profile.h"
#include "loader/python_names.h"
#include "loader/sites.h"
#include "loader/stacks.h"
#include "symbols/cache.h"

struct path_input {
	struct profile *profile;
	const struct stacks *stacks;
	const struct files *files;
	struct jit *jit;		/* NULL: code made at run time stays without names */
	struct symbols *symbols;	/* knows all files */
	const struct sites *sites;	/* knows the timing library: its frames are cut; NULL: none */
	const struct python *python;
	const struct python_names *python_names;
	bool native_python;		/* the interpreter's own frames are kept */
};

struct path;

/* 0 or -ENOMEM. All parts stay the caller's and must live longer. */
int path__new(const struct path_input *in, struct path **out);
void path__free(struct path *path);	/* NULL is fine */

/* Begins another one. */
void path__clear(struct path *path);
/* Frames in the order of the path; valid until the next call. */
const uint32_t *path__frames(const struct path *path, size_t *nr);

/* These append. 0 or -ENOMEM. */
int path__add_frame(struct path *path, const struct profile_frame *frame);
int path__add_mark(struct path *path, enum profile_mark mark, const char *module);
/* The frames of a stack of `p`; `launch`: those of the timing library are cut. */
int path__add_stack(struct path *path, const struct process *p, uint32_t stack, bool launch);

/*
 * Whether there are Python frames in a stack of `p`, and, unless `anyhow`, nothing before them but what
 * Python begins a thread with.
 */
bool path__is_python(const struct path *path, const struct process *p, uint32_t stack,
		     bool anyhow);

#endif
