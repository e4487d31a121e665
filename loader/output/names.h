/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The text of each frame as it is drawn: short, on one line, safe in folded stacks. */
#ifndef OUTPUT_NAMES_H
#define OUTPUT_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/base/text.h"
#include "loader/profile/profile.h"

#define NAMES_GPU_BYTES 200	/* a kernel's name longer than this is shown without templates */
#define NAMES_BYTES 512		/* the same for all other names but Python's */
#define NAMES_PYTHON_BYTES 8192	/* a Python function's or file's: real ones are whole */

struct names;

/*
 * Texts of all frames that the profile has now. Two GPU frames of different kernels, and any two
 * frames whose names had to be shortened, never have the same text: where they would, "#" and a
 * hash of the full name are added. Each text has a limit, whatever a target makes up. 0 or -ENOMEM.
 */
int names__new(const struct profile *p, bool annotate, struct names **out);
void names__free(struct names *n);	/* NULL is fine */
const char *names__of(const struct names *n, uint32_t frame);

/*
 * Appends `name` as a frame of a folded stack: control characters and what isn't UTF-8 as '?',
 * ';' as ':', a last word that readers would take for a weight with '#' before it, blanks at the
 * ends as '?'. Appends something in any case.
 */
void names__add_frame(struct text *t, const char *name, size_t len);

#endif
