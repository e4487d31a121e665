/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a run would touch: looked up from outside, nothing is changed and no BPF program loaded. */
#ifndef LOADER_DRY_RUN_H
#define LOADER_DRY_RUN_H

#include "loader/options.h"

/* Prints to stdout; an exit code. */
int dry_run(const struct options *options);

#endif
