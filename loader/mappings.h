/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The executable mappings of a process, with the numbers of their files. */
#ifndef LOADER_MAPPINGS_H
#define LOADER_MAPPINGS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/gpucollect.h"
#include "loader/files.h"

struct recent;

struct mappings {
	struct mapping *list;	/* sorted by start; malloc'd */
	uint32_t nr;
	bool cut;		/* there are more than GPUCOLLECT_MAX_PROC_MAPPINGS */
};

/*
 * From /proc. `before` is what was read of the same image the last time, or empty. Memory without a file that
 * fills a hole in the code of a file is that code: programs copy it into huge pages.
 * 0 or negative errno as maps__read; then *out is empty.
 */
int mappings__read(struct files *files, pid_t tgid, const struct mappings *before,
		   struct mappings *out);
/* From what the kernel told of the program that ran at `time`. 0 or negative errno as recent__each. */
int mappings__recall(struct files *files, pid_t tgid, const struct recent *recent, uint64_t time,
		     struct mappings *out);

#endif
