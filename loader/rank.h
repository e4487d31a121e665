/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which one of several processes that work on one task a process is: what its launcher (torchrun,
 * mpirun, srun, …) has put into the environment that it was started with. What a program sets later itself,
 * os.environ included, isn't there.
 */
#ifndef LOADER_RANK_H
#define LOADER_RANK_H

#include <stdint.h>
#include <sys/types.h>

#define RANK_NONE UINT32_MAX

/* RANK_NONE: it has none, or its environment can't be read, as that of one that has ended. */
uint32_t rank__of(pid_t tgid);

/* The pure part: of several variables the one that says most, of several of one name the first. */
struct rank_found {
	uint32_t rank;
	uint32_t place;		/* of its variable among those that are known, + 1; 0: none was found */
};

/* `variable` is "NAME=VALUE", or any other text. */
void rank__consider(struct rank_found *found, const char *variable);

#endif
