/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files that frame words name by number, opened when they are first asked for. What is read of a
 * file is read once for all copies of it: same build id, size and owner (who could write a file of
 * somebody else's build id must not name somebody else's functions).
 */
#ifndef SYMBOLS_MODULES_H
#define SYMBOLS_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/file.h"
#include "symbols/lines.h"
#include "symbols/names.h"
#include "symbols/separate.h"

struct modules;

struct module {
	const char *name;		/* file name without directories */
	struct symbol_file *file;	/* NULL: can't be read */
	struct lines *lines;		/* NULL: no debug information, or not wanted */
};

struct modules *modules__new(struct name_set *names);	/* NULL: out of memory */
void modules__free(struct modules *m);			/* NULL is fine */

/* As symbols__add_file, symbols__add_image and symbols__set_place of cache.h. */
int modules__add_file(struct modules *m, uint32_t file, int fd, const char *path);
int modules__add_image(struct modules *m, uint32_t file, const void *image, size_t size,
		       const char *path);
int modules__set_place(struct modules *m, uint32_t file, int root, const char *path);

/* From now on files that are opened have lines. 0 or -ENOMEM. */
int modules__use_lines(struct modules *m, bool (*pulse)(void *ctx), void *ctx);

/* As symbols__set_fetch of cache.h. */
void modules__set_fetch(struct modules *m, int (*fetch)(void *ctx, const struct build_id *id),
			void *ctx);

/* NULL: there is none of this number. Valid until the next call. */
const struct module *modules__find(struct modules *m, uint32_t file);
size_t modules__nr_opened(const struct modules *m);	/* different files that were read */

/* Files, by *pos from 0 on, whose lines aren't whole: name and why; false: no more. */
bool modules__next_missing(const struct modules *m, size_t *pos, const char **name,
			   const char **why);

#endif
