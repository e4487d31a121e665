/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of code that processes make at run time. A process that was met in such code is looked at
 * while it lives: its perf map (perf-PID.map in /tmp or its TMPDIR, by the number that it sees of
 * itself, in its own root) and its jitdump files (which it maps as a marker) are opened, read on from time
 * to time, and read to the end when it exits. Only files of the process's user or of root count.
 */
#ifndef LOADER_JIT_H
#define LOADER_JIT_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/files.h"
#include "loader/processes.h"

struct jit;

struct jit *jit__new(struct files *files);	/* NULL: out of memory */
void jit__free(struct jit *j);			/* NULL is fine */

/* A stack with code in anonymous memory was met in `p`, at `time` (CLOCK_MONOTONIC, ns). */
void jit__met(struct jit *j, const struct process *p, uint32_t stack, uint64_t time);
/* New mappings of `p`: is a jitdump file among them, or code in a memory file? */
void jit__mapped(struct jit *j, const struct process *p);
/* Code made before the fork is told in the parent's files. */
void jit__forked(struct jit *j, const struct process *parent, const struct process *child);
/* `p` has exited, or executes another program; before it is forgotten. */
void jit__exited(struct jit *j, const struct process *p);

/* Reads what there is by now of all that live. */
void jit__read(struct jit *j);
/*
 * The function that a word (bpf/gpucollect.h) of a stack of `p` stands for, in anonymous memory or a
 * memory file; NULL: not told. After jit__read.
 */
const char *jit__name(struct jit *j, const struct process *p, uint32_t stack, uint64_t word);
/* Whether more was told than is kept. */
bool jit__overflowed(const struct jit *j);

#endif
