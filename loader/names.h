/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of kernels, each kept once and known by a number. */
#ifndef LOADER_NAMES_H
#define LOADER_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct names;

struct names *names__new(void);		/* NULL: out of memory */
void names__free(struct names *n);	/* NULL is fine */

/* Any bytes; from a 0 on they are cut. 0: out of memory. */
uint32_t names__add(struct names *n, const char *text, size_t len);
/* "" for a number that was never given out. */
const char *names__get(const struct names *n, uint32_t name);

#endif
