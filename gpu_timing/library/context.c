// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>

#include "gpu_timing/library/library.h"
#include "gpu_timing/library/segment.h"
#include "gpu_timing/library/slot.h"

#define DEVICE_NAME_ROOM 256
#define LAUNCH_WAIT_NS 1000000ull

static struct context_table *table(void)
{
	return &lib.memory->contexts;
}

static void push(struct free_list *list, uint32_t bracket)
{
	struct bracket *b = context__bracket(bracket);
	uint64_t top = load_relaxed(&list->top), next;

	do {
		store_relaxed(&b->next, (uint32_t)top);
		next = ((top >> 32) + 1) << 32 | bracket;
	} while (!__atomic_compare_exchange_n(&list->top, &top, next, true, __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));
}

static uint32_t pop(struct free_list *list)
{
	uint64_t top = load_acquire(&list->top), next;

	do {
		if (!(uint32_t)top)
			return 0;
		next = ((top >> 32) + 1) << 32 |
		       load_relaxed(&context__bracket((uint32_t)top)->next);
	} while (!__atomic_compare_exchange_n(&list->top, &top, next, true, __ATOMIC_ACQUIRE,
					      __ATOMIC_ACQUIRE));
	return (uint32_t)top;
}

struct bracket *context__bracket(uint32_t bracket)
{
	return &table()->brackets[bracket - 1];
}

uint32_t context__number(const struct context *c)
{
	return (uint32_t)(c - table()->contexts) + 1;
}

struct context *context__at(uint32_t number)
{
	return &table()->contexts[number - 1];
}

static struct context *find(uint64_t handle, uint32_t to)
{
	for (uint32_t i = 0; i < to; i++)
		if (load_acquire(&table()->contexts[i].handle) == handle)
			return &table()->contexts[i];
	return NULL;
}

static uint64_t number_of(uint64_t handle)
{
	unsigned long long id;

	return lib.driver.ctx_get_id && !lib.driver.ctx_get_id((CUcontext)handle, &id) ? id : 0;
}

struct context *context__find(CUcontext handle)
{
	return handle ? find((uint64_t)handle, load_acquire(&table()->nr_contexts)) : NULL;
}

