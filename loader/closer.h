/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Does in the background, several at a time, what takes long and whose end nobody waits for: the kernel
 * lets a probe go only after a grace period, tens of ms, and on a loaded machine seconds.
 */
#ifndef LOADER_CLOSER_H
#define LOADER_CLOSER_H

struct closer;

struct closer *closer__new(void);	/* NULL: out of memory */
/* `fn` is called once, in another thread; at once, if there can be none. */
void closer__add(struct closer *c, void (*fn)(void *arg), void *arg);
/* Until all that was added is done. */
void closer__wait(struct closer *c);
void closer__free(struct closer *c);	/* waits, too; NULL is fine */

#endif
