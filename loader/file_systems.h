/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which mounts have their data on this machine: of all others, a network's or a program's (FUSE), an
 * answer may never come. The kernel tells without asking them (/proc/PID/mountinfo, proc(5)).
 */
#ifndef LOADER_FILE_SYSTEMS_H
#define LOADER_FILE_SYSTEMS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct file_systems;

struct file_systems *file_systems__new(void);		/* NULL: out of memory */
void file_systems__free(struct file_systems *f);	/* NULL is fine */

/*
 * Whether the file behind an O_PATH descriptor, which process `tgid` maps, is here. What is not known is
 * far away: a mount that was detached, or a process that is gone.
 */
bool file_systems__is_near(struct file_systems *f, pid_t tgid, int handle);

/* Pure: whether a line of mountinfo is of mount `id`, and then *near. */
bool file_systems__parse(const char *line, uint64_t id, bool *near);

#endif
