/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The timing library as a file: where the driver of a started command finds it, and where in it
 * something lies.
 */
#ifndef LOADER_LIBRARY_H
#define LOADER_LIBRARY_H

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

struct library;

/*
 * Puts the embedded library where every user can read it and nobody but the owner can change it:
 * one file for all runs of this build, in /run/gpucollect, where those of builds that nobody runs are
 * removed; or, if that can't be (or is mounted noexec), in a directory of its own in /tmp, /var/tmp or
 * /dev/shm, which library__free removes. 0 or negative errno with *why.
 */
int library__new(struct library **out, char **why);
void library__free(struct library *l);	/* NULL is fine */

const char *library__path(const struct library *l);

/* The file's bytes, embedded in this program, for where it goes another way. */
const void *library__image(size_t *size);
/* Where in the file a symbol of its .symtab lies: -ENOENT if there is none of that name. */
int library__offset(const char *symbol, uint64_t *offset);
/* The same of any build of it, as read from a file: -EINVAL where that is no ELF file. */
int library__offset_in(const void *image, size_t size, const char *symbol, uint64_t *offset);

#endif
