/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Contexts, and brackets: pairs of events that belong to one. Events are made in the thread that
 * launches, while its own context is current, a few at a time, and used again; they are never
 * destroyed by us. When their context goes they are forgotten. Between two sessions nobody sees
 * contexts go: a handle that comes again is the same context only if the driver's number for it,
 * which is never used twice, is the same; else it is new, and the events of the old one forgotten.
 */
#ifndef LIBRARY_CONTEXT_H
#define LIBRARY_CONTEXT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu_timing/channel.h"
#include "gpu_timing/cuda_types.h"

#define MAX_CONTEXTS 64
#define MAX_BRACKETS 16384		/* numbers + 1 fit 16 bits */
#define MAX_CONTEXT_BRACKETS 4096
#define MAX_DEVICES 64
#define FILL_BRACKETS 16

struct thread;

struct bracket {
	CUevent begin, end;
	uint32_t next;		/* in a free list: number + 1 */
	uint32_t context;	/* number + 1 of the context that the events belong to */
	uint32_t serial;	/* of that context */
	uint32_t name;
	uint64_t launch;
	uint64_t function;
	uint64_t stream;
	uint32_t weight;
	uint16_t entry;
	uint16_t flags;
	uint16_t load;
	uint16_t cause;		/* enum launch_cause: known already, though its events are queued */
	uint16_t copy;		/* enum copy_kind */
	int32_t device;
	uint32_t gap;
	uint32_t hold;		/* `held` of its stream when it was taken */
	uint64_t bytes;		/* of a copy */
	uint64_t waited;	/* of one whose call waits for it, ns */
	uint32_t stands_for, stratum;	/* of its probe */
	uint32_t run;		/* number + 1: it is around a run (run.h); 0: around one launch */
	bool half;		/* it has no end, and no time */
};

/* A list of numbers + 1 that many threads push to and pop from; the high half counts changes. */
struct free_list {
	uint64_t top;
};

enum context_state {
	CONTEXT_FREE = 0,
	CONTEXT_LIVE = 1,
	CONTEXT_SUSPENDED = 2,	/* a call that may destroy it is under way */
	CONTEXT_ERROR = 3,	/* every call in it fails */
};

struct context {
	uint64_t handle;
	uint32_t state;		/* enum context_state */
	uint32_t serial;	/* never used twice; 0: free */
	int32_t device;		/* -1: not known yet */
	uint32_t cause;		/* of what is given up in CONTEXT_ERROR */
	uint32_t nr_brackets;
	uint32_t error;		/* CUresult behind CONTEXT_ERROR */
	uint32_t before;	/* state before CONTEXT_SUSPENDED */
	uint32_t holders;	/* calls under way that may destroy it */
	uint32_t session;	/* the last in which it was seen to live */
	uint64_t id;		/* the driver's number; 0: it has none */
	struct free_list pool;
} __attribute__((aligned(64)));

struct context_table {
	uint32_t nr_contexts;	/* elements ever used */
	uint32_t next_serial;
	uint64_t devices_sent;	/* bit set */
	uint32_t gate;		/* of suspend and resume, never held across a call that blocks */
	uint64_t primary[MAX_DEVICES];	/* handles of primary contexts, where seen */
	struct context contexts[MAX_CONTEXTS];
	struct free_list free;
	uint32_t nr_brackets;	/* ever used */
	struct bracket brackets[MAX_BRACKETS];
};

/* A session begins. */
void context__begin(void);
/* The element for the handle of a living context, made if need be; NULL: the table is full. */
struct context *context__get(CUcontext handle);
struct context *context__find(CUcontext handle);	/* NULL: none */
uint32_t context__number(const struct context *c);	/* + 1 */
struct context *context__at(uint32_t number);		/* of the same */
/* No other of its device was seen. */
bool context__is_only(const struct context *c);

/*
 * A bracket of c as it was with that serial: its number + 1, or 0 with *cause. Makes some if there
 * are none and c is current.
 */
uint32_t context__take(struct context *c, uint32_t serial, enum launch_cause *cause);
struct bracket *context__bracket(uint32_t bracket);
/* Back to the pool of its context, or, if that is gone or `forget` is set, without its events. */
void context__give(uint32_t bracket, bool forget);

/* Nothing works in it any more: what is under way there is given up. */
void context__fail(struct context *c, uint32_t serial, enum launch_cause cause, CUresult error);

/*
 * Around a call of the driver that may destroy a context. Asking about its events while it goes,
 * or later, ends in a segmentation fault inside the driver: so `suspend` takes what is complete,
 * waits for the call that another thread may be making, and keeps everybody off until `resume`,
 * which, if the context is `gone`, gives up the rest, events and all.
 */
struct suspension {
	struct context *context;	/* NULL: not one of ours */
	uint32_t serial;
};

struct suspension context__suspend(CUcontext handle);
void context__resume(struct suspension s, bool gone);
/* All of a device, around a reset of a primary context that was never seen. */
void context__suspend_device(CUdevice device, struct suspension s[MAX_CONTEXTS]);
void context__resume_device(struct suspension s[MAX_CONTEXTS], bool gone);

/*
 * Elements change their life only inside the gate. False: not within the deadline, since a signal
 * handler may have interrupted the holder in this very thread.
 */
bool context__enter_gate(uint64_t deadline);
void context__leave_gate(void);
/* Inside the gate: it is gone, with its streams and events; the element is free. */
void context__forget(struct context *c);
void context__empty_pool(struct context *c);

void context__note_primary(CUdevice device, CUcontext handle);
CUcontext context__primary(CUdevice device);	/* NULL: not seen */

#endif
