/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Learns from a running CPython how its threads find their state, and whether its structures are what
 * they should be. The process isn't stopped: what is read may be torn, and is read again.
 */
#ifndef UNWIND_PYTHON_THREADS_H
#define UNWIND_PYTHON_THREADS_H

#include "unwind/python_runtime.h"

/*
 * `runtime_address`: where _PyRuntime is in the process. 0; -EAGAIN: not yet: ask later; -ENOTSUP: its
 * structures aren't those of its version, or moved too much: a few looks at some distance tell; `why`, if
 * given, is then a text to be freed, or NULL; else what the memory gave.
 */
int python_threads__learn(const struct python_runtime *r, uint64_t runtime_address,
			  const struct python_memory *m, struct python_layout *out, char **why);

/* --- for the above ------------------------------------------------------------------------ */

#define PYTHON_MAX_THREADS 64	/* that are looked at */

/* A thread's state and the thread pointer that it names. */
struct python_thread {
	uint64_t state;
	uint64_t pointer;
};

/*
 * Finds the place where each thread keeps its state, thread-specific data of the C library's under a key
 * of _PyRuntime's: sets tsd_at and tsd_then. 0; -EAGAIN: there is no key yet; -ENOENT: there may be one,
 * but no thread has its state where it says; else what the memory gave.
 */
int python_tsd__find(const struct python_runtime *r, uint64_t runtime_address,
		     const struct python_memory *m, const struct python_thread *threads, size_t nr,
		     struct python_layout *layout);

#endif
