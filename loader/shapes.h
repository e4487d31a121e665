/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long launches of a kernel take on average, by their shape, where they were timed one by one: what the
 * time of a graph is split by. All is the targets' and may be made up: what is kept is bounded.
 */
#ifndef LOADER_SHAPES_H
#define LOADER_SHAPES_H

#include <stdbool.h>
#include <stdint.h>

/* Grid, block and dynamic shared memory of a launch. */
struct shape {
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t shared_bytes;
};

struct shapes;

struct shapes *shapes__new(void);	/* NULL: out of memory */
void shapes__free(struct shapes *s);	/* NULL is fine */

/* A launch in that process (index, processes.h) took ns, and stands for `weight` of them. 0 or -ENOMEM. */
int shapes__add(struct shapes *s, uint32_t process, uint32_t work, const struct shape *shape, uint64_t ns,
		uint32_t weight);
/* False: none was timed. */
bool shapes__mean(const struct shapes *s, uint32_t process, uint32_t work, const struct shape *shape,
		  double *ns);

#endif
