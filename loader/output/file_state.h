/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an output file is made of; for file.c and file_check.c alone. */
#ifndef OUTPUT_FILE_STATE_H
#define OUTPUT_FILE_STATE_H

#include <stdbool.h>

#include "loader/output/caller.h"
#include "loader/output/file.h"

enum file_kind {
	KIND_DESCRIPTOR,	/* stdout, or another one that we were given */
	KIND_SPECIAL,		/* a device or a pipe: opened for each writing */
	KIND_REGULAR,
};

struct output_file {
	enum file_kind kind;
	const struct caller *caller;
	int abort_fd;
	bool force;
	bool numbered;
	bool look_only;
	bool is_stdout;
	char *given;		/* the name for messages; with the number, if one was needed */
	char *path;		/* without symlinks, if it had some */
	int fd;			/* KIND_DESCRIPTOR: the descriptor; KIND_REGULAR: the directory */
	char *base;		/* KIND_REGULAR: name in the directory */
	int mine;		/* what we wrote last, open so that its inode stays its; or -1 */
};

/* file_check.c: our own descriptor that a path stands for, or -1. */
int output_file__descriptor(const char *path);
/*
 * Finds out what that descriptor, or f->path, is and whether it can be written, before anything is captured;
 * with the rights of the caller. 0 or a negative errno.
 */
int output_file__check(struct output_file *f, int descriptor);

#define TEMP_NAME 40
/* A new file beside the final one; its descriptor or a negative errno. As the caller. */
int output_file__open_temporary(const struct output_file *f, char name[TEMP_NAME]);

#endif
