/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What run.c and run_end.c have in common. */
#ifndef LIBRARY_RUN_INSIDE_H
#define LIBRARY_RUN_INSIDE_H

#include "gpu_timing/library/library.h"

struct run *run__of(const struct bracket *b);
/* The open one, which another thread may take at any time: a look at it may show another. NULL: none. */
const struct run *run__peek(const struct stream *s);
/* Whoever gets it has it alone. 0: none is open. */
uint32_t run__take(struct stream *s);
/* Nobody but t was at work in the stream since its last launch, and its context is the same. */
bool run__is_whole(const struct stream *s, const struct bracket *b, const struct thread *t);
/* Published without an end: reported once its begin is over, since until then it takes room in the stream. */
void run__publish_void(struct stream *s, uint32_t bracket, enum launch_cause cause);
/* Behind what was published: after the last harvest nobody would report it. */
void run__publish_last(struct stream *s);
/* Is every launch looked at, so that the streams' counts of them are right? */
bool run__all_seen(void);
/* It is no longer being ended. */
void run__end_closing(struct run *r);
/* The begin's own state: CUDA_SUCCESS, CUDA_ERROR_NOT_READY, or what makes the bracket worthless. */
CUresult run__ask_begin(const struct bracket *b);

#endif
