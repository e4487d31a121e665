/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which native frames tell nothing to who reads Python. Pure. */
#ifndef LOADER_PYTHON_FOLD_H
#define LOADER_PYTHON_FOLD_H

#include <stdbool.h>

/*
 * Whether a function of the interpreter, by the name of its symbol, does nothing but carry a call from
 * one Python function to the next, or to C: the evaluation loop, the ways of calling, of starting, of
 * resuming. Those that do something themselves (sorted, re.sub, the garbage collector) are not.
 */
bool python_fold__is_internal(const char *symbol);
/* Whether a function is one in which the program python3 begins. */
bool python_fold__is_main(const char *symbol);
/* Whether a file is the C library or the dynamic loader, on the way from which a program begins. */
bool python_fold__is_c_library(const char *path);

#endif
