/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a code object of a running Python says of itself: the function's name, its file, its lines. The
 * process runs on while it is read, so the object may be gone, be another by now, or change under us.
 */
#ifndef UNWIND_PYTHON_CODE_H
#define UNWIND_PYTHON_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/python_offsets.h"

#define PYTHON_CODE_TEXT 65536u		/* characters of a name that are read; "…" stands for the rest */
#define PYTHON_CODE_TABLE (4u << 20)	/* bytes of a table of lines; a longer one isn't read */

/*
 * Texts are valid UTF-8 and hold what the program put in, line ends included; only what UTF-8 or C
 * can't hold is replaced: a surrogate by U+FFFD, NUL by U+2400.
 */
struct python_code {
	char *name;		/* qualified, where this version has that */
	char *file;		/* co_filename; NULL: not readable */
	uint32_t first_line;
	uint8_t *table;		/* NULL: not readable, or too long */
	size_t table_len;
};

/*
 * Reads the code object at `code`. 0; -ESTALE: it isn't, or is no longer, the one whose python__check()
 * is `check`; -EINVAL: the name is no string as we know them; -ENOMEM; or what m->read says. Without
 * o->layout.type_code other objects in the place of a dead one can pass for it.
 */
int python_code__read(const struct python_offsets *o, const struct python_memory *m, uint64_t code,
		      uint32_t check, struct python_code **out);
void python_code__free(struct python_code *c);	/* NULL is fine */

/* As python_lines__at(). */
uint32_t python_code__line(const struct python_code *c, const struct python_offsets *o, uint32_t offset);

/*
 * What the BPF side says with a frame, of which code object it is: `words` are the first
 * o->layout.code_bytes of it, in an array of PYTHON_CODE_BYTES.
 */
uint32_t python_code__check(const struct python_offsets *o, const struct python_memory *m,
			    const __u64 *words);

/* Bytes that it takes. */
size_t python_code__memory(const struct python_code *c);

#endif
