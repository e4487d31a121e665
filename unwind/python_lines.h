/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lines of Python code, from the tables that code objects carry: bytes of a target, in any state. */
#ifndef UNWIND_PYTHON_LINES_H
#define UNWIND_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/python_offsets.h"

/*
 * The line of the instruction at `offset`, in bytes from the start of the bytecode, or 0: it has none,
 * or the table makes no sense. PYTHON_OFFSET_START is in the first line, PYTHON_OFFSET_NONE in none.
 */
uint32_t python_lines__at(enum python_lines_kind kind, const uint8_t *table, size_t len,
			  uint32_t first_line, uint32_t offset);

#endif
