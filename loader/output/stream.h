/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A FILE over a descriptor whose reader may be slow, gone, or never come back. */
#ifndef OUTPUT_STREAM_H
#define OUTPUT_STREAM_H

#include <stdbool.h>
#include <stdio.h>

struct stream {
	int fd;
	int abort_fd;		/* readable: stop writing; -1: none */
	bool regular;		/* a file: never waits for a reader */
	int err;		/* the first error, negative errno; later writes fail, too */
};

/*
 * `s` must outlive the FILE; fclose leaves fd open. Waits for room also where fd doesn't block.
 * NULL with errno.
 */
FILE *stream__open(struct stream *s, int fd, int abort_fd);

#endif
