/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Source lines and inlined calls of the files that have debug information. It is read in a process of
 * its own for each file, without rights (user nobody, few system calls, limited memory), which is asked
 * address by address and ended where it takes too long: whatever stands in the file, the result
 * comes, at worst without its lines. Processes are started at the first question.
 */
#ifndef SYMBOLS_LINES_H
#define SYMBOLS_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINES_FILE_NS 5000000000ull	/* what one file may take, all questions together */
#define LINES_TOTAL_NS 20000000000ull	/* and all files */
#define LINES_MAX_FILE (4ull << 30)	/* bytes of a file that is read at all */
#define LINES_MEMORY (512ull << 20)	/* that its process may take, the file itself aside */
#define LINES_PROCESSES 8		/* at the same time; the one not asked for longest ends */

struct lines_pool;
struct lines;

struct lines_frame {
	const char *name;	/* as in the file, mangled; NULL: of the function itself, or not known */
	const char *file;	/* NULL: not known */
	uint32_t line;		/* 0: not known */
};

/*
 * `pulse` is called every LINES_PULSE_MS while an answer is awaited; true gives up. NULL is fine.
 * NULL: out of memory.
 */
struct lines_pool *lines_pool__new(void);
void lines_pool__free(struct lines_pool *p);	/* after all its struct lines; NULL is fine */
void lines_pool__set_pulse(struct lines_pool *p, bool (*pulse)(void *ctx), void *ctx);
#define LINES_PULSE_MS 100

/*
 * Of a file with .debug_info; its descriptor stays the caller's and open. `alt`, which becomes ours, is the
 * file that it shares information with (.gnu_debugaltlink), -1: none. NULL: out of memory.
 */
struct lines *lines__new(struct lines_pool *p, int fd, int alt);
void lines__free(struct lines *l);		/* NULL is fine */

/*
 * The frames at a link-time address, outermost first: [0] is the function itself, the others are
 * inlined in it. Valid until the next call of any. 0: nothing is known.
 */
size_t lines__find(struct lines *l, uint64_t address, const struct lines_frame **frames);

/* Why the answers of this file aren't whole: a text for the user, or NULL. */
const char *lines__missing(const struct lines *l);

#endif
