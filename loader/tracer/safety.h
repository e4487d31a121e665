/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether a thread may be borrowed where it is: by its stack, unwound with our own rules. Starting a
 * thread takes locks of the allocator, of the dynamic loader and of the C library's own tables: a
 * thread that is inside one of them would wait for itself for ever.
 */
#ifndef TRACER_SAFETY_H
#define TRACER_SAFETY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

struct libc;
struct safety;
struct space;

#define SAFETY_WHY 160
#define SAFETY_ROOM (64u << 10)	/* bytes of stack that must be left below */
#define SAFETY_MAX_STACK (1u << 20)	/* bytes of stack that are looked at */

/* What a stopped thread was doing. */
struct safety_look {
	struct user_regs_struct regs;
	uint64_t start;		/* address of the first byte of the copy */
	size_t len;
	uint8_t *stack;		/* SAFETY_MAX_STACK bytes of room */
};

/* Both are borrowed. NULL: out of memory. */
struct safety *safety__new(const struct space *space, const struct libc *libc);
void safety__free(struct safety *s);	/* NULL is fine */

/*
 * Where its stack is to be copied from: fills start and len by its registers. 0; -EAGAIN and why:
 * that stack won't do; -ENOENT: it lies nowhere that is known: the mappings are old.
 */
int safety__stack(const struct space *space, struct safety_look *look, char why[SAFETY_WHY]);

/* 0: it may; -EAGAIN and why: not here. */
int safety__judge(struct safety *s, const struct safety_look *look, char why[SAFETY_WHY]);

#endif
