/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Strings kept once: equal ones have the same address, which stays until strings__free. */
#ifndef PROFILE_STRINGS_H
#define PROFILE_STRINGS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/index.h"

struct strings {
	struct index index;
	const char **list;	/* by id */
	size_t nr;
	size_t size;
	struct strings_block *blocks;
	uint64_t seed;		/* so that nobody can choose names that collide */
};

/* NULL gives NULL. 0 or -ENOMEM. */
int strings__intern(struct strings *s, const char *text, const char **out);
void strings__free(struct strings *s);

#endif
