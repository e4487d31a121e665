/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernels that were launched, each with its sums: those of one name that differ in size are several. */
#ifndef OUTPUT_KERNELS_H
#define OUTPUT_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/profile/profile.h"

#define KERNELS_SHOWN 100	/* in a list that is to stay short */

struct kernel {
	uint32_t frame;		/* its name, registers and static shared memory */
	uint64_t launches;
	uint64_t ns;		/* device time, where there is any */
};

struct kernels {
	struct kernel *list;	/* by time, then by launches, the most first; then in the order of frames */
	size_t nr;
};

/* 0 or -ENOMEM; then nothing is to be freed. */
int kernels__new(const struct profile *p, struct kernels *k);
void kernels__free(struct kernels *k);

#endif
