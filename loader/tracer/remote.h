/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One thread of another process, borrowed by ptrace(2): stopped, made to run something, brought home.
 *
 * Once a frame (frame.h) lies on its stack, each thing it is made to run is begun by one single
 * change of registers, after which it finds its own way home: whoever traces may die at any
 * instruction. No code of the process is changed. While the tracer lives it brings the thread home
 * itself, to the very stop it was taken from, so that signals that came meanwhile and the system
 * call it slept in meet as if nothing had been.
 *
 * All calls from the thread that made the first one (ptrace's rule). Where that thread ends, the
 * kernel lets go of what it still held.
 */
#ifndef TRACER_REMOTE_H
#define TRACER_REMOTE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "loader/tracer/frame.h"

struct libc;

#define REMOTE_STEP_NS 1000000000ull	/* a step may take this long */

struct remote {
	pid_t pid, tid;
	const struct libc *libc;
	struct user_regs_struct regs;	/* as it was stopped: valid while held */
	bool held;			/* stopped by us, or running something of ours */
	bool away;			/* its registers are not its own */
	bool stopped;
	bool trapped;			/* at a stop from which it can go home */
	bool timed;			/* it was in a system call with a time limit: */
	struct remote_timed {
		pid_t tid;
		uint64_t rsp, rip;	/* there */
		uint64_t nr;
	} call;
	int signal;			/* to be delivered when it goes on; 0: none */
	uint64_t since;			/* CLOCK_MONOTONIC, when it was asked to stop */
	uint64_t longest;		/* ns that it was held, the longest time so far */
	unsigned int holds;
	uint64_t mask;			/* blocked signals */
	size_t xstate_len;
	uint8_t xstate[FRAME_MAX_XSTATE];
	struct frame frame;
};

void remote__init(struct remote *r, pid_t pid, const struct libc *libc);

/*
 * Stops thread `tid`; r->regs is what it was doing. 0, or, and it isn't held:
 *	-EBUSY		somebody else traces it
 *	-EPERM		not allowed
 *	-ESRCH		it is gone
 *	-EAGAIN		the process is stopped by a signal; it stays so
 *	-EINPROGRESS	it doesn't come to a stop; only the end of this thread lets go of it
 */
int remote__stop(struct remote *r, pid_t tid);

/* Lets it go on as it was. */
void remote__release(struct remote *r);

/*
 * Prepares the way home on its stack. 0; -EAGAIN: not from where it is stopped; -EBUSY: not just
 * now, though it may still sleep there when it is stopped again; -EOPNOTSUPP, -EFAULT, -ESRCH, …: not
 * this thread.
 */
int remote__prepare(struct remote *r);

/* The room for arguments in the frame, in the process. */
static inline uint64_t remote__room(const struct remote *r)
{
	return r->frame.room;
}

/*
 * Makes it do a system call: 0 and *result (or a negative errno there). Else it is still held and
 * on its way home: -ETIMEDOUT, -EAGAIN (stopped by a signal), or gone: -ESRCH.
 */
int remote__syscall(struct remote *r, long nr, const uint64_t args[6], int64_t *result);
/* Makes it call a function with one argument, whose result doesn't matter. As remote__syscall. */
int remote__call(struct remote *r, uint64_t function, uint64_t arg);

/* Brings it home and lets it go; does nothing if it isn't held. */
void remote__home(struct remote *r);
/* Lets it go where it is, after a time-out: it goes home when it can. */
void remote__leave(struct remote *r);

#endif
