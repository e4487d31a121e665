/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What lines.c and the process that it starts say to each other: questions are addresses (u64), each
 * has one answer, a struct lines_reply with its frames behind it. That process may be in the hands of
 * the file that it reads: nothing of an answer is believed.
 */
#ifndef SYMBOLS_LINES_REPLY_H
#define SYMBOLS_LINES_REPLY_H

#include <stddef.h>
#include <stdint.h>

#include "symbols/dwarf.h"
#include "symbols/lines.h"

#define LINES_MESSAGE (64u << 10)	/* bytes of an answer, at most */
#define LINES_REPLY_TEXT (LINES_MESSAGE + 2 * DWARF_MAX_FRAMES)	/* its strings, with their ends */
#define LINES_NO_STRING UINT32_MAX

enum lines_reply_flags {
	LINES_NO_INFO = 1,	/* the file's debug information can't be read at all */
	LINES_SPLIT = 2,	/* inlined calls stand in a .dwo file */
	LINES_CUT = 4,		/* names too long for an answer were left out */
	LINES_NAMELESS = 8,	/* inlined calls without names were left out */
};

struct lines_reply {
	uint32_t flags;
	uint32_t nr;
};

/* Followed by the bytes of name and file, without '\0'. */
struct lines_reply_frame {
	uint32_t line;
	uint32_t name_len;	/* LINES_NO_STRING: not known */
	uint32_t file_len;
};

/* LINES_MESSAGE bytes of room; the length. */
size_t lines_reply__write(const struct dwarf_answer *answer, uint32_t flags, char *message);
/*
 * Into DWARF_MAX_FRAMES frames, whose strings lie in `text` (LINES_REPLY_TEXT bytes). Their number; 0
 * also for what is no answer.
 */
size_t lines_reply__parse(const char *message, size_t len, uint32_t *flags,
			  struct lines_frame *frames, char *text);

#endif
