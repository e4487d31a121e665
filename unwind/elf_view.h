/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What unwinding needs of an x86-64 ELF file: its load segments, the place of its unwind
 * information and bounded reads. Works without section headers, with any number of executable
 * segments (each has a bias of its own) and for images in memory, such as the vDSO's. Nothing
 * in the file is believed: a lying file gives wrong or no answers, never a wild read.
 * Formats: System V gABI chapters 4 and 5, x86-64 psABI, LSB Core 10.6.
 */
#ifndef UNWIND_ELF_VIEW_H
#define UNWIND_ELF_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_view;

/* A PT_LOAD segment as far as the file backs it. Addresses are the file's own ("vaddr"). */
struct elf_segment {
	uint64_t offset;
	uint64_t vaddr;
	uint64_t size;		/* bytes in the file; offset + size and vaddr + size don't overflow */
	bool executable;
};

/* A piece of the file; size 0: there is none. */
struct elf_part {
	uint64_t offset;
	uint64_t vaddr;
	uint64_t size;
	bool open_ended;	/* size is an upper bound only */
};

/*
 * View of the file behind `fd`, which stays the caller's and must stay open until the view is
 * freed; the file offset is neither used nor moved. Returns 0, -ENOTSUP (no x86-64 ELF program or
 * library), -EINVAL (damaged beyond use), -ENOMEM or what pread gave.
 */
int elf_view__open(struct elf_view **view, int fd);

/* The same of an image in memory, which is copied. */
int elf_view__open_memory(struct elf_view **view, const void *image, size_t size);

void elf_view__free(struct elf_view *view);	/* NULL is fine */

/* Segments in the order of the program headers, with at least one byte in the file each. */
const struct elf_segment *elf_view__segments(const struct elf_view *view, size_t *nr);

const struct elf_part *elf_view__eh_frame_hdr(const struct elf_view *view);	/* by PT_GNU_EH_FRAME */
/* By its section header, else from PT_GNU_EH_FRAME (then open-ended). */
const struct elf_part *elf_view__eh_frame(const struct elf_view *view);
const struct elf_part *elf_view__debug_frame(const struct elf_view *view);	/* uncompressed only */
uint64_t elf_view__entry(const struct elf_view *view);

/* Of an address that lies in the file; false: it doesn't. `left`, if given: bytes to the end. */
bool elf_view__offset(const struct elf_view *view, uint64_t vaddr, uint64_t *offset,
		      uint64_t *left);

/*
 * Copies bytes [offset, offset + len) of the file; through a small cache where len is small.
 * 0, -ERANGE if the file ends before, or what pread gave.
 */
int elf_view__read(struct elf_view *view, uint64_t offset, void *buf, size_t len);

size_t elf_view__memory(const struct elf_view *view);	/* bytes that it holds */

#endif
