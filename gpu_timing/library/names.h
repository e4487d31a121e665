/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which name a kernel's handle stands for. A handle is asked for its name after its first
 * successful launch, and again after anything was unloaded, since handles come again; a NAME
 * record is sent only where the name is new for that handle.
 *
 * With the name go the registers and the static shared memory of a kernel that was executed: it is
 * loaded then, so that the driver has no reason to load it, nor to wait for anything, as it might
 * for one that only goes into a graph.
 */
#ifndef LIBRARY_NAMES_H
#define LIBRARY_NAMES_H

#include <linux/types.h>
#include <stdint.h>

#define MAX_NAMES 65536
#define NAME_PROBES 64

struct context;
struct thread;

enum handle_kind {
	HANDLE_UNKNOWN = 0,
	HANDLE_FUNCTION = 1,	/* CUfunction */
	HANDLE_KERNEL = 2,	/* CUkernel */
};

struct name_entry {
	uint64_t function;	/* 0: free */
	uint64_t state;		/* generation << 32 | epoch in which it was asked */
	uint64_t check;		/* hash of the name and sizes, mixed with the generation */
	uint32_t kind;		/* enum handle_kind, as last seen */
	uint32_t sized;		/* epoch in which it was asked for its sizes */
	uint64_t sizes;		/* registers << 32 | static shared memory; 0: not known */
};

struct name_table {
	uint32_t epoch;		/* from 1; raised when anything is unloaded */
	uint32_t generation;	/* of the last NAME */
	uint32_t first;		/* of this session: what was told before is told again */
	uint32_t guess;		/* enum handle_kind of the last one of which it wasn't known */
	struct name_entry entries[MAX_NAMES];
};

/* A session begins. */
void name__begin(void);
/* The generation that holds for a handle that has just been launched; 0: none. */
uint32_t name__find(struct thread *t, uint64_t function);
/* The same of one that was executed, in that context; NULL: it isn't known in which. */
uint32_t name__find_run(struct thread *t, uint64_t function, const struct context *c);
/*
 * The same of one that a graph has, which may be gone by now: asked only if it hasn't been in this session.
 * Whoever puts it into the graph asks.
 */
uint32_t name__known(struct thread *t, uint64_t function);
void name__note(uint64_t function, enum handle_kind kind);
/* The same where nothing is known of the handle. */
void name__suppose(uint64_t function, enum handle_kind kind);
/* Before an unload: all that was asked so far must be asked again. */
void name__forget_all(void);

#endif
