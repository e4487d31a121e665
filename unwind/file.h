/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A file whose code is to be unwound: its ELF view and the index of its unwind information. */
#ifndef UNWIND_FILE_H
#define UNWIND_FILE_H

#include <stddef.h>
#include "unwind/fde.h"

struct unwind_file;

/*
 * `fd` stays the caller's and must stay open until the file is freed. Reads little: headers only.
 * Returns 0, -ENOTSUP (no x86-64 ELF program or library), -EINVAL (damaged), -ENOMEM or what
 * pread gave. A file without any unwind information can be opened: all its code is "no row".
 */
int unwind_file__open(struct unwind_file **file, int fd);

/* The same of an image in memory (the vDSO), which is copied. */
int unwind_file__open_memory(struct unwind_file **file, const void *image, size_t size);

void unwind_file__free(struct unwind_file *file);	/* NULL is fine */

/* Bytes of memory it holds: block cache, and an index where the file has no usable table. */
size_t unwind_file__memory(const struct unwind_file *file);

/* For the rest of this stage. */
struct elf_view *unwind_file__view(struct unwind_file *file);
struct fde_index *unwind_file__fdes(struct unwind_file *file, enum fde_section section);

#endif
