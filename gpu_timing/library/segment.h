/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The library's end of the channel: the sealed segment and the records put into its ring. */
#ifndef LIBRARY_SEGMENT_H
#define LIBRARY_SEGMENT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu_timing/channel.h"

struct thread;

/*
 * Makes the segment, sealed, at a descriptor far from the program's own. The descriptor or a
 * negative errno. The magic is not written yet: segment__publish does that.
 */
int segment__create(struct channel_segment **segment);
/* Whether that descriptor is still the segment's: a program may close all that it doesn't know. */
bool segment__is_at(int fd);
/*
 * What it holds, but for the ring, gets another file, in the same place of memory, as threads have
 * addresses in it. Nobody is inside a session. As segment__create.
 */
int segment__renew(struct channel_segment *segment);
/*
 * For the session with that number: `empty` the ring, as nobody writes records now. Where that isn't
 * sure the session must write none.
 */
void segment__begin(struct channel_segment *segment, uint32_t session, bool empty);
void segment__publish(struct channel_segment *segment, enum channel_state state);

/* Makes the ring's pages, so that no launching thread has to. */
void segment__populate(struct channel_segment *segment);
/* Gives the ring's memory back: all of it reads as 0. */
void segment__release(struct channel_segment *segment);

/*
 * Copies a record into the ring: `fixed` bytes at `record`, whose head is filled in, then `len` at
 * `text`. -ENOSPC: full. Many may call it at once, in any thread, also from signal handlers.
 */
int ring__put(struct channel_segment *segment, enum channel_type type, void *record, size_t fixed,
	      const void *text, size_t len);

/*
 * One RESULT, with result->launches - 1 further launches at `more`; counts its launches, for t where there is
 * one, or their loss. head is filled in. Of another session than the open one: nothing.
 */
void segment__result(struct thread *t, struct channel_result *result, const struct channel_member *more);

#endif
