/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inside which functions of the C library a thread may be while it is borrowed. */
#ifndef TRACER_LIBC_CALLS_H
#define TRACER_LIBC_CALLS_H

#include <stdbool.h>

/*
 * Whether a thread in this function, or in what it calls inside the library, holds nothing that
 * starting a thread needs: it waits, asks the kernel, or only computes. Any function that isn't
 * known is none. The name as in the symbol table.
 */
bool libc_calls__harmless(const char *name);

/* It calls the program's main through one function of its own. */
bool libc_calls__is_start(const char *name);

/* Names of memory allocators' functions, of C++'s operators too, in a program that brings its own. */
bool libc_calls__allocates(const char *name);

#endif
