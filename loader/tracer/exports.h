/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a mapped library is called and exports, by its dynamic segment (gABI chapter 5; DT_GNU_HASH as
 * glibc's dl-lookup.c reads it). Nothing in the file is believed.
 */
#ifndef TRACER_EXPORTS_H
#define TRACER_EXPORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "symbols/elf_image.h"

struct exports {
	struct elf_image image;
	struct elf_strings strings;
	uint64_t symbols;	/* offsets in the file; 0: none */
	uint64_t gnu_hash;
	uint64_t soname;	/* in strings; 0: none */
};

/* The descriptor stays the caller's. 0; -ENOEXEC: no ELF file, -ENOENT: it exports nothing; … */
int exports__open(struct exports *e, int fd);
void exports__close(struct exports *e);

bool exports__is_called(const struct exports *e, const char *soname);

/*
 * Link-time address of a symbol that is defined there; of several versions the first. 0, -ENOENT, -EIO.
 */
int exports__find(const struct exports *e, const char *name, uint64_t *address);

#endif
