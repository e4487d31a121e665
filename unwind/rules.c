// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "unwind/rules.h"
#include "loader/base/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MIN_SLOTS 1024

_Static_assert(sizeof(struct unwind_rule) == 32, "hashed as four words, an element of a BPF array");

struct rule_set {
	struct unwind_rule *rules;
	uint32_t max;
	uint32_t nr;
	uint32_t *slots;	/* open addressing; index + 1, 0: free */
	uint32_t nr_slots;	/* a power of two */
	uint32_t last;		/* the rule asked for last: often the next one, too */
};

static uint64_t rule__hash(const struct unwind_rule *rule)
{
	uint64_t w[4];

	memcpy(w, rule, sizeof(w));
	return hash__mix(w[0] * 0x9e3779b97f4a7c15ull + w[1] * 0xc2b2ae3d27d4eb4full +
			 w[2] * 0x165667b19e3779f9ull + w[3] * 0x27d4eb2f165667c5ull);
}

static uint32_t *set__slot(const struct rule_set *set, const struct unwind_rule *rule)
{
	uint32_t i = (uint32_t)rule__hash(rule) & (set->nr_slots - 1);

	while (set->slots[i] && memcmp(&set->rules[set->slots[i] - 1], rule, sizeof(*rule)))
		i = (i + 1) & (set->nr_slots - 1);
	return &set->slots[i];
}

static int set__grow(struct rule_set *set)
{
	uint32_t *slots = calloc((size_t)set->nr_slots * 2, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(set->slots);
	set->slots = slots;
	set->nr_slots *= 2;
	for (uint32_t i = 0; i < set->nr; i++)
		*set__slot(set, &set->rules[i]) = i + 1;
	return 0;
}

int rule_set__intern(struct rule_set *set, const struct unwind_rule *rule)
{
	uint32_t *slot;
	int err;

	if (!memcmp(&set->rules[set->last], rule, sizeof(*rule)))
		return (int)set->last;
	if (set->nr * 2 >= set->nr_slots) {
		err = set__grow(set);
		if (err)
			return err;
	}
	slot = set__slot(set, rule);
	if (!*slot) {
		if (set->nr == set->max)
			return -ENOSPC;
		set->rules[set->nr] = *rule;
		*slot = ++set->nr;
	}
	set->last = *slot - 1;
	return (int)set->last;
}

void rule_set__clear(struct rule_set *set)
{
	memset(set->slots, 0, set->nr_slots * sizeof(*set->slots));
	memset(&set->rules[0], 0, sizeof(set->rules[0]));
	set->nr = 1;
	set->last = 0;
	*set__slot(set, &set->rules[0]) = 1;
}

uint32_t rule_set__count(const struct rule_set *set)
{
	return set->nr;
}

int rule_set__new(struct rule_set **out, struct unwind_rule *array, uint32_t max)
{
	struct rule_set *set = calloc(1, sizeof(*set));

	if (!set)
		return -ENOMEM;
	set->rules = array;
	set->max = max;
	set->nr_slots = MIN_SLOTS;
	set->slots = calloc(set->nr_slots, sizeof(*set->slots));
	if (!set->slots) {
		free(set);
		return -ENOMEM;
	}
	rule_set__clear(set);
	*out = set;
	return 0;
}

void rule_set__free(struct rule_set *set)
{
	if (!set)
		return;
	free(set->slots);
	free(set);
}
