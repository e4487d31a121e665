/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A set of distinct unwind rules in an array of the caller's; rule 0 is "no unwind information". */
#ifndef UNWIND_RULES_H
#define UNWIND_RULES_H

#include <stdint.h>
#include <linux/types.h>
#include "bpf/unwind_step.h"

struct rule_set;

/* `array` (of `max` >= 2 rules) stays the caller's. 0 or -ENOMEM. */
int rule_set__new(struct rule_set **set, struct unwind_rule *array, uint32_t max);
void rule_set__free(struct rule_set *set);	/* NULL is fine */

/* Index of the rule in the array, added if new; -ENOSPC if it is full, or -ENOMEM. */
int rule_set__intern(struct rule_set *set, const struct unwind_rule *rule);

void rule_set__clear(struct rule_set *set);	/* but rule 0 */
uint32_t rule_set__count(const struct rule_set *set);

#endif
