/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What each process has launched on each device. */
#ifndef OUTPUT_SHARES_H
#define OUTPUT_SHARES_H

#include <stddef.h>
#include <stdint.h>

#include "loader/profile/profile.h"

struct share {
	uint32_t process;	/* its frame */
	uint32_t pid;
	uint32_t rank, device;	/* PROFILE_NO_LABEL: none, or not known */
	uint32_t streams;	/* distinct ones */
	uint64_t launches;
	uint64_t copies;
	uint64_t ns;		/* device time of both */
};

struct shares {
	struct share *list;	/* by rank, pid and device; what has no rank last */
	size_t nr;
};

/* 0 or -ENOMEM; then nothing is to be freed. */
int shares__new(const struct profile *p, struct shares *s);
void shares__free(struct shares *s);

#endif
