/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by python_cost.bpf.c and python_cost.c. */
#ifndef TESTS_PYTHON_COST_H
#define TESTS_PYTHON_COST_H

#define COST_HITS 1024		/* of each kind that are kept: a power of two */

/* Every other hit is walked as if the process had no Python. */
enum { COST_PYTHON, COST_NATIVE, NR_COSTS };

#endif
