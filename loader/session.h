/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One capture from beginning to end: the only place that sees all parts. */
#ifndef LOADER_SESSION_H
#define LOADER_SESSION_H

#include "loader/options.h"

/* Records what the options say, writes the result and returns the exit code. */
int session__run(const struct options *options);

#endif
