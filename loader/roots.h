/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The roots of watched processes: one descriptor for each root of each mount namespace, kept open,
 * since what is looked for there (debug files, maps of generated code) is looked for when the process
 * may be gone. It keeps that one mount from going away entirely, but no namespace; what was mounted
 * below is gone with the namespace's last process.
 */
#ifndef LOADER_ROOTS_H
#define LOADER_ROOTS_H

#include <stdint.h>
#include <sys/types.h>

struct roots;

#define ROOTS_NONE 0u
#define ROOTS_MAX 4096u		/* descriptors; processes of further roots have none */

struct roots *roots__new(void);		/* NULL: out of memory */
void roots__free(struct roots *r);	/* NULL is fine */

/* The number of a live process's root; ROOTS_NONE: can't be opened. */
uint32_t roots__of(struct roots *r, pid_t tgid);
/* O_PATH descriptor, owned by the registry; -1 for ROOTS_NONE. */
int roots__fd(const struct roots *r, uint32_t root);
/* A path as /proc/PID/maps shows it to us, seen from that root. Points into `path`. */
const char *roots__path(const struct roots *r, uint32_t root, const char *path);

#endif
