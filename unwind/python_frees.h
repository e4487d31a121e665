/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether a probe can count all code objects that an interpreter frees, and where it has to sit: on the
 * function that PyCode_Type names as tp_dealloc. The first instruction must be a push, which the kernel
 * carries out itself; any other is single-stepped, which takes several us. And no copy of the function
 * may be part of others: compilers that know how often a pointer leads to it compare with its address,
 * and go on in a copy.
 */
#ifndef UNWIND_PYTHON_FREES_H
#define UNWIND_PYTHON_FREES_H

#include "unwind/elf_view.h"

/*
 * `vaddr`: of the function. 0, and how many bytes behind its start the probe belongs; -ENOENT: it
 * doesn't begin so; -EEXIST: there may be copies. Else as elf_code__each.
 */
int python_frees__find(struct elf_view *view, uint64_t vaddr, unsigned int *behind);

/* Of the first `len` bytes of a function: where the push is; -1: it begins with something else. */
int python_frees__push(const uint8_t *code, size_t len);

/*
 * Whether code, `len` bytes that lie at `vaddr`, takes the address of `function`, other than to call it
 * or to jump there. `absolute`: the file lies where it says, so that the address itself may stand in an
 * instruction.
 */
bool python_frees__takes(const uint8_t *code, size_t len, uint64_t vaddr, uint64_t function, bool absolute);

#endif
