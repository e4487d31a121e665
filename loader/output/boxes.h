/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The profile's tree by the texts of its frames: what reads the same under the same parent is one
 * box. One metric, all labels added up (threads kept apart on request).
 */
#ifndef OUTPUT_BOXES_H
#define OUTPUT_BOXES_H

#include <stddef.h>
#include <stdint.h>

#include "loader/output/folded.h"
#include "loader/profile/profile.h"

struct box {
	uint32_t parent;	/* always less than its own index; box 0 is above all */
	uint32_t text;		/* index into texts */
	uint64_t weight;	/* of the stacks that end here; without those of its children */
};

struct boxes {
	struct box *list;	/* only such that have weight, or are above one that has */
	size_t nr;
	const char **texts;	/* without ';'; text 0 is that of box 0 alone */
	size_t nr_texts;
	struct boxes_owned *owned;
};

/* 0 or -ENOMEM; then nothing is to be freed. */
int boxes__new(const struct profile *p, const struct folded_options *options, struct boxes *b);
void boxes__free(struct boxes *b);

#endif
