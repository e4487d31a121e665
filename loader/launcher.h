/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Commands that have their work done elsewhere: it is no child of theirs, or gets another environment. */
#ifndef LOADER_LAUNCHER_H
#define LOADER_LAUNCHER_H

/* What to do instead with this command (argv[0]): a sentence, or NULL for any other. */
const char *launcher__advice(const char *command);

#endif
