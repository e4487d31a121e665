/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an ELF file says about where the rest of its symbols is: its build id (gABI "Note Section",
 * NT_GNU_BUILD_ID), the name and checksum of a debug file (.gnu_debuglink, as binutils writes it),
 * an xz-compressed image of local symbols (.gnu_debugdata), the file that holds what debug information
 * of several files has in common (.gnu_debugaltlink, as dwz writes it).
 */
#ifndef SYMBOLS_SEPARATE_H
#define SYMBOLS_SEPARATE_H

#include "symbols/elf_image.h"

#define BUILD_ID_MAX 64

struct build_id {
	uint8_t bytes[BUILD_ID_MAX];
	size_t len;		/* 0: none; else 2 at least */
};

struct separate {
	struct build_id id;
	char link[256];		/* a file name without directories; "": none */
	uint32_t link_crc;
	char alt[1024];		/* path, from the file's own directory if it is relative; "": none */
	struct build_id alt_id;
	uint64_t mini_offset, mini_size;	/* .gnu_debugdata; size 0: none */
	bool has_symtab;
	bool has_debug_info;	/* .debug_info with something in it */
};

/* Whatever can't be read counts as absent. 0 or -ENOMEM. */
int separate__read(const struct elf_image *image, struct separate *out);

bool build_id__equal(const struct build_id *a, const struct build_id *b);	/* false for none */

/*
 * Whether `image` is what `of` was separated from, by the build ids of both; where one has none, by
 * the checksum of the whole file (of SEPARATE_MAX_CRC bytes at most).
 */
bool separate__belongs(const struct separate *of, const struct elf_image *image);
#define SEPARATE_MAX_CRC (512u << 20)

/*
 * The decompressed .gnu_debugdata, to be freed. 0; -ENOENT: none; -EINVAL: no xz data; -E2BIG: more than
 * SEPARATE_MAX_MINI bytes; -EIO, -ENOMEM.
 */
int separate__mini(const struct separate *of, const struct elf_image *image, uint8_t **bytes,
		   size_t *size);
#define SEPARATE_MAX_MINI (64u << 20)

#endif
