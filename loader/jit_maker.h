/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A process that makes code at run time: the files in which it tells of it, and what they have told. */
#ifndef LOADER_JIT_MAKER_H
#define LOADER_JIT_MAKER_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/files.h"
#include "loader/processes.h"
#include "symbols/jit_map.h"

struct jit_maker;

/* `files` and `budget` outlive it. NULL: out of memory. */
struct jit_maker *jit_maker__new(struct files *files, struct jit_budget *budget, pid_t tgid);
void jit_maker__free(struct jit_maker *m);	/* NULL is fine */

/* A jitdump file that it maps. */
void jit_maker__add_dump(struct jit_maker *m, uint32_t file);
/* Code in a file that is nothing but memory: stacks have its offset there, names have addresses. Looks. */
void jit_maker__add_area(struct jit_maker *m, const struct mapping *mapping);

/* While it lives: finds its files, and reads on in them, once a second at most. */
void jit_maker__look(struct jit_maker *m);
/* It exits. What is too much for now is read when the capture is over. */
void jit_maker__exited(struct jit_maker *m);
/* All that there is by now. */
void jit_maker__read(struct jit_maker *m);

/* Where in the process the code of a word was; false: not known. A later mapping may be in its place. */
bool jit_maker__address(const struct jit_maker *m, uint64_t word, uint64_t *address);
/* The function there at that time; NULL: not told. */
const char *jit_maker__name(struct jit_maker *m, uint64_t address, uint64_t time);

#endif
