/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which CPUs are on, and which went off in the meantime. */
#ifndef LOADER_CPUS_H
#define LOADER_CPUS_H

#include <stddef.h>
#include <stdint.h>

#define CPUS_MAX 8192

/* set[cpu] != 0 for each CPU that is on, CPUS_MAX of them; the highest number + 1, or negative errno. */
int cpus__online(uint8_t *set);

/*
 * A socket that tells of CPUs that go off, also if they are back at once; -1: none is to be had.
 * cpus__went_off: the next one; CPUS_ANY: messages were lost; CPUS_NONE: no more for now.
 */
#define CPUS_NONE (-1)
#define CPUS_ANY (-2)
int cpus__watch(void);
int cpus__went_off(int fd);

/* Pure: "0-3,8" to a set of CPUs; the highest number + 1, or -EINVAL. */
int cpus__parse(const char *text, uint8_t *set, int room);
/* Pure: the CPU that a message of the kernel's (kobject_uevent) says went off; CPUS_NONE: none. */
int cpus__parse_uevent(const char *text, size_t len);

#endif
