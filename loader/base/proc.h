/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What /proc tells of a process or of one of its threads (proc(5)). */
#ifndef BASE_PROC_H
#define BASE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROC_NAME 64

struct proc_stat {
	char name[PROC_NAME];	/* may hold anything but a NUL; cut where it is longer */
	char state;		/* R, S, D, T, Z, … */
	bool ending;		/* runs no code of its own any more, be it a zombie or on its way there */
	bool kernel;		/* a thread of the kernel's: it has no program */
	pid_t parent;		/* 0: none, or none that is visible from here */
	uint64_t started;	/* clock ticks after boot: tells two of one number apart */
};

/* Its stat file, or that of its thread `tid` (0: of the process). 0, negative errno: there is none. */
int proc__stat(pid_t pid, pid_t tid, struct proc_stat *stat);

/* The line "field: number" of its status file. 0, -ENODATA: no such line, negative errno: no such file. */
int proc__number(pid_t pid, const char *field, uint64_t *value);

/* Both of a file that was read. Pure: 0, -EBADMSG: that is none; 0, -ENODATA. */
int proc__parse_stat(const char *data, struct proc_stat *stat);
int proc__parse_number(const char *line, const char *field, uint64_t *value);

#endif
