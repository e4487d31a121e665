/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions and lines of Python frames. Code objects live as long as their functions do: the BPF side
 * sends a copy of what a stack shows for the first time, and what is missing is read from the process.
 */
#ifndef LOADER_PYTHON_NAMES_H
#define LOADER_PYTHON_NAMES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "loader/processes.h"
#include "loader/python.h"

/* Bytes that are kept of all processes, and of one at most: then no more than are left of the former. */
#define PYTHON_NAMES_BYTES (256ull << 20)
#define PYTHON_NAMES_SHARE (32ull << 20)

struct python_names;

struct python_names *python_names__new(const struct python *py, const struct processes *processes);
void python_names__free(struct python_names *n);	/* NULL is fine */

/* A function was met. 0 or -ENOMEM. */
int python_names__told(struct python_names *n, const struct process *p, const struct rec_code *rec);
/* The words of a stack of `p` (bpf/gpucollect.h): functions whose record was lost. 0 or -ENOMEM. */
int python_names__met(struct python_names *n, const struct process *p, const uint64_t *words, uint32_t nr);

/* Processes that had more functions than are kept. */
uint64_t python_names__full(const struct python_names *n);

struct python_name {
	const char *function;	/* qualified where the version has that */
	const char *file;	/* NULL: could not be read */
	uint32_t line;		/* 0: none */
};

/* What a frame stands for, by its two words; false: its code object was gone before it could be read. */
bool python_names__of(const struct python_names *n, const struct process *p, uint64_t code, uint64_t at,
		      struct python_name *name);

#endif
