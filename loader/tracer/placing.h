/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The library as a file that only the process's descriptors know: a memfd that a borrowed thread
 * makes, that we fill and seal, and whose page with the stub the thread maps, with a page of memory
 * beside it for what the stub is told (gpu_timing/channel.h).
 */
#ifndef TRACER_PLACING_H
#define TRACER_PLACING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct remote;

#define PLACING_PAGE 4096u
#define PLACING_SIZE (2 * PLACING_PAGE)

struct placing {
	const void *image;	/* borrowed */
	size_t size;
	uint64_t stub;		/* offset of its page in the file */
	/* What there is in the process. */
	int fd;			/* its number there; -1: none */
	uint64_t pages;		/* address of both, the stub's first; 0: not mapped */
	int file;		/* ours; -1: none */
	int lost;		/* negative errno: the thread that did it is no longer at hand */
	char *why;		/* what failed, one line */
	size_t why_size;
};

void placing__init(struct placing *p);
void placing__free(struct placing *p);	/* our descriptor */

/* With a held thread: makes everything, or nothing. 0 or negative errno and why; -ESRCH: it is gone. */
int placing__make(struct placing *p, struct remote *r);
/* Whether the thread has that file under that number: descriptors may be closed or re-used. */
bool placing__is_there(const struct placing *p, pid_t pid, pid_t tid);
/* Takes all of it away again, as far as it is still there. */
void placing__undo(struct placing *p, struct remote *r);

/* The pages are the stub's thread's now, which unmaps them: nothing of ours any more. */
void placing__give_pages(struct placing *p);
/* The file is in use, or may be: the same of the descriptor there. Ours stays. */
void placing__give_file(struct placing *p);

/* Where the stub's argument is to be: one page. */
static inline uint64_t placing__argument(const struct placing *p)
{
	return p->pages + PLACING_PAGE;
}

/* "/proc/thread-self/fd/N": the thread's own table, also where the process's first one is gone. */
void placing__path(const struct placing *p, char *path, size_t size);

#endif
