/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Source lines and inlined calls at an address, from the DWARF information (versions 2 to 5) of one
 * file, by libdw. libdw maps the file and believes much of what it reads: damaged or hostile files can
 * crash it or keep it busy. To be called in the process that lines.h starts for that, nowhere else.
 */
#ifndef SYMBOLS_DWARF_H
#define SYMBOLS_DWARF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DWARF_MAX_FRAMES 64

struct dwarf_frame {
	const char *name;	/* as in the file, mangled if it has that; NULL: not known */
	const char *file;	/* source file; NULL: not known */
	uint32_t line;		/* 0: not known */
};

struct dwarf_answer {
	/* outermost first; [0] is the function itself, without name, the others are inlined in it */
	struct dwarf_frame frames[DWARF_MAX_FRAMES];
	size_t nr;		/* 0: nothing is known */
	bool nameless;		/* inlined calls without a name were left out */
	bool split;		/* what is inlined there stands in another file (.dwo) */
};

struct dwarf_file;

/* `alt`: of the file that it shares information with, -1: none. NULL: no DWARF, or out of memory. */
struct dwarf_file *dwarf_file__new(int fd, int alt);
void dwarf_file__free(struct dwarf_file *f);	/* NULL is fine */

/* `address` is link-time. Strings live as long as `f`. */
void dwarf_file__find(struct dwarf_file *f, uint64_t address, struct dwarf_answer *out);

#endif
