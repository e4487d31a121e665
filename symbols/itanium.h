/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The C++ half of demangle(): libiberty parses and prints, the tree between is ours to cut. */
#ifndef SYMBOLS_ITANIUM_H
#define SYMBOLS_ITANIUM_H

#include <stddef.h>

/* Bytes of stack that demangling a name of `len` bytes may take (96 a byte measured). */
#define ITANIUM_STACK(len) ((size_t)(len) * 256 + (1u << 20))

/*
 * The readable form of `mangled` ("_Z…", `len` bytes, no clone suffix) as a string to be freed.
 * NULL with errno as demangle().
 */
char *itanium__demangle(const char *mangled, size_t len);

#endif
