/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds a CPython interpreter in a file: where its global state is, which version it is and, where that
 * can't be told otherwise, which code makes Python frames. The name of the file doesn't matter, nor
 * whether it is stripped. It is asked of every file that a process maps: where there is no Python in
 * one, that takes a few reads.
 */
#ifndef UNWIND_PYTHON_RUNTIME_H
#define UNWIND_PYTHON_RUNTIME_H

#include "unwind/python_offsets.h"

#define PYTHON_MAX_EVAL 4

struct python_range {
	uint64_t start, end;	/* offsets in the file */
};

struct python_runtime {
	uint64_t runtime;		/* vaddr of _PyRuntime */
	uint64_t runtime_size;		/* 0: not known */
	uint64_t type_code;		/* vaddr of PyCode_Type; 0: not known */
	unsigned int minor, micro;	/* of 3.minor.micro */
	struct python_offsets offsets;
	/* the interpreter's function, in pieces; 3.8, 3.9 (PYTHON_FRAME_OBJECTS) can't do without */
	struct python_range eval[PYTHON_MAX_EVAL];
	unsigned int nr_eval;
};

/*
 * 0. -ENOENT: no Python in the file. -ENOTSUP: there is one, but none that can be read; `why`, if
 * given, is then a text to be freed, or NULL. Else -ENOMEM or what pread gave. The descriptor is as
 * for elf_view__open.
 */
int python_runtime__find(int fd, struct python_runtime *out, char **why);

/* For the above: the pieces of the function at `vaddr`, which may have cold parts elsewhere. 0, -ENOENT… */
int python_eval__find(int fd, uint64_t vaddr, struct python_range *eval, unsigned int *nr);

#endif
