/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Parses single entries of .eh_frame and .debug_frame; keeps the CIEs used last. */
#ifndef UNWIND_FDE_PARSE_H
#define UNWIND_FDE_PARSE_H

#include "unwind/elf_view.h"
#include "unwind/fde.h"

struct fde_parser;

/* 0 or -ENOMEM; the view must outlive the parser. */
int fde_parser__new(struct fde_parser **parser, struct elf_view *view,
		    const struct elf_part *part, enum fde_section section);
void fde_parser__free(struct fde_parser *parser);	/* NULL is fine */
size_t fde_parser__memory(const struct fde_parser *parser);

/*
 * The entry at `offset` of the file; *next is the offset behind it, always > offset. Returns 0,
 * -ENOENT (a CIE, a terminator, an FDE that covers nothing or that can't be parsed; fde->start is
 * set if it could be read), -ERANGE or -EINVAL (no entry: the walk can't go on), -ENOMEM or what
 * pread gave. *fde is valid until the next call.
 */
int fde_parser__entry(struct fde_parser *parser, uint64_t offset, struct fde *fde, uint64_t *next);

#endif
