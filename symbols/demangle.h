/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Readable names of C++ (Itanium ABI) and Rust (legacy and v0) symbols, host and device ones
 * alike: template arguments are kept; parameters, return types and qualifiers of functions are
 * left out, also those of enclosing functions. What compilers append for clones (".cold",
 * ".part.0", ".isra.0", ".constprop.0", ".llvm.123") is put back as it was.
 */
#ifndef SYMBOLS_DEMANGLE_H
#define SYMBOLS_DEMANGLE_H

/*
 * A string to be freed; NULL with errno: EINVAL (not a mangled name, or one that can't be read),
 * E2BIG (longer, deeper or costlier than what is allowed), ENOMEM. Such a name is best shown as it
 * is. Time and memory are bounded for any input. Costs 1 us in the mean, milliseconds at most.
 */
char *demangle(const char *mangled);

#endif
