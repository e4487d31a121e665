/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where an interpreter keeps the version that the next code object will have, from 3.12 on: while it has not
 * changed, no code object was made, and what was read of those in use holds. Nothing tells its place, which
 * moved within 3.12: it is taken from the code that gives a new object its version.
 */
#ifndef UNWIND_PYTHON_VERSIONS_H
#define UNWIND_PYTHON_VERSIONS_H

#include "unwind/elf_view.h"

struct python_versions {
	bool of_interpreter;	/* a member of each PyInterpreterState */
	uint64_t at;		/* its offset there, or the vaddr of the variable */
};

/*
 * `code_version`: offset of the version in a code object. 0. -ENOENT: no such code, or several with different
 * places. Else -ENOMEM or what pread gave.
 */
int python_versions__find(struct elf_view *view, unsigned int code_version, struct python_versions *out);

/* The same in `len` bytes of code that lie at `vaddr`. */
int python_versions__decode(const uint8_t *code, size_t len, uint64_t vaddr, unsigned int code_version,
			    struct python_versions *out);

#endif
