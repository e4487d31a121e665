/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Gives out ranges of indexes of a fixed array that BPF programs read without locks. A range
 * given back is used again only after a while: a program that was reading it has ended by then.
 */
#ifndef LOADER_RANGES_H
#define LOADER_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#define RANGES_QUARANTINE_NS 100000000ull

struct ranges;

struct ranges *ranges__new(uint32_t size);	/* NULL: out of memory */
void ranges__free(struct ranges *r);

/* `nr` indexes in a row from *first on; false: no room. `now`: CLOCK_MONOTONIC, ns. */
bool ranges__get(struct ranges *r, uint32_t nr, uint64_t now, uint32_t *first);
/* Gives back what ranges__get gave, with the same `nr`. Out of memory: it is never used again. */
void ranges__put(struct ranges *r, uint32_t first, uint32_t nr, uint64_t now);

#endif
