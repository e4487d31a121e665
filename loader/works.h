/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of GPU work (kernels), each kept once and known by a number. */
#ifndef LOADER_WORKS_H
#define LOADER_WORKS_H

#include <stddef.h>
#include <stdint.h>

struct works;

struct works *works__new(void);		/* NULL: out of memory */
void works__free(struct works *n);	/* NULL is fine */

/* The number of a kernel that has no name, which is not to be mixed up with any text. */
#define WORKS_NAMELESS UINT32_MAX

/* Any bytes; from a 0 on they are cut. 0: out of memory. */
uint32_t works__add(struct works *n, const char *text, size_t len);
/* "" for a number that was never given out. */
const char *works__get(const struct works *n, uint32_t name);

#endif
