/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The threads of a process that may be stopped without any of them noticing, best first. A stop
 * takes a thread out of its system call; some calls go on by themselves after that (signal(7),
 * "Interruption of system calls by stop signals"), some end with EINTR or with less than was asked
 * for. Only calls of the first kind are chosen, and threads that run.
 */
#ifndef TRACER_THREADS_H
#define TRACER_THREADS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum thread_kind {
	THREAD_ASLEEP = 0,	/* waits for another thread, without a time limit */
	THREAD_WAITING = 1,	/* for something else, in a call that goes on by itself */
	THREAD_RUNNING = 2,
	THREAD_TIMED = 3,	/* in a call that only the kernel can go on with: see frame__home */
	THREAD_UNFIT = 4,
};

struct thread_choice {
	pid_t tid;
	enum thread_kind kind;
	uint64_t sp, pc;	/* where it sleeps; 0: it runs */
};

/*
 * What a line of /proc/PID/task/TID/syscall says (proc(5); "running" or number, six arguments,
 * stack pointer, program counter). A read depends on what is read: THREAD_WAITING with *fd set to
 * that descriptor, which is -1 otherwise.
 */
enum thread_kind threads__classify(const char *line, struct thread_choice *choice, int *fd);

/* For the caller to free. 0; -ESRCH: the process is gone; -ENOMEM, … */
int threads__list(pid_t pid, struct thread_choice **threads, size_t *nr);

#endif