static struct context *make(uint64_t handle)
{
	for (uint32_t i = 0; i < MAX_CONTEXTS; i++) {
		struct context *c = &table()->contexts[i], *other;
		uint32_t nr = load_relaxed(&table()->nr_contexts);
		uint64_t expected = 0;

		if (!__atomic_compare_exchange_n(&c->handle, &expected, handle, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		while (nr <= i && !__atomic_compare_exchange_n(&table()->nr_contexts, &nr, i + 1,
							       true, __ATOMIC_RELEASE,
							       __ATOMIC_RELAXED))
			;
		other = find(handle, i);
		if (other) {
			store_release(&c->handle, 0ull);
			return other;
		}
		c->device = -1;
		c->nr_brackets = 0;
		c->holders = 0;
		c->id = number_of(handle);
		store_relaxed(&c->session, load_relaxed(&lib.memory->guard.session));
		c->serial = __atomic_add_fetch(&table()->next_serial, 1, __ATOMIC_RELAXED);
		store_release(&c->state, CONTEXT_LIVE);
		return c;
	}
	return NULL;
}

bool context__is_only(const struct context *c)
{
	uint32_t nr = load_acquire(&table()->nr_contexts);

	for (uint32_t i = 0; i < nr && i < MAX_CONTEXTS; i++) {
		const struct context *other = &table()->contexts[i];

		if (other != c && load_relaxed(&other->serial) &&
		    load_relaxed(&other->device) == load_relaxed(&c->device))
			return false;
	}
	return true;
}

static void send_device(CUdevice device)
{
	struct channel_device rec = { .device = device };
	char name[DEVICE_NAME_ROOM] = "";
	int version = 0;

	if (device < 0 || device >= MAX_DEVICES ||
	    load_acquire(&table()->devices_sent) & 1ull << device)
		return;
	if (lib.driver.device_name(name, sizeof(name) - 1, device))
		name[0] = '\0';
	lib.driver.version(&version);
	rec.version = (uint32_t)version;
	rec.len = (uint32_t)strnlen(name, sizeof(name));
	if (ring__put(lib.segment, CHANNEL_DEVICE, &rec, sizeof(rec), name, rec.len))
		__atomic_add_fetch(&lib.segment->lost_devices, 1, __ATOMIC_RELAXED);
	__atomic_or_fetch(&table()->devices_sent, 1ull << device, __ATOMIC_RELEASE);
}

static bool is_old(const struct context *c)
{
	return load_relaxed(&c->session) != load_relaxed(&lib.memory->guard.session);
}

/* c is of a session before: the same context still? Else its element is free again. */
static void recognise(struct context *c, uint64_t handle)
{
	uint64_t id = number_of(handle);

	if (!context__enter_gate(clock__ns() + LAUNCH_WAIT_NS))
		return;
	if (load_acquire(&c->state) != CONTEXT_FREE && load_acquire(&c->handle) == handle &&
	    is_old(c)) {
		if (id && id == c->id) {
			send_device(load_relaxed(&c->device));
			store_release(&c->session, load_relaxed(&lib.memory->guard.session));
		} else {
			context__forget(c);
		}
	}
	context__leave_gate();
}

/* No element is free: one of an earlier session, which need not live any more, is. */
static void make_room(void)
{
	if (!context__enter_gate(clock__ns() + LAUNCH_WAIT_NS))
		return;
	for (uint32_t i = 0; i < MAX_CONTEXTS; i++) {
		struct context *c = &table()->contexts[i];

		if (load_acquire(&c->state) != CONTEXT_FREE && is_old(c)) {
			context__forget(c);
			break;
		}
	}
	context__leave_gate();
}

static struct context *find_or_make(uint64_t handle)
{
	struct context *c = context__find((CUcontext)handle);

	return likely(c) ? c : make(handle);
}

void context__begin(void)
{
	store_relaxed(&table()->devices_sent, 0ull);
	for (int i = 0; i < MAX_DEVICES; i++)
		store_relaxed(&table()->primary[i], 0ull);
}

/* Made, not just being made: another thread is then a few instructions before the end of make(). */
static bool is_made(const struct context *c)
{
	for (int i = 0; load_acquire(&c->state) == CONTEXT_FREE; i++) {
		if (i == 1000)
			return false;
		__builtin_ia32_pause();
	}
	return true;
}

struct context *context__get(CUcontext handle)
{
	struct context *c;

	if (!handle)
		return NULL;
	c = find_or_make((uint64_t)handle);
	if (likely(c) && likely(is_made(c)) && likely(!is_old(c)))
		return c;
	if (c)
		recognise(c, (uint64_t)handle);
	else
		make_room();
	c = find_or_make((uint64_t)handle);
	return c && is_made(c) && !is_old(c) ? c : NULL;
}

/* c is current: learn its device and make some brackets. */
static void fill(struct context *c, uint32_t serial)
{
	CUdevice device;

	if (load_relaxed(&c->device) < 0) {
		if (lib.driver.ctx_get_device(&device))
			return;
		send_device(device);
		store_relaxed(&c->device, device);
		slot__check();
	}
	for (int i = 0; i < FILL_BRACKETS; i++) {
		uint32_t bracket = 0;
		struct bracket *b;

		if (__atomic_add_fetch(&c->nr_brackets, 1, __ATOMIC_RELAXED) <= MAX_CONTEXT_BRACKETS)
			bracket = pop(&table()->free);
		else
			goto full;
		if (!bracket) {
			bracket = __atomic_add_fetch(&table()->nr_brackets, 1, __ATOMIC_RELAXED);
			if (bracket > MAX_BRACKETS) {
				__atomic_sub_fetch(&table()->nr_brackets, 1, __ATOMIC_RELAXED);
				goto full;
			}
		}
		b = context__bracket(bracket);
		b->context = context__number(c);
		b->serial = serial;
		if (lib.driver.event_create(&b->begin, CU_EVENT_DEFAULT) ||
		    lib.driver.event_create(&b->end, CU_EVENT_DEFAULT)) {
			push(&table()->free, bracket);
			goto full;
		}
		push(&c->pool, bracket);
		continue;
full:
		__atomic_sub_fetch(&c->nr_brackets, 1, __ATOMIC_RELAXED);
		return;
	}
}

/* One whose events are of this life of the context: its address may have been used before. */
static uint32_t pop_valid(struct context *c, uint32_t serial)
{
	uint32_t bracket;

	while ((bracket = pop(&c->pool))) {
		if (likely(context__bracket(bracket)->serial == serial))
			break;
		push(&table()->free, bracket);
	}
	return bracket;
}

uint32_t context__take(struct context *c, uint32_t serial, enum launch_cause *cause)
{
	uint32_t state = load_acquire(&c->state), bracket;
	CUcontext current = NULL;

	if (state != CONTEXT_LIVE || load_relaxed(&c->serial) != serial) {
		*cause = state == CONTEXT_ERROR ? CAUSE_CONTEXT_ERROR : CAUSE_CONTEXT_GONE;
		return 0;
	}
	bracket = pop_valid(c, serial);
	if (likely(bracket))
		return bracket;
	/* Events are made in the current context, so only there. */
	if (lib.driver.ctx_get_current(&current) || (uint64_t)current != c->handle) {
		*cause = CAUSE_OTHER_CONTEXT;
		return 0;
	}
	fill(c, serial);
	bracket = pop_valid(c, serial);
	if (!bracket)
		*cause = CAUSE_POOL_EMPTY;
	return bracket;
}

void context__give(uint32_t bracket, bool forget)
{
	struct bracket *b = context__bracket(bracket);
	struct context *c = context__at(b->context);

	run__free(b);
	if (forget || load_acquire(&c->serial) != b->serial) {
		b->begin = b->end = NULL;
		push(&table()->free, bracket);
	} else {
		push(&c->pool, bracket);
	}
}

void context__fail(struct context *c, uint32_t serial, enum launch_cause cause, CUresult error)
{
	uint32_t live = CONTEXT_LIVE;

	if (load_relaxed(&c->serial) != serial || load_relaxed(&c->state) != CONTEXT_LIVE)
		return;
	store_relaxed(&c->cause, (uint32_t)cause);
	store_relaxed(&c->error, (uint32_t)error);
	__atomic_compare_exchange_n(&c->state, &live, CONTEXT_ERROR, false, __ATOMIC_RELEASE,
				    __ATOMIC_RELAXED);
}

void context__empty_pool(struct context *c)
{
	uint32_t bracket;

	while ((bracket = pop(&c->pool)))
		context__give(bracket, true);
}
