/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the separate debug file of an ELF file, in the places that distributions use:
 *
 *	/usr/lib/debug/.build-id/xx/yyyy.debug		by build id
 *	DIR/LINK, DIR/.debug/LINK, /usr/lib/debug/DIR/LINK	by .gnu_debuglink
 *
 * each in the target's root first, then in ours. Nothing in a target's root leads out of it.
 */
#ifndef SYMBOLS_DEBUG_FILE_H
#define SYMBOLS_DEBUG_FILE_H

#include <stdbool.h>

#include "symbols/separate.h"

struct debug_places {
	int root;		/* O_PATH descriptor of the target's root; -1: ours alone is searched */
	const char *path;	/* of the ELF file below that root */
};

/*
 * A descriptor of the first that belongs to the file; -1: none. `own`: a descriptor of the file itself,
 * which is not taken for its own debug file; -1: none.
 */
int debug_file__open(const struct debug_places *places, const struct separate *of, int own);

/*
 * The same for the file that `of` names by .gnu_debugaltlink; `debug` is a descriptor of the file that
 * `of` was read from, whose place relative paths begin at.
 */
int debug_file__open_alt(const struct debug_places *places, const struct separate *of, int debug);

/* The regular file at `path` below `root`, for reading. A descriptor, or negative errno. */
int debug_file__open_below(int root, const char *path);

#endif
