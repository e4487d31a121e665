// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "unwind/elf_code.h"

#include <errno.h>
#include <stdlib.h>

#define PIECE (1u << 20)
#define MAX_CODE (32u << 20)	/* bytes that are looked at, some 0.4 s: interpreters have fewer */

int elf_code__each(struct elf_view *view, size_t overlap, elf_code_fn fn, void *ctx)
{
	uint8_t *code = malloc(PIECE);
	const struct elf_segment *seg;
	uint64_t left = MAX_CODE;
	size_t nr, len;
	int err = 0;

	if (!code)
		return -ENOMEM;
	seg = elf_view__segments(view, &nr);
	for (size_t i = 0; i < nr && !err; i++) {
		for (uint64_t at = 0; seg[i].executable && at < seg[i].size && !err; at += PIECE - overlap) {
			len = seg[i].size - at < PIECE ? (size_t)(seg[i].size - at) : PIECE;
			err = left < len ? -ENOENT : elf_view__read(view, seg[i].offset + at, code, len);
			left -= len;
			if (!err)
				err = fn(ctx, code, len, seg[i].vaddr + at);
		}
	}
	free(code);
	return err;
}
