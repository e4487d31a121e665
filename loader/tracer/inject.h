/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Gets the timing library into a running process: borrows one of its threads by ptrace for a few
 * milliseconds, twice. First the thread makes a memfd with the library and maps the page with its
 * stub; then, when the caller has put its probes on that file, it calls the stub, which loads the
 * library (gpu_timing/channel.h, "Attaching"). Where the library is there already only the call is
 * made. The thread has everything back afterwards: registers, vector state, signal mask, errno and
 * its system call. All of it happens in a thread of the collector of its own, whose end, however it
 * comes, lets go of whatever it holds.
 *
 *	t = tracer__new(&request)
 *	poll tracer__fd(t) for POLLIN, then look at tracer__get(t, &result):
 *	  TRACER_PLACED	attach probes to the file (result.file), look at result.identity;
 *			then tracer__proceed(t) or tracer__cancel(t)
 *	  TRACER_DONE	result.err says how it went; tracer__free(t)
 *
 * Never two at once for one process (the caller's duty); at most TRACER_MAX at a time.
 */
#ifndef LOADER_TRACER_INJECT_H
#define LOADER_TRACER_INJECT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpu_timing/channel.h"

#define TRACER_MAX 8

struct tracer;

struct tracer_request {
	pid_t pid;
	/* The library: borrowed until tracer__free. */
	const void *image;
	size_t size;
	uint64_t stub;		/* offset in the file of gpucollect_stub: a multiple of 4096 */
};

enum tracer_state {
	TRACER_WORKING = 0,
	TRACER_PLACED = 1,	/* waits for tracer__proceed or tracer__cancel */
	TRACER_DONE = 2,
};

struct tracer_result {
	enum tracer_state state;
	/*
	 * Once done: 0, the library has taken over and said hello; else nothing of ours is left, as
	 * far as the process's state allowed:
	 *	-ENOTSUP	this process can't take it (`why`): not now, not later
	 *	-EAGAIN		no thread could be borrowed in time, or it is stopped: later, perhaps
	 *	-EBUSY		another tracer is at it
	 *	-EPERM		we may not
	 *	-ESRCH		the process is gone, or has become another by exec
	 *	-ECANCELED	by tracer__cancel
	 *	-ETIMEDOUT	the call didn't end; the thread goes home when it can
	 *	-EREMOTEIO	the library refused: `attach`
	 * or what the process got for a system call (-EMFILE, -EACCES, …).
	 */
	int err;
	char why[256];		/* one line without a full stop, "" for 0 */
	/* From TRACER_PLACED on. */
	bool present;		/* the library was there already */
	int file;		/* the file that the process maps, our descriptor; owned by the tracer */
	struct channel_identity identity;	/* if present: as the process's memory has it */
	/* Once done. */
	struct channel_attach attach;	/* what came back; stage ATTACH_NOT_BEGUN: nothing did */
	uint64_t held_ns;	/* the longest time that a thread was held */
	unsigned int holds;	/* how many times threads were */
};

/*
 * What would be met in a process, as far as that shows without holding it or changing anything: 0, or an err
 * and `why` (size bytes) as above, where "" leaves it to the errno. `there`: the library is, and *identity
 * what it says.
 */
int tracer__foresee(pid_t pid, bool *there, struct channel_identity *identity, char *why, size_t size);

/* NULL with errno: ENOMEM, EAGAIN (no thread), EMFILE. */
struct tracer *tracer__new(const struct tracer_request *request);
/* Cancels, if need be, and waits for its end, which may take a second: once done it doesn't. */
void tracer__free(struct tracer *t);	/* NULL is fine */

/* Readable when the state has changed since the last tracer__get. */
int tracer__fd(const struct tracer *t);
void tracer__get(struct tracer *t, struct tracer_result *result);

void tracer__proceed(struct tracer *t);
/* At any time; the state becomes TRACER_DONE soon after. */
void tracer__cancel(struct tracer *t);

#endif
