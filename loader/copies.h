/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks that the BPF side sent as copies: unwound here, and the rows of the code that they met made
 * known there.
 */
#ifndef LOADER_COPIES_H
#define LOADER_COPIES_H

#include <linux/types.h>
#include <stdint.h>

#include "bpf/gpucollect.h"
#include "loader/files.h"
#include "loader/probes.h"
#include "loader/processes.h"
#include "loader/stacks.h"

struct copies;

/* 0 or negative errno. All parts stay the caller's and must live longer. */
int copies__new(struct probes *probes, struct files *files, const struct stacks *stacks,
		struct copies **out);
void copies__free(struct copies *c);	/* NULL is fine */

/*
 * The words of a copied stack by the mappings that are known of the process, those before it included, and
 * Python frames where records have them: before the native ones. Leaf first, valid until the next call.
 * `rec` was checked. *nr 0: the words before it were lost.
 */
const __u64 *copies__unwind(struct copies *c, const struct rec_raw *rec, const struct process *p,
			    uint32_t *nr);

#endif
