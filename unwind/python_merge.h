/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Puts the Python frames of a recorded stack where they belong: from before the native words, as the
 * BPF programs send them (bpf/gpucollect.h), to right before the word of the interpreter's C call
 * that they ran in. Words stand leaf first.
 */
#ifndef UNWIND_PYTHON_MERGE_H
#define UNWIND_PYTHON_MERGE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "bpf/gpucollect.h"

/* Number of the words before the native ones; 0: there are no Python frames. Pure. */
size_t python_merge__chain(const __u64 *words, size_t nr);

/*
 * Out come the native words in their order, and before the word of a call its Python frames, two words
 * each; `out` has room for python_merge__room(nr) words and is not `words`. Returns how many there are.
 * What can't be placed keeps its order among the Python frames and has a FRAME_RUN_AT word behind it
 * (towards the root), the last frame of a list that was cut a FRAME_RUN_CUT word. `is_call` tells the words
 * of the interpreter's evaluation function; it is asked only where there is nothing else to go by (3.8,
 * 3.9; a list that was cut in a run of which nothing is known), and may be NULL: then no word is one.
 */
size_t python_merge(const __u64 *words, size_t nr, bool (*is_call)(void *ctx, __u64 word), void *ctx,
		    __u64 *out);

/* Words that the result of `nr` words may have. */
static inline size_t python_merge__room(size_t nr)
{
	return nr + 1;
}

#endif
