/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Kernel addresses to names, from the text of /proc/kallsyms ("address type name [module]", see
 * kernel/kallsyms.c). Text symbols only; 16 bytes and the name for each.
 */
#ifndef SYMBOLS_KERNEL_H
#define SYMBOLS_KERNEL_H

#include <stddef.h>
#include <stdint.h>

struct kernel_symbols;

struct kernel_symbol {
	const char *name;	/* as in kallsyms; lives as long as the table */
	const char *module;	/* without brackets; NULL: the kernel itself */
	uint64_t address;
};

/*
 * Reads the whole file. 0 and *out; -EPERM: all addresses are hidden (kernel.kptr_restrict is 2, or
 * it is 1 or 0 and CAP_SYSLOG is missing); -ENODATA: no text symbol in it; else -errno.
 */
int kernel_symbols__read(const char *path, struct kernel_symbols **out);
/* The same from bytes; lines that can't be read are skipped. */
int kernel_symbols__parse(const char *text, size_t len, struct kernel_symbols **out);
void kernel_symbols__free(struct kernel_symbols *k);	/* NULL is fine */

size_t kernel_symbols__count(const struct kernel_symbols *k);
/* 0, or -ENOENT. */
int kernel_symbols__find(const struct kernel_symbols *k, uint64_t address,
			 struct kernel_symbol *out);

#endif
