/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks as words (bpf/gpucollect.h), each kept once and known by a number. Stacks that came
 * through the ring are found by the hash that the BPF side gave them.
 */
#ifndef LOADER_STACKS_H
#define LOADER_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stacks;

#define STACKS_NONE 0u		/* no stack at all */

struct stacks *stacks__new(void);	/* NULL: out of memory */
void stacks__free(struct stacks *s);	/* NULL is fine */

/*
 * The number of these words; `owner` tells apart stacks whose words mean something in one
 * process only (0 where that is not so). STACKS_NONE: out of memory or nr == 0.
 */
uint32_t stacks__add(struct stacks *s, const uint64_t *words, uint32_t nr, uint64_t owner);

/* Remembers a hash of the BPF side for a stack. 0 or -ENOMEM. */
int stacks__alias(struct stacks *s, uint64_t hash, uint32_t stack);
/* STACKS_NONE if the hash isn't known: its stack was lost. */
uint32_t stacks__by_hash(const struct stacks *s, uint64_t hash);

/* Pure: whether some words mean something in the process alone, being addresses of memory. */
bool stacks__are_own(const uint64_t *words, uint32_t nr);
/* Pure: the same of code in anonymous memory alone. */
bool stacks__have_generated(const uint64_t *words, uint32_t nr);
/* Pure: why they end: enum gpucollect_end; NR_END: they don't. */
uint32_t stacks__end(const uint64_t *words, uint32_t nr);

/* Words of a stack, leaf first; valid until the next stacks__add. */
const uint64_t *stacks__words(const struct stacks *s, uint32_t stack, uint32_t *nr);
uint32_t stacks__count(const struct stacks *s);

#endif
