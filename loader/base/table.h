/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A hash table from u64 to u64: open addressing, grows by itself. Any key and value is allowed; keys are
 * spread by a secret of the table's own, so that who chooses them can't make them collide.
 */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table;

struct table *table__new(void);		/* NULL: out of memory */
void table__free(struct table *t);	/* NULL is fine */

/* 0 or -ENOMEM; an existing key gets the new value. */
int table__set(struct table *t, uint64_t key, uint64_t value);
bool table__get(const struct table *t, uint64_t key, uint64_t *value);
bool table__remove(struct table *t, uint64_t key);
size_t table__count(const struct table *t);

/* Start with *pos = 0; false when there are no more. The table must not change meanwhile. */
bool table__next(const struct table *t, size_t *pos, uint64_t *key, uint64_t *value);

/* A 64-bit mixer whose every output bit depends on every input bit. */
uint64_t hash__mix(uint64_t x);
/* A random number, for hashes of what others choose. */
uint64_t hash__seed(void);
/* Of any bytes; the same on every machine for the same seed. */
uint64_t hash__bytes(const void *data, size_t len, uint64_t seed);

#endif
