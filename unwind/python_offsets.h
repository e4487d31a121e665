/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The structures of one CPython, as far as user space looks into them: bytes from the start of each.
 * Sources: the headers of CPython 3.8 to 3.14; 3.13 and later tell most of it themselves.
 */
#ifndef UNWIND_PYTHON_OFFSETS_H
#define UNWIND_PYTHON_OFFSETS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/python_frames.h"

/* How a process's memory is read. 0, or negative errno: not all of it was readable. */
struct python_memory {
	int (*read)(void *ctx, uint64_t addr, void *buf, size_t len);
	void *ctx;
};

enum python_lines_kind {
	PYTHON_LINES_LNOTAB = 0,	/* co_lnotab: 3.8, 3.9 */
	PYTHON_LINES_310 = 1,		/* co_linetable of 3.10 */
	PYTHON_LINES_311 = 2,		/* co_linetable from 3.11 on */
};

struct python_offsets {
	uint8_t minor;		/* of 3.x */
	bool free_threaded;
	enum python_lines_kind lines;
	struct python_layout layout;	/* but for tsd_at, tsd_then, type_code */
	/* _PyRuntimeState */
	uint32_t runtime_key;		/* gilstate.autoTSSkey: int created, then u32 key */
	uint32_t runtime_interpreters;	/* interpreters.head */
	/* PyInterpreterState, PyThreadState */
	uint32_t interpreter_next;
	uint32_t interpreter_threads;	/* head of its thread states */
	uint32_t thread_next;
	uint32_t thread_interpreter;
	/* objects */
	uint32_t object_type;		/* ob_type */
	uint32_t type_name;		/* tp_name: address of a C string */
	uint32_t code_qualname;		/* 0: this version has none */
	uint32_t bytes_size, bytes_data;
	uint32_t str_length, str_state, str_ascii, str_compact;
	uint32_t str_kind_shift;	/* in the word at str_state: 3 bits of kind, then compact, ascii */
};

/* What CPython tells of itself at the start of _PyRuntime, 3.13 and later; 3.14 tells the most. */
#define PYTHON_DEBUG_COOKIE "xdebugpy"
#define PYTHON_DEBUG_BYTES 760

/* As the headers of 3.`minor` have them. -ENOTSUP: no version that is known. */
int python_offsets__of(unsigned int minor, bool free_threaded, struct python_offsets *out);

/*
 * As the interpreter tells them in `bytes`; what it doesn't tell is as in the headers of its version.
 * -ENOENT: these are none. -ENOTSUP: of a version that is not known, or with values that can't be.
 */
int python_offsets__from_debug(const void *bytes, size_t size, struct python_offsets *out);

#endif
