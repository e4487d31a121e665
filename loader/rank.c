// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/rank.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES (8u << 20)	/* the kernel allows some 6 MB of arguments and environment */
#define MAX_DIGITS 7

/*
 * RANK is set by whoever starts the workers of a training (torchrun, accelerate, DeepSpeed), maybe inside of
 * a job whose manager has numbers of its own. Where only the rank on the machine is known it is the rank.
 */
static const char *const names[] = {
	"RANK", "HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK",
	"JSM_NAMESPACE_RANK", "PALS_RANKID", "FLUX_TASK_RANK", "SLURM_PROCID", "LOCAL_RANK",
};

#define NR_NAMES (sizeof(names) / sizeof(names[0]))

/* A number and nothing else. */
static uint32_t number_of(const char *text)
{
	size_t len = strspn(text, "0123456789");

	return len && len <= MAX_DIGITS && !text[len] ? (uint32_t)strtoul(text, NULL, 10) : RANK_NONE;
}

void rank__consider(struct rank_found *found, const char *variable)
{
	size_t i, len = strcspn(variable, "=");
	uint32_t rank;

	for (i = 0; variable[len] && i < NR_NAMES && (!found->place || i + 1 < found->place); i++) {
		if (strlen(names[i]) != len || strncmp(names[i], variable, len))
			continue;
		rank = number_of(variable + len + 1);
		if (rank != RANK_NONE)
			*found = (struct rank_found){ rank, (uint32_t)i + 1 };
		return;
	}
}

uint32_t rank__of(pid_t tgid)
{
	struct rank_found found = { .rank = RANK_NONE };
	size_t room = 0, bytes = 0;
	char path[64], *line = NULL;
	ssize_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)tgid);
	f = fopen(path, "re");
	if (!f)
		return RANK_NONE;
	while (bytes < MAX_BYTES && (n = getdelim(&line, &room, '\0', f)) > 0) {
		bytes += (size_t)n;
		rank__consider(&found, line);
	}
	fclose(f);
	free(line);
	return found.rank;
}
