/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a stop does to the system call that a thread was in, or would do to it. */
#ifndef TRACER_INTERRUPTED_H
#define TRACER_INTERRUPTED_H

#include <stdbool.h>

struct remote;

/* Whether our stop alone has ended the call, with EINTR, which can be begun again as if nothing had been. */
bool interrupted__begins_again(const struct remote *r);

/*
 * A call with a time limit has another number after the first stop. What it was is known if that was
 * by us, or from the instruction that loads the number; else it is 0: r->call.
 */
void interrupted__note_timed(struct remote *r);

/*
 * Whether it blocks signals for the time of its system call alone. What it has otherwise (r->mask) is all
 * that can be given back to it: one of them would end the call.
 */
bool interrupted__blocks_signals(const struct remote *r);

/* Whether it is where the kernel knows more of it than its registers tell: it can't be taken from there. */
bool interrupted__is_elsewhere(const struct remote *r);

#endif
