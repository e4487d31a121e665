/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Looks through all code of a file, for what no symbol tells. */
#ifndef UNWIND_ELF_CODE_H
#define UNWIND_ELF_CODE_H

#include "unwind/elf_view.h"

/* `len` bytes of code that lie at `vaddr`. Not 0: it ends there, with this. */
typedef int (*elf_code_fn)(void *ctx, const uint8_t *code, size_t len, uint64_t vaddr);

/*
 * Calls fn for the executable segments, piece by piece; `overlap` bytes (less than a MiB) at the end of
 * a piece are in the next one, too, since what is looked for may lie across an end. 0 or what fn gave;
 * -ENOENT: more code than any interpreter has; else -ENOMEM or what pread gave.
 */
int elf_code__each(struct elf_view *view, size_t overlap, elf_code_fn fn, void *ctx);

#endif
