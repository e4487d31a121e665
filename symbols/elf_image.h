/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Checked reading of a 64-bit little-endian ELF file (System V gABI, chapters 4 and 5), from a
 * descriptor or from memory. Nothing in it is believed: every range is held against the size.
 */
#ifndef SYMBOLS_ELF_IMAGE_H
#define SYMBOLS_ELF_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_MAX_NAME (1u << 20)	/* bytes of one name */

struct elf_image {
	int fd;			/* borrowed; -1: bytes */
	uint8_t *bytes;
	uint64_t size;
	Elf64_Ehdr header;
	Elf64_Phdr *segments;	/* PT_LOAD, PT_DYNAMIC and PT_NOTE only */
	size_t nr_segments;
};

/* Addresses, link-time. */
struct elf_range {
	uint64_t start, end;
};

/* A string table: a range of the file. */
struct elf_strings {
	uint64_t offset, size;
};

/* A string that grows. */
struct elf_name {
	char *text;		/* NULL at first; to be freed */
	size_t size;
};

/* 0; -ENOEXEC: not a file of this kind; -errno. */
int elf_image__open(struct elf_image *image, int fd);
/* Of any type, without its segments: what only holds debug information may have none. */
int elf_image__open_sections(struct elf_image *image, int fd);
int elf_image__open_memory(struct elf_image *image, const void *bytes, size_t size);	/* copies */
void elf_image__close(struct elf_image *image);

/* Whether [offset, offset + size) lies in the file. */
bool elf_image__holds(const struct elf_image *image, uint64_t offset, uint64_t size);
/* All `len` bytes: 0, or -EIO (out of range, or the file has become shorter), or -errno. */
int elf_image__read(const struct elf_image *image, uint64_t offset, void *buf, size_t len);

/*
 * All section headers: 0 and an array to be freed; -ENOENT: the file has none that can be used;
 * -EIO, -ENOMEM.
 */
int elf_image__sections(const struct elf_image *image, Elf64_Shdr **sections, size_t *nr);

/* By the segment that holds the place; executable ones first. */
bool elf_image__to_address(const struct elf_image *image, uint64_t offset, uint64_t *address);
bool elf_image__to_offset(const struct elf_image *image, uint64_t address, uint64_t *offset);

/*
 * The string at `at` of a table. 0, also for an empty one; -ENOENT: outside the table, without end,
 * or longer than ELF_MAX_NAME; -EIO, -ENOMEM.
 */
int elf_image__string(const struct elf_image *image, const struct elf_strings *table, uint64_t at,
		      struct elf_name *out);
void elf_name__free(struct elf_name *name);

#endif
