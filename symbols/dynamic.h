/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The dynamic symbols of a file by its dynamic segment, for files without section headers. */
#ifndef SYMBOLS_DYNAMIC_H
#define SYMBOLS_DYNAMIC_H

#include "symbols/symbol_table.h"

/*
 * Fills in where the table lies. The number of symbols is told by DT_HASH or, indirectly, by
 * DT_GNU_HASH. 0, -ENOENT (there is none, or no telling how long it is), -EIO, -ENOMEM.
 */
int dynamic__symbols(const struct elf_image *image, struct symbol_table *t);

#endif
