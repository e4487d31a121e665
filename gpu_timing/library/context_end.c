// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* How contexts end: while a call that may destroy one is under way, and after it. */
#include <sched.h>
#include <string.h>

#include "gpu_timing/library/harvest.h"
#include "gpu_timing/library/library.h"

/* For a thread inside a call of 0.1 us that may not get the CPU back at once. */
#define SUSPEND_WAIT_NS 5000000000ull

static struct context_table *table(void)
{
	return &lib.memory->contexts;
}

/* Bounded: a signal handler may have interrupted the holder in this very thread. */
bool context__enter_gate(uint64_t deadline)
{
	while (__atomic_exchange_n(&table()->gate, 1u, __ATOMIC_ACQUIRE)) {
		if (clock__ns() > deadline)
			return false;
		sched_yield();
	}
	return true;
}

void context__leave_gate(void)
{
	store_release(&table()->gate, 0u);
}

struct suspend {
	const struct context *context;
	uint64_t deadline;
};

static bool belongs(const struct stream *s, const struct context *c)
{
	return load_acquire(&s->context) == context__number(c) &&
	       load_relaxed(&s->serial) == load_relaxed(&c->serial);
}

static void suspend_stream(struct stream *s, void *ctx)
{
	struct suspend *suspend = ctx;

	if (!belongs(s, suspend->context))
		return;
	/* The one wait there is: for a call of 0.1 us that another thread makes on these events. */
	while (!stream__try_lock(s, STREAM_SUSPENDED)) {
		if (load_acquire(&s->lock) == STREAM_SUSPENDED || clock__ns() > suspend->deadline)
			return;
		sched_yield();
	}
	harvest__locked(s, true);
	run__await(s);
}

static bool alive(const struct context *c, uint32_t serial)
{
	return serial && load_acquire(&c->serial) == serial &&
	       load_acquire(&c->state) != CONTEXT_FREE;
}

static struct suspension suspend_at(struct context *c)
{
	struct suspend suspend = { .context = c, .deadline = clock__ns() + SUSPEND_WAIT_NS };
	struct suspension s = { .context = c, .serial = load_acquire(&c->serial) };

	context__enter_gate(suspend.deadline);
	if (alive(c, s.serial)) {
		if (!c->holders++)
			c->before = __atomic_exchange_n(&c->state, CONTEXT_SUSPENDED,
							__ATOMIC_SEQ_CST);
		stream__each(suspend_stream, &suspend);
	} else {
		s.context = NULL;
	}
	context__leave_gate();
	return s;
}

struct suspension context__suspend(CUcontext handle)
{
	struct suspension none = { 0 };
	struct context *c = context__find(handle);

	return c ? suspend_at(c) : none;
}

static void resume_stream(struct stream *s, void *ctx)
{
	if (belongs(s, ctx) && load_relaxed(&s->lock) == STREAM_SUSPENDED)
		stream__unlock(s);
}

static void forget_stream(struct stream *s, void *ctx)
{
	if (!belongs(s, ctx))
		return;
	if (load_relaxed(&s->lock) == STREAM_SUSPENDED || stream__try_lock(s, STREAM_SUSPENDED)) {
		harvest__give_up(s, CAUSE_CONTEXT_GONE, CUDA_SUCCESS, true);
		stream__unlock(s);
	}
	stream__retire_at(s);
}

void context__forget(struct context *c)
{
	stream__each(forget_stream, c);
	for (int i = 0; i < MAX_DEVICES; i++)
		if (load_relaxed(&table()->primary[i]) == c->handle)
			store_relaxed(&table()->primary[i], 0ull);
	/* From here on a bracket that comes back goes to the common list. */
	__atomic_store_n(&c->serial, 0u, __ATOMIC_SEQ_CST);
	context__empty_pool(c);
	c->holders = 0;
	store_release(&c->state, CONTEXT_FREE);
	store_release(&c->handle, 0ull);
}

void context__resume(struct suspension s, bool gone)
{
	struct context *c = s.context;

	if (!c)
		return;
	context__enter_gate(clock__ns() + SUSPEND_WAIT_NS);
	if (!alive(c, s.serial)) {
		/* Another call has destroyed it meanwhile. */
	} else if (gone) {
		context__forget(c);
	} else if (!--c->holders) {
		stream__each(resume_stream, c);
		store_release(&c->state, c->before);
	}
	context__leave_gate();
}

void context__suspend_device(CUdevice device, struct suspension s[MAX_CONTEXTS])
{
	uint32_t nr = load_acquire(&table()->nr_contexts);

	memset(s, 0, MAX_CONTEXTS * sizeof(*s));
	for (uint32_t i = 0; i < nr; i++) {
		struct context *c = &table()->contexts[i];

		if (load_acquire(&c->state) != CONTEXT_FREE && load_relaxed(&c->device) == device)
			s[i] = suspend_at(c);
	}
}

void context__resume_device(struct suspension s[MAX_CONTEXTS], bool gone)
{
	for (uint32_t i = 0; i < MAX_CONTEXTS; i++)
		context__resume(s[i], gone);
}

void context__note_primary(CUdevice device, CUcontext handle)
{
	if (device >= 0 && device < MAX_DEVICES)
		store_relaxed(&table()->primary[device], (uint64_t)handle);
}

CUcontext context__primary(CUdevice device)
{
	if (device < 0 || device >= MAX_DEVICES)
		return NULL;
	return (CUcontext)load_relaxed(&table()->primary[device]);
}
