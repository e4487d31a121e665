/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The C library of a process: what a borrowed thread is made to run there. glibc from 2.34 on (its
 * libc.so.6 has dlopen), x86-64.
 */
#ifndef TRACER_LIBC_H
#define TRACER_LIBC_H

#include <stddef.h>
#include <stdint.h>

struct space;

/* Addresses in the process. */
struct libc {
	uint32_t file;		/* of struct space's files */
	uint64_t bias;		/* address - link-time address */
	uint64_t getpid;	/* mov $39, %eax; syscall; ret */
	uint64_t syscall;	/* the last two of these */
	uint64_t restore_rt;	/* mov $15, %rax; syscall */
	/* What the stub calls (gpu_timing/channel.h). */
	uint64_t attr_init, attr_setdetachstate, attr_setstacksize, pthread_create;
	uint64_t errno_location, munmap;
	uint64_t dlopen, dlsym, dlerror;
};

/* 0, or -ENOTSUP and `why` (one line): none that can be used; or another negative errno. */
int libc__find(struct libc *l, const struct space *s, char *why, size_t size);

/*
 * Whether its code is still there as it was found: not if the process is another by exec, or if
 * somebody changed the code (a breakpoint). 0; -ESRCH: it isn't there; -ENOTSUP: changed.
 */
int libc__verify(const struct libc *l, const struct space *s);

#endif
