/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The memory of a process: what lies where, and what is in it. */
#ifndef TRACER_SPACE_H
#define TRACER_SPACE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/gpucollect.h"
#include "loader/files.h"

struct space_area {
	uint64_t start, end;
	bool main_stack;	/* the first thread's, which the kernel lets grow */
};

struct space {
	pid_t pid;
	struct files *files;
	struct mapping *code;	/* executable mappings, by start */
	size_t nr_code, room_code;
	struct space_area *areas;	/* all mappings, by start */
	size_t nr_areas, room_areas;
	uint32_t program;	/* file of the program itself; 0: not known */
	uint32_t loader;	/* file of its dynamic loader; 0: not known, or it has none */
};

/* 0 or negative errno; space__free is right after either. */
int space__open(struct space *s, pid_t pid);
void space__free(struct space *s);

/* Reads the mappings again. 0; -ESRCH, -ENOENT: the process is gone; -ENOMEM, … */
int space__refresh(struct space *s);

const struct space_area *space__area(const struct space *s, uint64_t address);	/* or NULL */
/* The mapping below an area of code, NULL: there is none. */
const struct space_area *space__below(const struct space *s, const struct space_area *area);
const struct mapping *space__code(const struct space *s, uint64_t address);

/* All `len` bytes: 0 or negative errno (-EFAULT, -ESRCH, …; -ETIMEDOUT: memory that doesn't answer). */
int space__peek(pid_t pid, uint64_t address, void *to, size_t len);
/* Never into a page that the process itself couldn't write. */
int space__poke(pid_t pid, uint64_t address, const void *from, size_t len);

#endif
