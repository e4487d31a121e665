/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The driver's dispatch slots: data in its own segment that its exported entries call through.
 * Everything about them is checked before anything is written; if one item is not as expected,
 * nothing is.
 */
#ifndef LIBRARY_SLOT_H
#define LIBRARY_SLOT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu_timing/channel.h"

/* Finds and checks all slots. REASON_NONE or why not, with *detail. Writes nothing. */
enum channel_reason slot__prepare(uint32_t *detail);
/* Puts our hooks in. On failure all is as before. */
enum channel_reason slot__arm(uint32_t *detail);
/* The driver has that entry, and calls of it pass us by. */
bool slot__is_missed(uint32_t slot);
/* Takes out those that still hold ours; somebody else's stay. */
void slot__restore(void);
/* Notes which still hold ours: a tool may have put its own over them. */
void slot__check(void);

#endif
