/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names come from targets, and may read like what gpucollect itself writes: "[no stack]", "[GPU] gemm",
 * "memcpy_[k]". One sign of such a name becomes '?', so that no frame looks like what it isn't; all other
 * names stay as they are. All look at the end of a text that is being made, from `start` on, and take a
 * ';' for the ':' that it will be.
 */
#ifndef OUTPUT_LOOKALIKE_H
#define OUTPUT_LOOKALIKE_H

#include <stddef.h>

#include "loader/base/text.h"

/* What is a mark, or begins like a frame of ours: "?no stack]", "?GPU] gemm". */
void lookalike__break_start(struct text *t, size_t start);
/*
 * What ends like a frame of ours: a suffix ("memcpy_?k]"), a Python function's line or a process's pid
 * ("f (x.py:3?"), code without a name ("libfoo.so?0x1234"), a hash ("gemm?06e5ca79").
 */
void lookalike__break_end(struct text *t, size_t start);
/* Of a kernel's name: what reads like a copy or set of memory, "?emset". */
void lookalike__break_copy(struct text *t, size_t start);

#endif
